//! Is any of the commonest relapses of the style sheet left in a string, a comment or a document?
//!
//! The phrases are those of the table in CONTRIBUTING.md, so that people and this test read the same list. Deliberately
//! absent: any judgement of style beyond it.

/// The phrases in the left column of the style sheet's table.
pub fn relapses(contributing: &str) -> Vec<String> {
    let table = contributing.lines().skip_while(|line| *line != "| not | but |").skip(2);
    let rows = table.take_while(|line| line.starts_with('|'));
    let left = rows.filter_map(|row| row.split('|').nth(1));
    left.flat_map(|cell| cell.split('`').skip(1).step_by(2)).map(str::to_lowercase).collect()
}

/// A complaint for each line of `text` that has one of the phrases as whole words. In a source file, what is code is
/// left out: a name may be what it likes.
pub fn complaints(path: &str, text: &str, relapses: &[String]) -> Vec<String> {
    let lines = text.lines().enumerate();
    let found = lines.flat_map(|(at, line)| {
        let lower = without_names(line).to_lowercase();
        let has = move |phrase: &&String| has_phrase(&lower, phrase);
        relapses.iter().filter(has).map(move |phrase| (at, line, phrase)).collect::<Vec<_>>()
    });
    let complaint = |(at, line, phrase): (usize, &str, &String)| {
        format!("{path}: line {}: `{phrase}`: {}", at + 1, line.trim())
    };
    found.map(complaint).collect()
}

/// A line without what is in backticks or braces: names in code, and what a message is filled with.
fn without_names(line: &str) -> String {
    let outside = line.split('`').step_by(2).collect::<Vec<_>>().join("``");
    let outside = outside.split('{').map(|part| part.split_once('}').map_or(part, |(_, rest)| rest));
    outside.collect::<Vec<_>>().join("{}")
}

/// Whether a line holds the phrase, not as a part of longer words or of a name in code.
fn has_phrase(line: &str, phrase: &str) -> bool {
    let is_part = |c: Option<char>| c.is_some_and(|c| c.is_alphanumeric() || c == '_' || c == '-');
    line.match_indices(phrase).any(|(at, _)| {
        !is_part(line[..at].chars().next_back()) && !is_part(line[at + phrase.len()..].chars().next())
    })
}

#[test]
fn a_phrase_is_found_as_whole_words_only() {
    let sheet = "text `nobody`\n\n| not | but |\n| --- | --- |\n| `is no number`, `beside` | next to |\n\n| `x` | y |";
    let phrases = relapses(sheet);
    assert_eq!(phrases, ["is no number", "beside"]);
    let count = |line: &str| complaints("a.md", line, &phrases).len();
    for wrong in ["`x` is no number", "Beside it", "{x} is no number beside `y`"] {
        assert!(count(wrong) > 0, "{wrong}");
    }
    assert_eq!(count("is no number beside"), 2);
    for fine in
        ["besides", "beside_it", "is no numbers", "it is not a number", "x-beside", "`beside`", "{beside}"]
    {
        assert_eq!(count(fine), 0, "{fine}");
    }
}
