//! A picture as SVG: one document with its title, the text for whoever does not see it, and marks that know
//! their subject. Colours are classes only, so that a page can give them its own theme.
//!
//! Whatever comes from outside is escaped here, in the only two places that write text or an attribute.

use askama::filters::{Html, escape};

use super::letters::{width, wrap};
use super::{Drawing, Picture};

/// What the document is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Style {
    /// A file by itself: title, caption, colours and background are in it.
    Standalone,
    /// Part of a page that says title and caption itself and holds [`css`] once.
    Inline,
}

/// The width of every picture, in its own units.
pub const WIDTH: f64 = 760.0;
/// The width of a picture that stands beside a table.
const NARROW: f64 = 560.0;
/// What is left free at the sides.
pub(super) const SIDE: f64 = 14.0;
/// Type sizes of the title, of labels and of what explains.
const TITLE: f64 = 15.0;
pub(super) const LABEL: f64 = 12.0;
pub(super) const SMALL: f64 = 11.0;
/// Bold letters are up to an eighth wider than others.
const BOLD: f64 = 1.125;

/// Colours that the colour-blind can tell apart (M. Okabe and K. Ito, "Color Universal Design", 2002), and on
/// dark ground the same, some lighter: ink, orange, sky blue, green, blue, vermilion, purple.
const PALETTES: [[&str; 7]; 2] = [
    ["#222222", "#e69f00", "#56b4e9", "#009e73", "#0072b2", "#d55e00", "#cc79a7"],
    ["#e8e8e8", "#e69f00", "#8fd0f5", "#2fc79b", "#4aa8e6", "#f0803c", "#e09cc4"],
];
/// How many colours there are.
pub(super) const COLOURS: usize = PALETTES[0].len();
/// Steps of a heat map, from little to much.
const HEATS: [[&str; 7]; 2] = [
    ["#f7fbff", "#deebf7", "#c6dbef", "#9ecae1", "#6baed6", "#2f7fbc", "#08519c"],
    ["#182430", "#1c3348", "#1f4463", "#215a86", "#2a76ad", "#5aa2d6", "#b5dcf7"],
];

/// How many of them there are.
pub(super) const HEAT_STEPS: usize = HEATS[0].len();

/// Paper, ink, what helps reading, grids, and what is wrong.
const PLAIN: [[&str; 5]; 2] = [
    ["#ffffff", "#222222", "#5f6368", "#e3e5e8", "#b3261e"],
    ["#16181c", "#e8e8e8", "#a4a9b0", "#33373d", "#ff8a80"],
];

/// The rules that give pictures their colours, each made of one on white and one on nearly black ground.
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
        // Dark steps of light ground, and light ones of dark ground, bear letters of the other kind.
        let (colour, letters) = (colour(light, dark), if number >= 5 { &paper } else { &ink });
        rules.push_str(&format!(".h{number} .mark{{fill:{colour}}}.h{number} .ink{{fill:{letters}}}"));
    }
    rules
}

/// What holds in every theme: shapes of lines and letters.
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

/// At which end of a text its place is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum End {
    Start,
    Middle,
    Last,
}

/// What has been drawn so far.
pub(super) struct Canvas {
    body: String,
    /// How wide it is; only drawings that ask can be narrower than [`WIDTH`].
    pub width: f64,
}

impl Canvas {
    /// Letters on a base line.
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

    /// Any line or area, in the words of SVG.
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

    /// What follows until [`Canvas::end`] belongs to a subject, and says this where it is pointed at.
    pub fn subject(&mut self, class: &str, label: &str, hover: &str) {
        self.body.push_str(&format!(
            "<g class=\"subject {class}\" data-subject=\"{}\"><title>{}</title>",
            escaped(label),
            escaped(hover)
        ));
    }

    /// What follows until [`Canvas::end`] has a class in common.
    pub fn group(&mut self, class: &str) {
        self.body.push_str(&format!("<g class=\"{class}\">"));
    }

    /// Ends what was begun last.
    pub fn end(&mut self) {
        self.body.push_str("</g>");
    }

    /// The mark of a layer, so that colour is not the only thing that tells it.
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

/// How much of a horizontal axis the label of a tick takes, with a gap.
pub(super) fn tick_room(label: &str) -> f64 {
    width(label, SMALL) + 14.0
}

/// A place with as many digits as can be seen.
pub(super) fn short(place: f64) -> String {
    let text = format!("{place:.1}");
    let text = text.strip_suffix(".0").unwrap_or(&text);
    if text == "-0" { "0".to_owned() } else { text.to_owned() }
}

/// Text as it may stand in an element or in an attribute.
pub fn escaped(text: &str) -> String {
    // What XML has no way to say.
    let text = text.replace(['\u{fffe}', '\u{ffff}'], "\u{fffd}").replace(char::is_control, " ");
    escape(text, Html).map_or_else(|never| match never {}, |escaped| escaped.to_string())
}
