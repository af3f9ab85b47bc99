//! The image's root on disk, for subjects that need no engine: `small`, which every session unpacks, or
//! `fat`, which is made when somebody asks for it and stays, as a cache that `sweep` removes.

use super::spec::{Key, Values};
use super::{Spec, Stage};
use crate::image::rootfs::{Unpacked, unpack};
use crate::image::{FatImage, SmallImage, fat};
use crate::sys::clock;

/// The key that chooses.
pub const KEY: Key = Key {
    name: "image",
    values: Values::OneOf(&["small", fat::NAME]),
    meaning: "`small` (default): the probe and nothing else; `fat`: 10,000 files more, some 440 MB",
    default: Some("small"),
};

/// Whether the fat one is asked for.
pub fn is_fat(spec: &Spec) -> bool {
    spec.get(KEY.name) == Some(fat::NAME)
}

/// The root that a subject asks for, made if it is not there.
pub fn root(spec: &Spec, stage: &Stage) -> anyhow::Result<Unpacked> {
    let bytes = std::fs::read(&stage.place.executable)?;
    if !is_fat(spec) {
        return unpack(&SmallImage::new(&bytes), &stage.place.state);
    }
    let image = FatImage::new(&bytes);
    let began = std::cell::Cell::new(None);
    let making = || {
        began.set(Some(clock::now()));
        (stage.tell)(&announcement(&image, "the state directory"));
    };
    let unpacked = image.unpack(&stage.place.state, &making, &|| !stage.interrupts.pending())?;
    if let Some(began) = began.get() {
        (stage.tell)(&format!("made the image {} in {}", fat::NAME, clock::now().since(began)));
    }
    Ok(unpacked)
}

/// What is said before the image is made; none of that is part of a sample.
pub fn announcement(image: &FatImage<'_>, place: &str) -> String {
    let (name, megabytes) = (fat::NAME, image.bytes().div_ceil(1_000_000));
    format!("making the image {name}, {megabytes} MB: once for {place}, where it stays until `dunnage sweep`")
}
