//! The format `svg`: every picture of a run as a file of its own, the summary first.

use super::model::Report;
use super::{File, Format, Look, Rendering, picture};

/// The format `svg`.
pub struct Svg;

impl Format for Svg {
    fn name(&self) -> &'static str {
        "svg"
    }

    fn description(&self) -> &'static str {
        "a directory of pictures, light or dark as the viewer prefers"
    }

    fn rendering(&self) -> Rendering {
        Rendering::Files(render)
    }
}

/// A file a picture.
pub fn render(report: &Report, _: &Look) -> anyhow::Result<Vec<File>> {
    let file = |picture: picture::Picture| File {
        name: format!("{}.svg", picture.name),
        bytes: picture::svg::draw(&picture, picture::svg::Style::Standalone).into_bytes(),
    };
    Ok(picture::all(report).into_iter().map(file).collect())
}
