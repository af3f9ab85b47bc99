//! The width of a text, in a typeface that is wider than most, so that a page with another one has room to spare.

use unicode_width::UnicodeWidthChar;

/// Advance widths of the ASCII characters in DejaVu Sans, from the space on, in thousandths of the type size.
const ADVANCES: [u16; 95] = [
    318, 401, 460, 838, 636, 950, 780, 275, 390, 390, 500, 838, 318, 361, 318, 337, 636, 636, 636, 636, 636,
    636, 636, 636, 636, 636, 337, 337, 838, 838, 838, 531, 1000, 684, 686, 698, 770, 632, 575, 775, 752, 295,
    295, 656, 557, 863, 748, 787, 603, 787, 695, 635, 611, 732, 684, 989, 685, 611, 685, 390, 337, 390, 838,
    500, 500, 613, 635, 550, 635, 615, 352, 635, 634, 278, 278, 579, 278, 974, 634, 612, 635, 635, 411, 521,
    392, 634, 592, 818, 592, 592, 525, 636, 337, 636, 838,
];
/// The width of any other character for each terminal column: that of the signs `×`, `→` and `≈`.
const OTHER: u16 = 838;

/// The width of a text in a type size, in the unit of the size.
pub fn width(text: &str, size: f64) -> f64 {
    text.chars().map(|letter| f64::from(advance(letter))).sum::<f64>() * size / 1000.0
}

fn advance(letter: char) -> u16 {
    let known = (letter as usize).checked_sub(32).and_then(|index| ADVANCES.get(index));
    known.copied().unwrap_or_else(|| match letter.width().unwrap_or(0) {
        0 => 0,
        1 => OTHER,
        _ => 2 * OTHER,
    })
}

/// The text, without its middle if there is no room: labels begin with their kind and end with what distinguishes
/// them.
pub fn shorten(text: &str, size: f64, room: f64) -> String {
    let letters = text.chars().count();
    let kept = |count: usize| crate::report::text::shorten(text, count);
    let fitting = (0..=2 * letters).rev().map(kept).find(|short| width(short, size) <= room);
    fitting.unwrap_or_default()
}

/// A label on one line, or on two if it does not fit: broken after a part (`docker:`, `log=none,`), and shortened
/// only if that is not enough.
pub fn in_two(text: &str, size: f64, room: f64) -> Vec<String> {
    if width(text, size) <= room {
        return vec![text.to_owned()];
    }
    let ends = text.match_indices([':', ',', '+', ' ']).map(|(at, end)| at + end.len());
    let fitting: Vec<usize> = ends.filter(|&end| width(&text[..end], size) <= room).collect();
    match fitting.last() {
        Some(&end) => vec![text[..end].trim_end().to_owned(), shorten(text[end..].trim_start(), size, room)],
        None => vec![shorten(text, size, room)],
    }
}

/// The text in lines that fit.
pub fn wrap(text: &str, size: f64, room: f64) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split(' ').filter(|word| !word.is_empty()) {
        match lines.last_mut() {
            Some(line) if width(line, size) + width(" ", size) + width(word, size) <= room => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(shorten(word, size, room)),
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_label_that_does_not_fit_is_broken_before_it_is_shortened() {
        let two = |text: &str| in_two(text, 12.0, 172.0);
        assert_eq!(two("docker+crun"), ["docker+crun"]);
        assert_eq!(
            two("containerd:log=none,net=none,seccomp=default"),
            ["containerd:log=none,", "net=none,seccomp=default"]
        );
        let long = two("a label that says so much that two lines have no room for all that it says");
        assert!(long.len() == 2 && long[1].contains('…'), "{long:?}");
        let solid = "x".repeat(90);
        assert_eq!(two(&solid).len(), 1);
        for line in two(&solid).iter().chain(&long) {
            assert!(width(line, 12.0) <= 172.0, "{line}");
        }
    }
}
