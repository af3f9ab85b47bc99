//! The sum of the pieces, between stamps or on the ladder, compared with the launch that has all of them and
//! an ordinary launch.

use super::{WHOLE, pieces};
use crate::experiment::start::START;
use crate::stats::{Estimate, Sample};
use crate::text::clean;
use crate::verdict::View;
use crate::verdict::price::{JUDGED, Sum};

/// For every stamped launch and every ladder, whether its pieces add up.
pub fn sums(view: &View<'_>) -> Vec<Sum> {
    let is_last = |cell: usize| !view.prices.iter().any(|other| other.reference == Some(cell));
    let sum = |cell: usize| {
        let setting = &view.cell(cell).setting;
        let rungs = match (setting.get("way")?, setting.get("piece")?) {
            ("stamps", WHOLE) => pieces().filter_map(|(metric, _)| view.median(cell, metric)).sum(),
            ("ladder", _) if is_last(cell) => climbed(view, cell)?,
            _ => return None,
        };
        let prestate = view.cell(cell).setting.get("prestate")?;
        let last = view.estimate(cell, JUDGED)?;
        let experiment = view.cell(cell).experiment;
        let (label, whole) = (clean(view.label(cell)), whole(view, cell, prestate));
        Some(Sum { experiment, label, prestate, rungs, last, whole })
    };
    (0..view.cells.len()).filter_map(sum).collect()
}

/// The sum of the prices of all rungs up to this one.
fn climbed(view: &View<'_>, cell: usize) -> Option<f64> {
    let mut rungs = 0.0;
    let mut at = Some(cell);
    while let Some(rung) = at {
        let price = view.price(rung)?;
        rungs += price.price.value;
        at = price.reference;
    }
    Some(rungs)
}

/// An ordinary launch of the same subject as measured by another experiment, less the probe's own work.
fn whole(view: &View<'_>, like: usize, prestate: &str) -> Option<Estimate> {
    let fits = |cell: &usize| {
        let planned = view.cell(*cell);
        planned.subject == view.cell(like).subject && planned.setting.get("prestate") == Some(prestate)
    };
    let cell = view.cells_of(START.name).find(fits)?;
    let values = |name| Some(view.columns.get(cell, view.metric_index(cell, name)?));
    let both = values("returned")?.iter().zip(values("probe_work")?);
    let values = both.filter_map(|(returned, work)| Some((*returned)? - (*work)?));
    Some(Estimate::of_median(&Sample::new(values)?, view.plan().level(1)))
}
