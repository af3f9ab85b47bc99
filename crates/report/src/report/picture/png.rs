//! A picture as PNG: its SVG, rasterised with embedded fonts, since a machine may have none.

use std::sync::{Arc, OnceLock};

use anyhow::{Context, Result};
use resvg::tiny_skia::{Pixmap, Transform};
use resvg::usvg::fontdb::Database;
use resvg::usvg::{Options, Tree};

use super::Picture;
use super::svg::{Style, draw};

/// A part of DejaVu Sans: Latin, Greek, Cyrillic and signs. Letters of other scripts are drawn as boxes.
const TYPEFACES: [&[u8]; 2] =
    [include_bytes!("font/DejaVuSans.ttf"), include_bytes!("font/DejaVuSans-Bold.ttf")];
const FAMILY: &str = "DejaVu Sans";

/// The picture with so many pixels for each unit of the drawing.
pub fn draw_at(picture: &Picture, scale: f32) -> Result<Vec<u8>> {
    rasterised(&draw(picture, Style::Standalone), scale)
        .with_context(|| format!("cannot draw the picture `{}`", picture.name))
}

fn rasterised(svg: &str, scale: f32) -> Result<Vec<u8>> {
    let options = Options { fontdb: typefaces(), font_family: FAMILY.into(), ..Options::default() };
    let tree = Tree::from_str(svg, &options)?;
    let size = tree.size();
    let pixels = |length: f32| (length * scale).round() as u32;
    let mut pixmap =
        Pixmap::new(pixels(size.width()), pixels(size.height())).context("its area is zero or too large")?;
    resvg::render(&tree, Transform::from_scale(scale, scale), &mut pixmap.as_mut());
    Ok(pixmap.encode_png()?)
}

fn typefaces() -> Arc<Database> {
    static TYPEFACES_READ: OnceLock<Arc<Database>> = OnceLock::new();
    let read = || {
        let mut database = Database::new();
        TYPEFACES.iter().for_each(|typeface| database.load_font_data(typeface.to_vec()));
        database.set_sans_serif_family(FAMILY);
        Arc::new(database)
    };
    TYPEFACES_READ.get_or_init(read).clone()
}
