//! What every page has: its title, the style and script that are in it, the policy that allows these and nothing else,
//! and the subjects that a reader can show or hide.

use base64::Engine;
use sha2::{Digest, Sha256};

use crate::report::picture::svg::{self, Theme};

/// The page's own style; pictures bring theirs.
const STYLE: &str = include_str!("page.css");
const SCRIPT: &str = include_str!("page.js");

/// What `base.html` needs.
pub(crate) struct Frame {
    pub title: String,
    /// The version that made what is shown.
    pub dunnage: String,
    pub style: String,
    pub script: &'static str,
    pub style_hash: String,
    pub script_hash: String,
    /// The labels of all subjects, to be shown or hidden.
    pub labels: Vec<String>,
}

impl Frame {
    pub fn of(title: String, dunnage: &str, labels: Vec<String>) -> Frame {
        let style = style();
        Frame {
            title,
            dunnage: dunnage.to_owned(),
            style_hash: hash(&style),
            style,
            script: SCRIPT,
            script_hash: hash(SCRIPT),
            labels,
        }
    }
}

/// The page's style and that of pictures: light, and dark where the system or the reader asks for it, though not
/// on paper.
fn style() -> String {
    let [light, as_system, chosen] = [
        (Theme::Light, "figure"),
        (Theme::Dark, ":root:not([data-theme=\"light\"]) figure"),
        (Theme::Dark, ":root[data-theme=\"dark\"] figure"),
    ]
    .map(|(theme, scope)| svg::css(theme, scope));
    let shapes = svg::shapes("figure");
    format!(
        "{STYLE}{shapes}{light}@media screen and (prefers-color-scheme:dark){{{as_system}}}@media screen{{{chosen}}}"
    )
}

/// As a page's policy names a style or a script.
fn hash(text: &str) -> String {
    format!("sha256-{}", base64::engine::general_purpose::STANDARD.encode(Sha256::digest(text)))
}
