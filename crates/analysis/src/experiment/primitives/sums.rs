//! What the rungs of the ladder come to together, beside the last rung as a whole and an ordinary launch.

use crate::experiment::start::START;
use crate::stats::{Estimate, Sample};
use crate::text::clean;
use crate::verdict::View;
use crate::verdict::price::{JUDGED, Sum};

/// For every ladder, whether its rungs add up.
pub fn sums(view: &View<'_>) -> Vec<Sum> {
    let on_ladder = |cell: &usize| view.cell(*cell).setting.get("way") == Some("ladder");
    let is_last = |cell: &usize| !view.prices.iter().any(|other| other.reference == Some(*cell));
    let last = (0..view.cells.len()).filter(on_ladder).filter(is_last);
    let sum = |cell: usize| {
        let mut rungs = 0.0;
        let mut at = Some(cell);
        while let Some(rung) = at {
            let price = view.price(rung)?;
            rungs += price.price.value;
            at = price.reference;
        }
        let prestate = view.cell(cell).setting.get("prestate")?;
        let last = Estimate::of_median(&view.columns.sample(cell, JUDGED)?, view.plan().level(1));
        let experiment = view.cell(cell).experiment;
        let (label, whole) = (clean(view.label(cell)), whole(view, cell, prestate));
        Some(Sum { experiment, label, prestate, rungs, last, whole })
    };
    last.filter_map(sum).collect()
}

/// An ordinary launch of the same subject as another experiment measured it, less the probe's own work.
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
