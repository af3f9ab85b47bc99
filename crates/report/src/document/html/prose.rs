//! Sentences in which backticks mark what a person would type: they become code, and everything else is text.

use std::borrow::Cow;

use askama::Template;
use askama::filters::HtmlSafe;

/// A sentence, escaped by its own template.
#[derive(Debug, Template)]
#[template(path = "prose.html")]
pub(crate) struct Prose<'a> {
    pieces: Vec<Piece<'a>>,
}

#[derive(Debug)]
struct Piece<'a> {
    text: Cow<'a, str>,
    is_code: IsCode,
}

#[derive(Debug, PartialEq, Eq)]
enum IsCode {
    Yes,
    No,
}

impl HtmlSafe for Prose<'_> {}

/// The sentence with its code marked; backticks that do not come in pairs stay.
pub(crate) fn prose(text: &str) -> Prose<'_> {
    let mut pieces = Vec::new();
    let mut rest = text;
    let mut add = |text, is_code| pieces.push(Piece { text: kept_together(text), is_code });
    while let Some((before, after)) = rest.split_once('`') {
        let Some((code, after)) = after.split_once('`') else { break };
        add(before, IsCode::No);
        add(code, IsCode::Yes);
        rest = after;
    }
    add(rest, IsCode::No);
    Prose { pieces }
}

/// A number and its per cent sign stay on one line.
fn kept_together(text: &str) -> Cow<'_, str> {
    if text.contains(" %") { text.replace(" %", "\u{a0}%").into() } else { text.into() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_pairs_of_backticks_are_code_and_all_of_it_is_escaped() {
        let shown = |text| prose(text).to_string();
        assert_eq!(shown("run `a <b>` now"), "run <code>a &#60;b&#62;</code> now");
        assert_eq!(shown("it's `open"), "it&#39;s `open");
        assert_eq!(shown("``"), "<code></code>");
    }
}
