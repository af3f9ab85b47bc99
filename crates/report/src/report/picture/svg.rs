//! A picture as SVG: one document with its title, a text for readers who cannot see it, and marks that name their
//! subject. Colours are classes only, so that a page can apply its own theme.
//!
//! Texts from outside are escaped here, in the only two places that write text or an attribute.

use askama::filters::{Html, escape};

use super::letters::{width, wrap};
use super::{Drawing, Picture};

/// The use of the document.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Style {
    /// A separate file, with title, caption, colours and background.
    Standalone,
    /// Part of a page, which shows title and caption itself and includes [`css`] once.
    Inline,
}

/// The width of every picture, in its own units.
pub const WIDTH: f64 = 760.0;
/// The width of a picture next to a table.
const NARROW: f64 = 560.0;
/// The space at the sides.
pub(super) const SIDE: f64 = 14.0;
/// Type sizes of titles, labels and notes.
const TITLE: f64 = 15.0;
pub(super) const LABEL: f64 = 12.0;
pub(super) const SMALL: f64 = 11.0;
/// Bold letters are up to an eighth wider than others.
const BOLD: f64 = 1.125;

/// Colours that colour-blind readers can distinguish (M. Okabe and K. Ito, "Color Universal Design", 2002), some of
/// them lighter on a dark background: ink, orange, sky blue, green, blue, vermilion, purple.
const PALETTES: [[&str; 7]; 2] = [
    ["#222222", "#e69f00", "#56b4e9", "#009e73", "#0072b2", "#d55e00", "#cc79a7"],
    ["#e8e8e8", "#e69f00", "#8fd0f5", "#2fc79b", "#4aa8e6", "#f0803c", "#e09cc4"],
];
/// The number of colours.
pub(super) const COLOURS: usize = PALETTES[0].len();
/// Steps of a heat map, from small to large.
const HEATS: [[&str; 7]; 2] = [
    ["#f7fbff", "#deebf7", "#c6dbef", "#9ecae1", "#6baed6", "#2f7fbc", "#08519c"],
    ["#182430", "#1c3348", "#1f4463", "#215a86", "#2a76ad", "#5aa2d6", "#b5dcf7"],
];

/// The number of steps.
pub(super) const HEAT_STEPS: usize = HEATS[0].len();

/// Colours of paper, ink, secondary text, grids and alarms.
const PLAIN: [[&str; 5]; 2] = [
    ["#ffffff", "#222222", "#5f6368", "#e3e5e8", "#b3261e"],
    ["#16181c", "#e8e8e8", "#a4a9b0", "#33373d", "#ff8a80"],
];

/// The rules for the colours of pictures, each made of a colour on white and one on nearly black.
pub fn css(colour: impl Fn(&str, &str) -> String) -> String {
    let [paper, ink, faint, grid, alarm] =
        std::array::from_fn(|index| colour(PLAIN[0][index], PLAIN[1][index]));
    let mut rules = format!(
        ".paper{{fill:{paper}}}.ink{{fill:{ink}}}.faint{{fill:{faint}}}.alarm{{fill:{alarm}}}\
         .grid{{stroke:{grid}}}.axis{{stroke:{faint}}}"
    );
    for (number, (light, dark)) in PALETTES[0].iter().zip(PALETTES[1]).enumerate() {
        let colour = colour(light, dark);
        rules.push_str(&format!(
            ".k{number} .mark{{fill:{colour}}}.k{number} .line,.k{number}.hollow .mark{{stroke:{colour}}}"
        ));
    }
    for (number, (light, dark)) in HEATS[0].iter().zip(HEATS[1]).enumerate() {
        // Dark steps on light ground, and light steps on dark ground, need the opposite text colour.
        let (colour, letters) = (colour(light, dark), if number >= 5 { &paper } else { &ink });
        rules.push_str(&format!(".h{number} .mark{{fill:{colour}}}.h{number} .ink{{fill:{letters}}}"));
    }
    rules
}

/// Rules for every theme: shapes of lines and letters.
pub const SHAPES: &str = "text{font-family:\"DejaVu Sans\",Verdana,system-ui,sans-serif}\
    .title{font-weight:bold}\
    .grid,.axis{fill:none;stroke-width:1}\
    .line{fill:none;stroke-width:2;stroke-linejoin:round}\
    .thin{stroke-width:1.4}\
    .points{stroke-width:4;stroke-linecap:round}\
    .dots{fill:none;stroke-width:3.4;stroke-linecap:round;opacity:.38}\
    .band{fill-opacity:.16}\
    .light .line,.light .mark{opacity:.5}\
    .light .dots{opacity:.2}\
    .hollow .mark{fill-opacity:0;stroke-width:1.6}\
    .d1{stroke-dasharray:7 3}\
    .d2{stroke-dasharray:2 2.5}\
    .d3{stroke-dasharray:9 3 2 3}";

/// The whole document.
pub fn draw(picture: &Picture, style: Style) -> String {
    let width = match (&picture.drawing, style) {
        (Drawing::Rows(rows), Style::Inline) if !rows.legend.is_empty() => NARROW,
        _ => WIDTH,
    };
    let mut canvas = Canvas { body: String::new(), width };
    let mut top = 8.0;
    if style == Style::Standalone {
        for line in wrap(&picture.title, TITLE * BOLD, WIDTH - 2.0 * SIDE) {
            top += TITLE * 1.3;
            canvas.text("ink title", (SIDE, top), End::Start, TITLE, &line);
        }
        top += 10.0;
    }
    let mut bottom = match &picture.drawing {
        Drawing::Rows(drawing) => drawing.draw(&mut canvas, top),
        Drawing::Plane(drawing) => drawing.draw(&mut canvas, top),
        Drawing::Grid(drawing) => drawing.draw(&mut canvas, top),
    };
    if style == Style::Standalone {
        bottom += 6.0;
        for line in picture.caption.iter().flat_map(|text| wrap(text, SMALL, WIDTH - 2.0 * SIDE)) {
            bottom += SMALL * 1.45;
            canvas.text("faint", (SIDE, bottom), End::Start, SMALL, &line);
        }
    }
    let height = (bottom + 12.0).ceil();
    let (name, title, alternative) =
        (escaped(&picture.name), escaped(&picture.title), escaped(&picture.alternative));
    let mut text = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"picture\" viewBox=\"0 0 {width} {height}\""
    );
    if style == Style::Standalone {
        text.push_str(&format!(" width=\"{WIDTH}\" height=\"{height}\""));
    }
    text.push_str(&format!(
        " role=\"img\" aria-labelledby=\"{name}-title {name}-desc\"><title id=\"{name}-title\">{title}</title>\
         <desc id=\"{name}-desc\">{alternative}</desc>"
    ));
    if style == Style::Standalone {
        let (light, dark) = (css(|light, _| light.to_owned()), css(|_, dark| dark.to_owned()));
        text.push_str(&format!(
            "<style>{SHAPES}{light}@media (prefers-color-scheme:dark){{{dark}}}</style>\
             <rect class=\"paper\" width=\"{WIDTH}\" height=\"{height}\"/>"
        ));
    }
    text + &canvas.body + "</svg>\n"
}

/// The end of a text that its position refers to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum End {
    Start,
    Middle,
    Last,
}

/// A drawing under construction.
pub(super) struct Canvas {
    body: String,
    /// Its width, which a drawing can make narrower than [`WIDTH`].
    pub width: f64,
}

impl Canvas {
    /// A text on a base line.
    pub fn text(&mut self, class: &str, at: (f64, f64), end: End, size: f64, text: &str) {
        let anchor = match end {
            End::Start => "",
            End::Middle => " text-anchor=\"middle\"",
            End::Last => " text-anchor=\"end\"",
        };
        self.body.push_str(&format!(
            "<text class=\"{class}\" x=\"{}\" y=\"{}\" font-size=\"{size}\"{anchor}>{}</text>",
            short(at.0),
            short(at.1),
            escaped(text)
        ));
    }

    /// A straight line.
    pub fn line(&mut self, class: &str, from: (f64, f64), to: (f64, f64)) {
        let [x, y, across, down] = [from.0, from.1, to.0, to.1].map(short);
        self.path(class, &format!("M{x} {y}L{across} {down}"));
    }

    /// Any line or area, as an SVG path.
    pub fn path(&mut self, class: &str, path: &str) {
        self.body.push_str(&format!("<path class=\"{class}\" d=\"{path}\"/>"));
    }

    /// Small round dots.
    pub fn dots(&mut self, class: &str, places: impl Iterator<Item = (f64, f64)>) {
        let path: String = places.map(|(x, y)| format!("M{} {}h0", short(x), short(y))).collect();
        if !path.is_empty() {
            self.path(class, &path);
        }
    }

    /// A rectangle.
    pub fn rectangle(&mut self, class: &str, at: (f64, f64), size: (f64, f64)) {
        let [x, y, width, height] = [at.0, at.1, size.0.max(0.0), size.1.max(0.0)].map(short);
        self.body.push_str(&format!(
            "<rect class=\"{class}\" x=\"{x}\" y=\"{y}\" width=\"{width}\" height=\"{height}\"/>"
        ));
    }

    /// Begins a group that belongs to a subject and shows these words under the pointer, until [`Canvas::end`].
    pub fn subject(&mut self, class: &str, label: &str, hover: &str) {
        self.body.push_str(&format!(
            "<g class=\"subject {class}\" data-subject=\"{}\"><title>{}</title>",
            escaped(label),
            escaped(hover)
        ));
    }

    /// Begins a group with a class, until [`Canvas::end`].
    pub fn group(&mut self, class: &str) {
        self.body.push_str(&format!("<g class=\"{class}\">"));
    }

    /// Ends the last group.
    pub fn end(&mut self) {
        self.body.push_str("</g>");
    }

    /// The mark of a layer, so that colour is not its only sign.
    pub fn mark(&mut self, layer: &str, at: (f64, f64), size: f64) {
        let (x, y) = at;
        let points: &[(f64, f64)] = match layer {
            "bare" => &[(-0.9, -0.9), (0.9, -0.9), (0.9, 0.9), (-0.9, 0.9)],
            "floor" => &[(0.0, -1.15), (1.1, 0.85), (-1.1, 0.85)],
            "runtime" => &[(0.0, -1.3), (1.3, 0.0), (0.0, 1.3), (-1.3, 0.0)],
            _ => &[],
        };
        if points.is_empty() {
            let [x, y, size] = [x, y, size].map(short);
            self.body.push_str(&format!("<circle class=\"mark\" cx=\"{x}\" cy=\"{y}\" r=\"{size}\"/>"));
            return;
        }
        let corner = |(dx, dy): &(f64, f64)| format!("{} {}", short(x + dx * size), short(y + dy * size));
        self.path("mark", &format!("M{}Z", points.iter().map(corner).collect::<Vec<_>>().join("L")));
    }
}

/// The width of a tick's label on a horizontal axis, with a gap.
pub(super) fn tick_room(label: &str) -> f64 {
    width(label, SMALL) + 14.0
}

/// A position with as many digits as are visible.
pub(super) fn short(place: f64) -> String {
    let text = format!("{place:.1}");
    let text = text.strip_suffix(".0").unwrap_or(&text);
    if text == "-0" { "0".to_owned() } else { text.to_owned() }
}

/// Text escaped for an element or an attribute.
pub fn escaped(text: &str) -> String {
    // Characters that XML cannot represent.
    let text = text.replace(['\u{fffe}', '\u{ffff}'], "\u{fffd}").replace(char::is_control, " ");
    escape(text, Html).map_or_else(|never| match never {}, |escaped| escaped.to_string())
}
