//! What cannot be true of system calls, whatever its interval says.

use crate::stats::Pairs;
use crate::units::Unit;
use crate::verdict::suspect::{Suspect, View};

/// The vDSO answers without the system call; where that takes longer than the call, it makes it.
pub fn vdso_without_gain(view: &View<'_>) -> Vec<Suspect> {
    let suspect = |cell: usize| {
        let level = view.plan().alpha(view.plan().cells[cell].experiment);
        let (call, vdso) =
            (view.metric_index(cell, "clock_gettime")?, view.metric_index(cell, "clock_vdso")?);
        let pairs = Pairs::align(view.columns.get(cell, call), view.columns.get(cell, vdso)).ok()?;
        let difference = pairs.difference(level);
        difference.interval.is_some_and(|interval| interval.low > 0.0).then(|| Suspect {
            rule: "vDSO slower than the call",
            cells: vec![cell],
            metric: Some(vdso),
            up_to: None,
            evidence: format!(
                "{} is {} from the real call in the same rounds",
                view.named(cell, vdso),
                Unit::Seconds.format_signed(difference.value)
            ),
            mechanism:
                "a clock source that programs cannot read, or no vDSO: the system call is made all the same"
                    .into(),
        })
    };
    (0..view.cells.len()).filter_map(suspect).collect()
}
