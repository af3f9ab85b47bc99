//! Text for all renderings: stripped of what could fool a terminal or a reader, measured in columns,
//! shortened, wrapped; and numbers with three significant digits.

use std::fmt::Display;

use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

use crate::stats::{Alpha, Estimate};
use crate::units::{Scale, Unit};

/// Removes everything from a foreign text that is not plainly visible: escape sequences with
/// their arguments, control characters, and marks that change the direction of writing or join
/// letters. White space becomes single spaces.
pub fn clean(text: &str) -> String {
    let mut kept = String::with_capacity(text.len());
    let mut rest = text.chars().peekable();
    while let Some(letter) = rest.next() {
        match letter {
            '\x1b' => skip_sequence(&mut rest),
            '\u{9b}' => skip_until(&mut rest, |end| ('\x40'..='\x7e').contains(&end)),
            letter if letter.is_whitespace() || is_line_end(letter) => {
                if !kept.is_empty() && !kept.ends_with(' ') {
                    kept.push(' ');
                }
            }
            letter if letter.is_control() || is_invisible(letter) => {}
            letter => kept.push(letter),
        }
    }
    kept.truncate(kept.trim_end().len());
    kept
}

/// JSON text with everything escaped that is not plainly visible: it means the same and does not control a
/// terminal.
pub fn escaped(json: &str) -> String {
    let mut kept = String::with_capacity(json.len());
    for letter in json.chars() {
        if letter != '\n' && (letter.is_control() || is_invisible(letter)) {
            let units = letter.encode_utf16(&mut [0; 2]).to_vec();
            kept.extend(units.iter().map(|unit| format!("\\u{unit:04x}")));
        } else {
            kept.push(letter);
        }
    }
    kept
}

type Letters<'a> = std::iter::Peekable<std::str::Chars<'a>>;

/// Skips what follows an escape character: a control sequence, a string that ends with a bell or `ESC \`,
/// or a single letter, perhaps after intermediate ones (ECMA-48, section 5).
fn skip_sequence(rest: &mut Letters<'_>) {
    match rest.peek() {
        Some('[') => {
            rest.next();
            skip_until(rest, |end| ('\x40'..='\x7e').contains(&end));
        }
        Some(']' | 'P' | 'X' | '^' | '_') => {
            rest.next();
            while let Some(letter) = rest.next() {
                if letter == '\x07' || letter == '\u{9c}' {
                    break;
                }
                if letter == '\x1b' {
                    rest.next_if_eq(&'\\');
                    break;
                }
            }
        }
        Some('\x20'..='\x7e') => skip_until(rest, |end| ('\x30'..='\x7e').contains(&end)),
        _ => {}
    }
}

/// Skips to the final letter, inclusive; another control character ends a broken sequence.
fn skip_until(rest: &mut Letters<'_>, is_final: impl Fn(char) -> bool) {
    while let Some(letter) = rest.next_if(|letter| !letter.is_control()) {
        if is_final(letter) {
            return;
        }
    }
}

/// The text with a mark in place of everything that would control a terminal or change the writing direction; lines stay.
pub fn harmless(text: &str) -> String {
    let is_bad =
        |letter: char| letter != '\n' && (letter.is_control() || is_line_end(letter)) || is_directing(letter);
    text.chars().map(|letter| if is_bad(letter) { char::REPLACEMENT_CHARACTER } else { letter }).collect()
}

/// Marks that change the writing direction, join letters, or are tags of other letters.
fn is_directing(letter: char) -> bool {
    matches!(letter, '\u{61c}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}'
        | '\u{feff}' | '\u{e0000}'..='\u{e007f}')
}

fn is_line_end(letter: char) -> bool {
    matches!(letter, '\n' | '\r' | '\u{85}' | '\u{2028}' | '\u{2029}')
}

fn is_invisible(letter: char) -> bool {
    letter.width().unwrap_or(0) == 0 || letter == '\u{ad}' || is_directing(letter)
}

/// The number of columns of a text.
pub fn width(text: &str) -> usize {
    text.width()
}

/// The text in exactly this many columns: shortened or padded on the right.
pub fn left(text: &str, columns: usize) -> String {
    let mut text = shorten(text, columns);
    text.push_str(&" ".repeat(columns.saturating_sub(width(&text))));
    text
}

/// The text in exactly this many columns: shortened or padded on the left.
pub fn right(text: &str, columns: usize) -> String {
    let text = shorten(text, columns);
    " ".repeat(columns.saturating_sub(width(&text))) + &text
}

/// The text in at most this many columns. The middle is left out, because labels show their kind at the
/// beginning and their differences at the end.
pub fn shorten(text: &str, columns: usize) -> String {
    if width(text) <= columns {
        return text.to_owned();
    }
    let Some(room) = columns.checked_sub(1) else { return String::new() };
    let fitting = |letters: &mut dyn Iterator<Item = char>, room: usize| {
        let mut used = 0;
        let mut taken = Vec::new();
        for letter in letters {
            used += letter.width().unwrap_or(0);
            if used > room {
                break;
            }
            taken.push(letter);
        }
        taken
    };
    let tail = fitting(&mut text.chars().rev(), room / 2);
    let head = fitting(&mut text.chars(), room - room / 2);
    head.into_iter().chain(['…']).chain(tail.into_iter().rev()).collect()
}

/// The text in lines of at most this many columns, the first after `first`, the others after as many spaces.
pub fn wrap(first: &str, text: &str, columns: usize) -> Vec<String> {
    let indent = width(first);
    let room = columns.saturating_sub(indent).max(1);
    let mut lines = Vec::new();
    let mut line = String::new();
    for word in words(text) {
        if !line.is_empty() && width(&line) + 1 + width(&word) > room {
            lines.push(std::mem::take(&mut line));
        }
        if !line.is_empty() {
            line.push(' ');
        }
        // Letter by letter only where a word does not fit into a line, and so begins one.
        if width(&word) <= room {
            line.push_str(&word);
            continue;
        }
        let mut used = 0;
        for letter in word.chars() {
            used += letter.width().unwrap_or(0);
            if used > room && !line.is_empty() {
                lines.push(std::mem::take(&mut line));
                used = letter.width().unwrap_or(0);
            }
            line.push(letter);
        }
    }
    lines.push(line);
    let prefix = |index: usize| if index == 0 { first.to_owned() } else { " ".repeat(indent) };
    lines
        .iter()
        .enumerate()
        .map(|(index, line)| format!("{}{line}", prefix(index)).trim_end().to_owned())
        .collect()
}

/// The words of a text; a number stays with its unit.
fn words(text: &str) -> Vec<String> {
    const UNITS: [&str; 5] = ["ns", "µs", "ms", "s", "%"];
    let mut words: Vec<String> = Vec::new();
    for word in text.split(' ').filter(|word| !word.is_empty()) {
        let is_unit = UNITS.contains(&word.trim_end_matches([',', ';', '.', ':', ')']));
        match words.last_mut() {
            Some(number) if is_unit && number.ends_with(|letter: char| letter.is_ascii_digit()) => {
                number.push(' ');
                number.push_str(word);
            }
            _ => words.push(word.to_owned()),
        }
    }
    words
}

/// The number of decimals that give a value three significant digits; at most six.
pub fn decimals(value: f64) -> usize {
    let size = value.abs();
    if size == 0.0 || !size.is_finite() {
        return 0;
    }
    // A value that rounds up to the next power of ten has one more digit before the point.
    let digits_before = (size * 1.0005).log10().floor() as i32 + 1;
    (3 - digits_before).clamp(0, 6) as usize
}

/// A number with this many decimals and a real minus sign.
pub fn number(value: f64, decimals: usize) -> String {
    if value.is_infinite() {
        return (if value > 0.0 { "∞" } else { "−∞" }).to_owned();
    }
    let text = format!("{value:.decimals$}");
    match text.strip_prefix('-') {
        Some(digits) if digits.bytes().any(|digit| digit.is_ascii_digit() && digit != b'0') => {
            format!("−{digits}")
        }
        Some(digits) => digits.to_owned(),
        None => text,
    }
}

/// A value and its interval with one unit, such as `12.3 ms [10.1, 14.0]`. The largest of the numbers
/// determines the unit and the decimals: it gets three significant digits. There are more, up to those of the
/// value, if the interval would otherwise have less than two digits of width.
pub fn with_interval(unit: Unit, value: f64, interval: Option<(f64, f64)>) -> String {
    in_one(parts(unit, value, interval))
}

/// A value and its interval, which may be empty, as one text.
pub fn in_one((value, interval): (String, String)) -> String {
    if interval.is_empty() { value } else { format!("{value} {interval}") }
}

/// The same in two parts: the value with its unit, and the interval in brackets, empty if there is none.
pub fn parts(unit: Unit, value: f64, interval: Option<(f64, f64)>) -> (String, String) {
    let ends = interval.map_or([value; 2], |(low, high)| [low, high]);
    let known = ends.into_iter().chain([value]).map(f64::abs).filter(|size| size.is_finite());
    let reach = known.fold(0.0, f64::max);
    let scale = unit.scale_for(reach);
    let least = decimals(reach / scale.divisor);
    let own = decimals(value / scale.divisor).max(least);
    let needed = interval.map_or(own, |(low, high)| decimals_of_two_digits((high - low) / scale.divisor));
    let decimals = needed.clamp(least, own);
    let shown = |value: f64| bound(value / scale.divisor, decimals);
    let symbol = if scale.symbol.is_empty() { String::new() } else { format!(" {}", scale.symbol) };
    let interval = interval.map(|(low, high)| format!("[{}, {}]", shown(low), shown(high)));
    (format!("{}{symbol}", shown(value)), interval.unwrap_or_default())
}

/// The same for an estimate.
pub fn estimated(unit: Unit, one: &Estimate) -> String {
    with_interval(unit, one.value, one.interval.map(|ends| (ends.low, ends.high)))
}

/// The number of decimals that give a size two significant digits; at most six.
fn decimals_of_two_digits(size: f64) -> usize {
    if size <= 0.0 || !size.is_finite() { 0 } else { (1 - size.log10().floor() as i32).clamp(0, 6) as usize }
}

/// A number with this many decimals, or with one significant digit if it would otherwise read as zero without
/// being zero.
pub fn bound(value: f64, decimals: usize) -> String {
    let vanishes = value != 0.0 && value.abs() < 0.5 / 10f64.powi(decimals as i32);
    let first = -value.abs().log10().floor();
    number(value, if vanishes { first.clamp(0.0, 6.0) as usize } else { decimals })
}

/// A share in per cent with two significant digits, such as `0.51 %` or `34 %`.
pub fn percent(share: f64) -> String {
    let value = share * 100.0;
    let decimals = match value.abs() {
        size if size >= 9.95 || size == 0.0 => 0,
        size if size >= 0.995 => 1,
        size if size >= 0.0995 => 2,
        _ => 3,
    };
    format!("{} %", number(value, decimals))
}

/// The confidence of an interval at this level: `99.8148 %`.
pub fn confidence(level: Alpha) -> String {
    let shown = format!("{:.4}", (1.0 - level.get()) * 100.0);
    format!("{} %", shown.trim_end_matches('0').trim_end_matches('.'))
}

/// A list of things with this between them.
pub fn listed<T: ToString>(all: impl IntoIterator<Item = T>, between: &str) -> String {
    all.into_iter().map(|one| one.to_string()).collect::<Vec<_>>().join(between)
}

/// A question for a hint: the name that a misspelt one resembles most; empty if it resembles none.
pub fn meant<'a>(typed: &str, names: impl IntoIterator<Item = &'a str>) -> String {
    // The threshold of 0.7 is clap's.
    let alike =
        names.into_iter().map(|name| (strsim::jaro(typed, name), name)).filter(|(alike, _)| *alike > 0.7);
    let most = alike.max_by(|(one, _), (other, _)| one.total_cmp(other));
    most.map_or_else(String::new, |(_, name)| format!("did you mean `{name}`? "))
}

/// Names in a list, each in backticks.
pub fn quoted<T: Display>(names: impl IntoIterator<Item = T>) -> String {
    listed(names.into_iter().map(|name| format!("`{name}`")), ", ")
}

/// Words as a user types them into a shell: those with special characters are quoted.
pub fn in_shell<T: AsRef<str>>(words: impl IntoIterator<Item = T>) -> String {
    let is_plain = |letter: char| letter.is_alphanumeric() || "%+,-./:=@_".contains(letter);
    let typed = |word: T| match word.as_ref() {
        word if !word.is_empty() && word.chars().all(is_plain) => word.to_owned(),
        word => format!("'{}'", word.replace('\'', "'\\''")),
    };
    listed(words.into_iter().map(typed), " ")
}

/// Names in a row: `a, b or c`.
pub fn joined(names: &[String], word: &str) -> String {
    match names {
        [] => String::new(),
        [only] => only.clone(),
        [most @ .., last] => format!("{} {word} {last}", most.join(", ")),
    }
}

/// An addition to a name in brackets, such as its setting; empty if there is none.
pub fn in_brackets(text: &str) -> String {
    if text.is_empty() { String::new() } else { format!(" ({text})") }
}

/// The same after a comma.
pub fn after_comma(text: &str) -> String {
    if text.is_empty() { String::new() } else { format!(", {text}") }
}

/// A sentence, beginning with a capital letter.
pub fn capital(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().into_iter().flat_map(char::to_uppercase).chain(letters).collect()
}

/// A ratio with its interval as percent more or less, such as `+12 % [+10, +15]`.
pub fn in_percent(ratio: &Estimate) -> String {
    in_one(percent_parts(ratio))
}

/// The same in two parts: the value, and the interval in brackets, empty if there is none.
pub fn percent_parts(ratio: &Estimate) -> (String, String) {
    let value = (ratio.value - 1.0) * 100.0;
    let decimals = usize::from(value.abs() < 9.95);
    let shown = |ratio: f64| {
        let percent = (ratio - 1.0) * 100.0;
        let sign = if percent > 0.0 { "+" } else { "" };
        format!("{sign}{}", number(percent, decimals))
    };
    let interval = ratio.interval.map(|one| format!("[{}, {}]", shown(one.low), shown(one.high)));
    (format!("{} %", shown(ratio.value)), interval.unwrap_or_default())
}

/// The scale for a column of values of very different sizes: that of their geometric middle.
pub fn common_scale(unit: Unit, values: impl IntoIterator<Item = f64>) -> Scale {
    let logs = values.into_iter().filter(|value| *value > 0.0 && value.is_finite()).map(f64::ln);
    let (low, high) =
        logs.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), log| (low.min(log), high.max(log)));
    let middle = if low.is_finite() { f64::midpoint(low, high).exp() } else { 0.0 };
    // Nanoseconds for a column of zeros would be odd.
    unit.scale_for(if middle > 0.0 { middle } else { 1e-3 })
}

/// Numbers under each other with their decimal points in one column.
pub fn align_points(numbers: &[String]) -> Vec<String> {
    let split = |text: &str| -> (usize, usize) {
        let point = text.find('.').unwrap_or(text.len());
        (width(&text[..point]), width(&text[point..]))
    };
    let before = numbers.iter().map(|text| split(text).0).max().unwrap_or(0);
    let after = numbers.iter().map(|text| split(text).1).max().unwrap_or(0);
    let one = |text: &String| {
        let (left, right) = split(text);
        format!("{}{text}{}", " ".repeat(before - left), " ".repeat(after - right))
    };
    numbers.iter().map(one).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_shell_takes_a_line_apart_into_the_words_that_it_was_made_of() {
        let words =
            ["run", "--cmd", "sleep 0.05", "a<b", "it's", "", "-s", "docker:net=none,log=none", "~", "$x"];
        let line = in_shell(words);
        assert_eq!(shlex::split(&line).unwrap(), words);
        assert_eq!(line, r"run --cmd 'sleep 0.05' 'a<b' 'it'\''s' '' -s docker:net=none,log=none '~' '$x'");
    }

    #[test]
    fn what_could_fool_a_terminal_is_taken_out() {
        assert_eq!(clean("a\x1b[31mred\x1b[0m b"), "ared b");
        assert_eq!(clean("\x1b]0;title\x07x\x1b]8;;http://e\x1b\\y"), "xy");
        assert_eq!(clean("line\r\n\tnext\n"), "line next");
        assert_eq!(clean("\u{9b}2Jgone\u{202e}txt\u{200d}\u{7f}"), "gonetxt");
        assert_eq!(clean("\x1b(Bx\x1bcy"), "xy");
    }

    #[test]
    fn labels_lose_their_middle() {
        assert_eq!(shorten("docker+crun", 11), "docker+crun");
        assert_eq!(shorten("docker+crun:net=host", 11), "docke…=host");
        assert_eq!(shorten("日本語日本語", 6), "日…語");
        assert_eq!(shorten("abc", 0), "");
    }

    #[test]
    fn numbers_have_three_digits_and_their_points_under_each_other() {
        let shown: Vec<_> = [0.0213, 0.8124, 5.904, 21.6, 9.9996, 220.4, 0.0]
            .iter()
            .map(|value| number(*value, decimals(*value)))
            .collect();
        assert_eq!(shown, ["0.0213", "0.812", "5.90", "21.6", "10.0", "220", "0"]);
        assert_eq!(align_points(&shown[1..4]), [" 0.812", " 5.90 ", "21.6  "]);
        assert_eq!(number(-0.0001, 2), "0.00");
        assert_eq!([percent(0.0051), percent(0.34), percent(0.0)], ["0.51 %", "34 %", "0 %"]);
    }

    #[test]
    fn a_value_and_its_interval_have_one_unit_in_which_no_end_is_long() {
        let shown = |value: f64, low: f64, high: f64| {
            with_interval(Unit::Seconds, value * 1e-9, Some((low * 1e-9, high * 1e-9)))
        };
        assert_eq!(shown(-12.3e6, -14e6, -10.1e6), "−12.3 ms [−14.0, −10.1]");
        assert_eq!(shown(-894.0, -18_882.0, 16_649.0), "−0.9 µs [−18.9, 16.6]");
        // A value known to less than a hundredth keeps its digits, though one end is beyond a power of ten.
        assert_eq!(shown(9.953e6, 9.94e6, 10.02e6), "9.95 ms [9.94, 10.02]");
        assert_eq!(shown(895e3, 870e3, 1003e3), "0.90 ms [0.87, 1.00]");
        // An end that is not zero does not read as zero.
        assert_eq!(shown(0.7, 0.03, 10.9), "0.7 ns [0.03, 10.9]");
        assert_eq!(shown(0.0, 0.0, 2.216), "0.00 ns [0.00, 2.22]");
        assert_eq!(with_interval(Unit::Seconds, 0.0, None), "0 ns");
    }

    #[test]
    fn escaped_json_says_the_same_and_controls_nothing() {
        let text = "a\u{9b}2J\u{202e}b\u{e0041}\x1b[1m\n\"";
        let json = escaped(&serde_json::to_string(text).unwrap());
        assert!(json.is_ascii() && !json.chars().any(char::is_control), "{json}");
        assert_eq!(serde_json::from_str::<String>(&json).unwrap(), text);
    }

    proptest! {
        #[test]
        fn cleaned_text_is_visible_and_stays_so(text in "(\\PC|\\p{Cc}|\u{1b}\\[|\u{202e}){0,40}") {
            let once = clean(&text);
            prop_assert!(!once.chars().any(char::is_control));
            prop_assert_eq!(clean(&once), once);
        }

        #[test]
        fn no_line_is_wider_than_asked(text in "(\\PC|  | ){0,120}", columns in 8usize..60) {
            let text = clean(&text);
            prop_assert!(width(&shorten(&text, columns)) <= columns);
            prop_assert_eq!(width(&left(&text, columns)), columns);
            for line in wrap("  x ", &text, columns) {
                prop_assert!(width(&line) <= columns, "{line:?}");
            }
        }
    }
}
