//! Why are there no more starts a second? Of what could limit them, each has a ceiling: the CPUs, the flushes of the disk, and what a
//! start takes alone. If what was seen comes near the lowest, that is the cause. Below all of them, starts wait for each other: then
//! there is a part of each that only one can be in at a time, at most as long as the time from one end to the next.
//!
//! A burst begins and ends with fewer at once, so what it can reach is less than what would go on for ever: on several CPUs the last
//! start may be alone for its whole length (Graham 1969), and what only one can use waits for the first to reach it.
//!
//! A cause is confirmed only if what is seen with most at once is seen with fewer at once too, where those would be quicker without it
//! (the bounds of a closed system: Denning and Buzen 1978). Little's law is no check here: it holds for any cause.

/// How near to a ceiling counts as reaching it.
const NEAR: f64 = 0.9;
/// How far a prediction may be off.
const CONFIRMED: f64 = 0.1;
/// In how many of the looks some process must have waited for a lock on one file.
const WAITED: f64 = 0.5;
/// With more of the CPUs used by others, nothing can be told: they would have used less if more had been asked for.
const DISTURBED: f64 = 0.2;

/// What was seen of starts with so many at once: medians over the rounds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Seen {
    /// How many at once.
    pub at_once: f64,
    /// How many altogether.
    pub starts: f64,
    /// Starts a second.
    pub rate: f64,
    /// CPU seconds of all that works for it, for each.
    pub cpu: f64,
    /// CPUs that there are, less what was stolen.
    pub cpus: f64,
    /// How many CPUs others used meanwhile.
    pub others: f64,
    /// Seconds of flushing for each.
    pub flushing: f64,
    /// In which share of the looks a process waited for the lock on a file that was most waited for.
    pub waiting: f64,
}

/// What limits starts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cause {
    /// The CPUs.
    Cpus,
    /// Flushes of the disk, one after the other.
    Disk,
    /// Nothing: each takes as long as alone.
    Alone,
    /// A lock on a file for which others are seen to wait.
    Lock,
    /// Some of each start is one after the other, and by what is not known.
    Serial,
    /// Others used the machine.
    Others,
    /// The CPU time of a start is not known.
    Unknown,
}

/// A ceiling that was reached, in starts a second.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Ceiling {
    /// By what.
    pub cause: Cause,
    /// It, in starts a second.
    pub rate: f64,
    /// What it predicts for the other number at once, and whether that was seen; none if that was not measured or tests nothing, since
    /// so few are not quicker without the cause.
    pub predicted: Option<(f64, bool)>,
}

/// How much of each start is one after the other, if nothing else limits them: the first takes as long as alone.
pub fn serial(seen: &Seen, alone: f64) -> f64 {
    let each = (seen.starts / seen.rate - alone) / (seen.starts - 1.0);
    each.clamp(0.0, 1.0 / seen.rate)
}

/// The ceiling of starts with most at once. `alone` is what a start takes with no other, `fewer` what was seen with fewer at once.
pub fn ceiling(most: &Seen, alone: f64, fewer: Option<&Seen>) -> Ceiling {
    let rate_of = |each: f64, around: f64| most.starts / (most.starts * each + around.max(0.0));
    let all = [
        (Cause::Cpus, rate_of(most.cpu / most.cpus, alone * (1.0 - 1.0 / most.cpus))),
        (
            Cause::Disk,
            if most.flushing > 0.0 { rate_of(most.flushing, alone - most.flushing) } else { f64::INFINITY },
        ),
        (Cause::Alone, most.at_once / alone),
    ];
    let known = all.into_iter().filter(|(_, rate)| rate.is_finite() && *rate > 0.0);
    let lowest = known.min_by(|one, other| one.1.total_cmp(&other.1));
    let (cause, rate) = match lowest {
        _ if most.others > DISTURBED * most.cpus => (Cause::Others, most.rate),
        Some((cause, rate)) if most.rate >= NEAR * rate => (cause, rate),
        _ if !most.cpu.is_finite() => (Cause::Unknown, most.rate),
        _ if most.waiting >= WAITED => (Cause::Lock, most.rate),
        _ => (Cause::Serial, most.rate),
    };
    let is_tested = |fewer: &&Seen| cause == Cause::Alone || fewer.at_once / alone > most.rate;
    let predicted = fewer.filter(is_tested).map(|fewer| {
        let own = if cause == Cause::Alone { f64::INFINITY } else { most.rate };
        let predicted = own.min(fewer.at_once / alone);
        (predicted, (fewer.rate / predicted - 1.0).abs() <= CONFIRMED)
    });
    // What was seen is possible, though the parts of a start say less.
    Ceiling { cause, rate: rate.max(most.rate), predicted }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Sixteen at once on two CPUs, of which each start takes 10 ms.
    const QUIET: Seen = Seen {
        at_once: 16.0,
        starts: 16.0,
        rate: 0.0,
        cpu: 0.01,
        cpus: 2.0,
        others: 0.1,
        flushing: 0.0,
        waiting: 0.0,
    };

    fn found(most: Seen, alone: f64, at_four: f64) -> (Cause, Option<bool>) {
        let fewer = Seen { at_once: 4.0, rate: at_four, ..QUIET };
        let found = ceiling(&most, alone, Some(&fewer));
        (found.cause, found.predicted.map(|(_, is_seen)| is_seen))
    }

    #[test]
    fn each_planted_cause_is_named() {
        // 50 ms of CPU in each, of two CPUs: 37 a second if the last ends alone.
        let burnt = Seen { rate: 36.5, cpu: 0.05, ..QUIET };
        assert_eq!(found(burnt, 0.055, 35.0), (Cause::Cpus, Some(true)));
        // Ten flushes of 4 ms, one after the other: 25 a second.
        let flushed = Seen { rate: 24.0, flushing: 0.04, ..QUIET };
        assert_eq!(found(flushed, 0.045, 24.5), (Cause::Disk, Some(true)));
        // A lock that is held for 50 ms: 20 a second, and 5 ms around it.
        let locked = Seen { rate: 19.8, waiting: 0.97, ..QUIET };
        assert_eq!(found(locked, 0.055, 19.5), (Cause::Lock, Some(true)));
        assert!((serial(&locked, 0.055) - 0.050).abs() < 0.001);
        // The same without anyone to be seen waiting, as for a mutex.
        assert_eq!(found(Seen { waiting: 0.1, ..locked }, 0.055, 19.5), (Cause::Serial, Some(true)));
        // 500 ms of sleep in each: 32 a second at sixteen, 8 at four.
        assert_eq!(found(Seen { rate: 31.0, ..QUIET }, 0.5, 7.9), (Cause::Alone, Some(true)));
    }

    #[test]
    fn what_does_not_predict_is_not_confirmed() {
        let locked = Seen { rate: 19.8, waiting: 0.97, ..QUIET };
        assert_eq!(found(locked, 0.055, 30.0), (Cause::Lock, Some(false)));
        // Four at once take too long alone for the lock to matter, so they say nothing of it.
        assert_eq!(found(locked, 0.4, 9.8), (Cause::Lock, None));
        assert_eq!(ceiling(&locked, 0.055, None).predicted, None);
        assert_eq!(ceiling(&Seen { others: 0.5, ..locked }, 0.055, None).cause, Cause::Others);
        assert_eq!(ceiling(&Seen { cpu: f64::NAN, ..locked }, 0.055, None).cause, Cause::Unknown);
    }

    #[test]
    fn a_disk_that_is_not_counted_has_no_ceiling() {
        let seen = Seen { rate: 100.0, ..QUIET };
        assert_eq!(ceiling(&seen, 0.09, None).cause, Cause::Serial);
        assert_eq!(
            ceiling(&Seen { cpu: f64::NAN, rate: 150.0, ..seen }, 0.1, None),
            Ceiling { cause: Cause::Alone, rate: 160.0, predicted: None }
        );
    }
}
