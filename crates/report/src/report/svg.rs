//! The format `svg`: every picture of a run as a file of its own, the summary first, each with its words and its
//! data beside it.

use super::model::Report;
use super::{File, Format, Look, Rendering, picture};

/// The format `svg`.
pub struct Svg;

impl Format for Svg {
    fn name(&self) -> &'static str {
        "svg"
    }

    fn description(&self) -> &'static str {
        "a directory of pictures, light or dark as the viewer prefers, each with its words and data"
    }

    fn rendering(&self) -> Rendering {
        Rendering::Files(render)
    }
}

/// Two files a picture: itself, and its words and data.
pub fn render(report: &Report, _: &Look) -> anyhow::Result<Vec<File>> {
    let files = |picture: picture::Picture| {
        let bytes = picture::svg::draw(&picture, picture::svg::Style::Standalone).into_bytes();
        [File { name: format!("{}.svg", picture.name), bytes }, picture.words()]
    };
    Ok(picture::all(report).into_iter().flat_map(files).collect())
}
