//! Sentences in which backticks mark code; everything else is text.

use askama::Template;
use askama::filters::HtmlSafe;

/// A sentence, escaped by its own template.
#[derive(Debug, Template)]
#[template(path = "prose.html")]
pub(crate) struct Prose {
    /// Text and code in turn.
    pieces: Vec<String>,
}

impl HtmlSafe for Prose {}

/// The sentence with its code marked; unpaired backticks stay. A number and its per cent sign stay on one line.
pub(crate) fn prose(text: &str) -> Prose {
    let text = text.replace(" %", "\u{a0}%");
    let mut pieces: Vec<String> = text.split('`').map(str::to_owned).collect();
    if pieces.len().is_multiple_of(2)
        && let Some(last) = pieces.pop()
    {
        let before = pieces.last_mut().expect("there were two");
        *before += &format!("`{last}");
    }
    Prose { pieces }
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
