//! Is the quota the cause of the waiting? Yes, if the same load does what the model says twice: under a quota
//! above its demand, with nothing throttled, and under one below its demand. Deliberately absent: a control
//! without a quota, which cannot be throttled and so proves nothing.

use super::rows::{Row, quota_in_words};
use super::window::Measured;
use crate::group::in_groups;
use crate::stats::quota::{Backlog, Health, Load, TOLERANCE};
use crate::units::Unit;
use crate::verdict::table::Answer;

/// How far a latency may be from the model's, as a share of it: the model leaves out wake-ups and ticks.
const NEAR: f64 = 0.1;

/// An answer for each subject and load with throttling, decided if the model confirms that the quota is the cause.
pub(super) fn told_of(rows: &[Row]) -> Vec<Answer> {
    let answer = |(name, own): (&[String; 2], Vec<&Row>)| {
        let own: Vec<_> = own.into_iter().map(|row| &row.measured).collect();
        let told = told_of_cells(&own)?;
        Some(Answer { text: format!("`{}`, {}: {}", name[0], name[1], told.text), ..told })
    };
    in_groups(rows, |row| &row.name).into_iter().filter_map(answer).collect()
}

/// For cells that differ only in their quota.
fn told_of_cells(cells: &[&Measured]) -> Option<Answer> {
    let open = |text| Answer { question: "why?", text, is_decided: false };
    let throttled = |cell: &&&Measured| cell.throttled_share().map(Health::of_share) > Some(Health::Clear);
    let is_below = |cell: &&&Measured| !cell.is_control() && !cell.demand.is_at(cell.quota);
    let worst = best(cells.iter().filter(is_below).filter(throttled))?;
    let seen = format!("with {}{}", quota_in_words(worst.quota), told(worst));
    let Some(control) = best(cells.iter().filter(|cell| cell.is_control())) else {
        return Some(open(format!(
            "{seen}; whether the limit is the cause is not tested, since no quota above the load was measured"
        )));
    };
    let work = worst.work_share(control).map(|share| {
        let [less, all] = [worst, control].map(|cell| Unit::PerSecond.format(cell.work_rate()));
        format!(
            ", and {} of the work with {} is done, {less} of {all}",
            Unit::Share.format(share),
            quota_in_words(control.quota)
        )
    });
    let both = format!(
        "with {}, above the load,{}; {seen}{}",
        quota_in_words(control.quota),
        told(control),
        work.unwrap_or_default()
    );
    let off = [control, worst].into_iter().find_map(|cell| Some((cell, off_the_model(cell)?)));
    Some(match off {
        None => Answer { is_decided: true, ..open(format!("{both}: the quota is the cause")) },
        Some((cell, off)) => {
            let quota = quota_in_words(cell.quota);
            open(format!("{both}; the quota is not confirmed as the cause: with {quota}, {off}"))
        }
    })
}

/// The smallest quota among the cells that match the model, or among all cells if none does.
fn best<'a>(cells: impl Iterator<Item = &'a &'a Measured>) -> Option<&'a Measured> {
    let each = |cell: &Measured| cell.quota.map_or(u64::MAX, |quota| quota.each);
    cells.copied().min_by_key(|cell| (off_the_model(cell).is_some(), each(cell)))
}

/// Where a cell differs from the model.
fn off_the_model(cell: &Measured) -> Option<String> {
    let (used, ideal) = (cell.usage_share().unwrap_or(cell.own_share()), cell.ideal_share());
    if (used / ideal - 1.0).abs() > TOLERANCE {
        let [used, ideal] = [used, ideal].map(|share| Unit::Share.format(share));
        return Some(format!("{used} of a CPU was used, but the model says {ideal}"));
    }
    let Some((share, ideal)) = cell.throttled_share().zip(cell.ideal_throttled_share()) else {
        return Some("no period was counted".into());
    };
    // Where the window begins can make one period of difference.
    let one = cell.throttling.map_or(0.0, |[periods, ..]| cell.windows() as f64 / periods.max(1) as f64);
    if (share - ideal).abs() > TOLERANCE.max(one) + f64::EPSILON {
        let [share, ideal] = [share, ideal].map(|share| Unit::Share.format(share));
        return Some(format!("{share} of the periods are throttled, but the model says {ideal}"));
    }
    let (what, seen, ideal) = match cell.ideal_growth() {
        Some(ideal) => ("each burst waits longer by", cell.growth()?, ideal),
        None => ("the median burst takes", cell.latency(0.5)?, cell.ideal_latency(0.5)?),
    };
    let far = (seen / ideal - 1.0).abs() > NEAR;
    let [seen, ideal] = [seen, ideal].map(|seconds| Unit::Seconds.format(seconds));
    far.then(|| format!("{what} {seen}, but the model says {ideal}"))
}

/// Periods, and the latency of bursts if it is bounded, or how fast it grew.
fn told(cell: &Measured) -> String {
    let periods = match cell.throttling {
        Some([periods, 0, _]) => format!(" none of {periods} periods is throttled"),
        Some([periods, throttled, time]) => {
            let time = Unit::Seconds.format(time as f64 / 1e9);
            format!(" {throttled} of {periods} periods are throttled, {time} in all")
        }
        None => " there are no periods".into(),
    };
    let shown = |seconds: f64| Unit::Seconds.format(seconds);
    let bursts = match (cell.ideal.backlog, cell.growth(), cell.latency(0.5)) {
        (Backlog::Grows(ideal), Some(more), _) => {
            let (more, ideal) = (shown(more), shown(ideal));
            format!(", and each burst waited {more} longer than the one before (model: {ideal})")
        }
        // It stops by the clock, however much was done by then.
        _ if matches!(cell.demand.load, Load::Alternating { .. }) => String::new(),
        (Backlog::Grows(_), None, _) => format!(", and {} bursts are left over", cell.waiting),
        (_, _, Some(median)) => format!(", and the median burst takes {}", shown(median)),
        _ => String::new(),
    };
    format!("{periods}{bursts}")
}

#[cfg(test)]
mod tests {
    use super::super::tests::{MS, measured_for};
    use super::*;

    fn measured(each: u64) -> Measured {
        measured_for(3, each)
    }

    fn of(cells: &[Measured]) -> Option<String> {
        let told = told_of_cells(&cells.iter().collect::<Vec<_>>())?;
        assert_eq!(told.is_decided, told.text.ends_with(": the quota is the cause"));
        Some(told.text)
    }

    fn without_a_quota() -> Measured {
        Measured { quota: None, throttling: None, ..measured(100) }
    }

    #[test]
    fn a_control_and_a_smaller_quota_that_do_what_the_model_says_name_the_cause() {
        let told = of(&[without_a_quota(), measured(100), measured(10)]).unwrap();
        assert!(told.starts_with("with 1 CPU, above the load, none of 30 periods is throttled"), "{told}");
        assert!(
            told.ends_with(
                "longer than the one before (model: 400 ms), and 20.0 % of the work with 1 CPU is done, 50.0 M/s of 250 M/s: \
                 the quota is the cause"
            ),
            "{told}"
        );
        assert_eq!(of(&[without_a_quota(), measured(100)]), None);
    }

    #[test]
    fn without_a_quota_there_is_no_control() {
        let told = of(&[without_a_quota(), measured(10)]).unwrap();
        assert!(told.ends_with("is not tested, since no quota above the load was measured"), "{told}");
    }

    #[test]
    fn at_the_edge_nothing_is_caused() {
        let edge = Measured { throttling: Some([30, 30, 100 * MS]), ..measured(50) };
        assert_eq!(of(&[measured(100), edge]), None);
    }

    #[test]
    fn what_is_off_the_model_names_no_cause() {
        let slow = |cell: Measured| Measured { latencies: vec![vec![80 * MS; 10]], ..cell };
        let starved = |cell: Measured| Measured { usage: Some(cell.ideal.usage * 9 / 10), ..cell };
        for (cells, off) in [
            (
                [slow(measured(100)), measured(10)],
                "with 1 CPU, the median burst takes 80.0 ms, but the model says 50.0 ms",
            ),
            (
                [starved(measured(100)), measured(10)],
                "with 1 CPU, 45.0 % of a CPU was used, but the model says 50.0 %",
            ),
            (
                [measured(100), starved(measured(10))],
                "with 0.1 CPUs, 9.00 % of a CPU was used, but the model says 10.0 %",
            ),
        ] {
            let told = of(&cells).unwrap();
            assert!(told.contains("is not confirmed as the cause") && told.ends_with(off), "{told}");
        }
    }
}
