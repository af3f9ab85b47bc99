//! What the rungs of the ladder come to together, beside the last rung as a whole and an ordinary launch.

use crate::plan::Plan;
use crate::record::Recorded;
use crate::stats::{Alpha, Estimate, Sample};
use crate::verdict::columns::Columns;
use crate::verdict::price::{JUDGED, Price, Sum};

/// The experiment that measures ordinary launches as a whole.
const STARTS: &str = "start";

/// For every ladder, whether its rungs add up.
pub fn sums(run: &Recorded, columns: &Columns, prices: &[Price]) -> Vec<Sum> {
    let plan = &run.plan;
    let price = |cell: usize| prices.iter().find(|price| price.cell == cell && price.metric == JUDGED);
    let on_ladder = |cell: &usize| plan.cells[*cell].setting.get("way") == Some("ladder");
    let is_last = |cell: &usize| !prices.iter().any(|other| other.reference == Some(*cell));
    let last = (0..plan.cells.len()).filter(on_ladder).filter(is_last);
    let sum = |cell: usize| {
        let mut rungs = 0.0;
        let mut at = Some(cell);
        while let Some(rung) = at {
            let price = price(rung)?;
            rungs += price.price.value;
            at = price.reference;
        }
        let prestate = plan.cells[cell].setting.get("prestate")?;
        let last = Estimate::of_median(&columns.sample(cell, JUDGED)?, Alpha::FIVE_PERCENT);
        let subject = plan.cells[cell].subject;
        Some(Sum { subject, prestate, rungs, last, whole: whole(plan, columns, subject, prestate) })
    };
    last.filter_map(sum).collect()
}

/// An ordinary launch of the subject as another experiment measured it, less the probe's own work.
fn whole(plan: &Plan, columns: &Columns, subject: usize, prestate: &str) -> Option<Estimate> {
    let index = |cell: usize, name: &str| {
        plan.metrics(&plan.cells[cell]).iter().position(|metric| metric.name == name)
    };
    let fits = |cell: &usize| {
        let planned = &plan.cells[*cell];
        planned.subject == subject
            && planned.setting.get("prestate") == Some(prestate)
            && planned.experiment == STARTS
            && index(*cell, "returned").is_some()
            && index(*cell, "probe_work").is_some()
    };
    let cell = (0..plan.cells.len()).find(fits)?;
    let (returned, work) = (index(cell, "returned")?, index(cell, "probe_work")?);
    let both = columns.get(cell, returned).iter().zip(columns.get(cell, work));
    let values: Vec<f64> = both.filter_map(|(returned, work)| Some((*returned)? - (*work)?)).collect();
    Some(Estimate::of_median(&Sample::new(values).ok()?, Alpha::FIVE_PERCENT))
}
