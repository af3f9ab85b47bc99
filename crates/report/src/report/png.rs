//! The format `png`: every picture of a run in two sizes, the summary first, each with its words and its data
//! beside it.

use super::model::Report;
use super::{File, Format, Look, Rendering, picture};

/// Pixels for each unit of a drawing, and what is appended to the name of the file.
const SIZES: [(f32, &str); 2] = [(1.0, ""), (2.0, "@2x")];

/// The format `png`.
pub struct Png;

impl Format for Png {
    fn name(&self) -> &'static str {
        "png"
    }

    fn description(&self) -> &'static str {
        "a directory of pictures in two sizes, each with its words and data"
    }

    fn rendering(&self) -> Rendering {
        Rendering::Files(render)
    }
}

/// Two files a picture, and one for who does not see it.
pub fn render(report: &Report, _: &Look) -> anyhow::Result<Vec<File>> {
    let mut files = Vec::new();
    for picture in picture::all(report) {
        for (scale, mark) in SIZES {
            let bytes = picture::png::draw_at(&picture, scale)?;
            files.push(File { name: format!("{}{mark}.png", picture.name), bytes });
        }
        files.push(picture.words());
    }
    Ok(files)
}
