//! Finds the code of a source file, and the paths that it uses.
//!
//! Deliberately not a parser: a scanner that knows comments, strings and `use` trees is enough for the rules
//! and does not need to follow the language.

/// The text with comments blanked out; lines keep their numbers.
pub fn without_comments(text: &str) -> String {
    blank(text, Blank::Comments)
}

/// The text with comments and what is in string and character literals blanked out.
pub fn without_comments_and_strings(text: &str) -> String {
    blank(text, Blank::CommentsAndStrings)
}

/// The text with everything but comments and literals blanked out.
pub fn without_code(text: &str) -> String {
    blank(text, Blank::Code)
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Blank {
    Comments,
    CommentsAndStrings,
    Code,
}

fn blank(text: &str, what: Blank) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let in_word = out.ends_with(is_word);
        let (length, keep) = if rest.starts_with("//") {
            (rest.find('\n').unwrap_or(rest.len()), what == Blank::Code)
        } else if rest.starts_with("/*") {
            (block_comment(rest), what == Blank::Code)
        } else if let Some(length) = literal(rest, in_word) {
            (length, what != Blank::CommentsAndStrings)
        } else {
            (first.len_utf8(), what != Blank::Code)
        };
        let (piece, after) = rest.split_at(length);
        if keep {
            out.push_str(piece);
        } else {
            out.extend(piece.chars().map(|c| if c == '\n' { '\n' } else { ' ' }));
        }
        rest = after;
    }
    out
}

/// Length of the block comment at the start; they nest.
fn block_comment(text: &str) -> usize {
    let (mut depth, mut at) = (0, 0);
    while at < text.len() {
        if text[at..].starts_with("/*") {
            (depth, at) = (depth + 1, at + 2);
        } else if text[at..].starts_with("*/") {
            (depth, at) = (depth - 1, at + 2);
            if depth == 0 {
                return at;
            }
        } else {
            at += text[at..].chars().next().map_or(1, char::len_utf8);
        }
    }
    text.len()
}

/// Length of the string or character literal at the start, if there is one.
fn literal(text: &str, in_word: bool) -> Option<usize> {
    if !in_word && let Some(length) = raw_string(text) {
        return Some(length);
    }
    match text.as_bytes()[0] {
        b'"' => Some(quoted(text, b'"')),
        // A lifetime has no closing quote after one character.
        b'\'' => {
            let mut inside = text[1..].chars();
            let first = inside.next()?;
            (first == '\\' || inside.next() == Some('\'')).then(|| quoted(text, b'\''))
        }
        _ => None,
    }
}

fn quoted(text: &str, quote: u8) -> usize {
    let bytes = text.as_bytes();
    let mut at = 1;
    while at < bytes.len() {
        match bytes[at] {
            b'\\' => at += 2,
            byte if byte == quote => return at + 1,
            _ => at += 1,
        }
    }
    bytes.len()
}

fn raw_string(text: &str) -> Option<usize> {
    let after = text.strip_prefix("br").or_else(|| text.strip_prefix("cr"));
    let after = after.or_else(|| text.strip_prefix('r'))?;
    let body = after.trim_start_matches('#');
    let end = format!("\"{}", &after[..after.len() - body.len()]);
    let close = body.strip_prefix('"')?.find(&end);
    Some(close.map_or(text.len(), |at| text.len() - body.len() + 1 + at + end.len()))
}

/// Every path in `use` declarations, with groups expanded: `use std::{fs, io::Read};` gives `std::fs` and
/// `std::io::Read`. Takes text without comments and strings.
pub fn used_paths(code: &str) -> Vec<String> {
    let mut paths = Vec::new();
    for tree in code.split(';').filter_map(|statement| split_at_use(statement).1) {
        let tree: String = tree.split_whitespace().collect::<Vec<_>>().join(" ");
        expand("", &tree, &mut paths);
    }
    paths
}

/// Every path elsewhere: `a::b::c(x)` gives `a::b::c`.
pub fn paths_in_place(code: &str) -> Vec<&str> {
    let elsewhere = code.split(';').map(|statement| split_at_use(statement).0);
    let words = elsewhere.flat_map(|text| text.split(|c| !is_word(c) && c != ':'));
    words.map(|word| word.trim_matches(':')).filter(|word| word.contains("::")).collect()
}

fn split_at_use(statement: &str) -> (&str, Option<&str>) {
    let uses = |(at, _): &(usize, &str)| !statement[..*at].ends_with(is_word);
    match statement.match_indices("use ").find(uses) {
        Some((at, word)) => (&statement[..at], Some(&statement[at + word.len()..])),
        None => (statement, None),
    }
}

pub fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

fn expand(prefix: &str, tree: &str, paths: &mut Vec<String>) {
    let tree = tree.trim();
    let Some((before, group)) = tree.split_once('{') else {
        let path = tree.split(" as ").next().unwrap_or_default().trim();
        if !path.is_empty() {
            paths.push(format!("{prefix}{}", path.trim_start_matches("::")));
        }
        return;
    };
    let prefix = format!("{prefix}{}", before.trim_start_matches("::"));
    let group = group.trim_end().strip_suffix('}').unwrap_or(group);
    let (mut depth, mut start) = (0, 0);
    for (at, c) in group.char_indices() {
        match c {
            '{' => depth += 1,
            '}' => depth -= 1,
            ',' if depth == 0 => {
                expand(&prefix, &group[start..at], paths);
                start = at + 1;
            }
            _ => {}
        }
    }
    expand(&prefix, &group[start..], paths);
}

#[test]
fn comments_go_and_strings_stay_or_go() {
    let text = "a // b \"\n\"c // d\" /* e /* f */ g */ h 'i' r#\"j \" k\"# 'l\n'\\'' \"\\\"m\" n";
    let without = without_comments(text);
    assert_eq!(without.lines().count(), text.lines().count());
    for (word, stays) in [("b", false), ("d", true), ("g", false), ("h", true), ("k", true)] {
        assert_eq!(without.contains(word), stays, "{word} in {without}");
    }
    let bare = without_comments_and_strings(text);
    let words: Vec<&str> = bare.split_whitespace().collect();
    assert_eq!(words, ["a", "h", "'l", "n"]);
}

#[test]
fn groups_of_use_are_written_out() {
    let code = "pub use std::{fs, io::{self, Read}, time::Instant as Now};\nuse ::libc;\nlet reuse = 1;";
    let expected = ["std::fs", "std::io::self", "std::io::Read", "std::time::Instant", "libc"];
    assert_eq!(used_paths(code), expected);
}

#[test]
fn paths_in_place_are_found_beside_those_of_use() {
    let code = "use a::b; fn f(x: &c::D) -> e::F<g::H> { i::<j::K>(); super::l::m(n, Self::O) } use p::q;";
    assert_eq!(paths_in_place(code), ["c::D", "e::F", "g::H", "j::K", "super::l::m", "Self::O"]);
}
