//! What cannot be true of system calls, whatever its interval says.

use crate::stats::Pairs;
use crate::units::Unit;
use crate::verdict::{Suspect, View};

/// The vDSO answers without the system call; where that takes longer than the call, it makes it.
pub fn vdso_without_gain(view: &View<'_>) -> Vec<Suspect> {
    let suspect = |cell: usize| {
        let (call, vdso) =
            (view.metric_index(cell, "clock_gettime")?, view.metric_index(cell, "clock_vdso")?);
        let pairs = Pairs::align(view.columns.get(cell, call), view.columns.get(cell, vdso)).ok()?;
        let difference = pairs.difference(view.plan().alpha(view.cell(cell).experiment));
        let evidence = format!(
            "{} is {} from the real call in the same rounds",
            view.named(cell, vdso),
            Unit::Seconds.format_signed(difference.value)
        );
        let mechanism =
            "a clock source that programs cannot read, or no vDSO: the system call is made all the same";
        let is_slower = difference.interval.is_some_and(|interval| interval.low > 0.0);
        is_slower.then(|| Suspect::of("vDSO slower than the call", (cell, vdso), evidence, mechanism))
    };
    (0..view.cells.len()).filter_map(suspect).collect()
}
