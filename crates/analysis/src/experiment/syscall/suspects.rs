//! Results that cannot be true of system calls.

use crate::stats::Pairs;
use crate::units::Unit;
use crate::verdict::{Suspect, View};

/// The vDSO answers without a system call. If it is slower than the call, it makes the call itself.
pub fn vdso_without_gain(view: &View<'_>) -> Vec<Suspect> {
    let mechanism =
        "the program cannot read the clock source, or there is no vDSO, so the system call is made anyway";
    Suspect::each(view, "vDSO slower than the call", mechanism, |cell, vdso| {
        let call = view.metric_index(cell, "clock_gettime")?;
        if view.metric(cell, vdso).name != "clock_vdso" {
            return None;
        }
        let pairs = Pairs::align(view.columns.get(cell, call), view.columns.get(cell, vdso))?;
        let difference = pairs.difference(view.plan().alpha(view.cell(cell).experiment));
        let is_slower = difference.interval.is_some_and(|interval| interval.low > 0.0);
        let (named, more) = (view.named(cell, vdso), Unit::Seconds.format_signed(difference.value));
        is_slower.then(|| format!("{named} is {more} compared with the real call in the same rounds"))
    })
}
