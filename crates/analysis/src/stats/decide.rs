//! Is it the same, less, more, or not decided?
//!
//! *Same* is shown, never assumed from a missing difference: the whole interval must be within the smallest
//! difference that matters (an equivalence test by interval inclusion; Westlake 1972, Schuirmann 1987).
//! *Less* and *more* need the whole interval beyond zero and an estimate that matters. Anything else is
//! undecided. Deliberately absent: which direction is good (slower or faster), and suspicion; the caller
//! knows both.

use super::level::Alpha;
use super::level::min_rounds;
use super::order::{Estimate, Interval};
use super::paired::{FailedRounds, Pairs};
use super::sample::Sample;

/// The smallest difference that matters for a metric: the larger of the two counts.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Margin {
    absolute: f64,
    relative: f64,
}

impl Margin {
    /// `absolute` in the unit of the metric, `relative` as a share of the baseline (0.03 is 3 %); both must be finite and
    /// not negative.
    pub fn new(absolute: f64, relative: f64) -> Result<Margin, String> {
        let usable = |part: f64| part.is_finite() && part >= 0.0;
        (usable(absolute) && usable(relative)).then_some(Margin { absolute, relative }).ok_or_else(|| {
            format!("a margin of {absolute} or {relative} of the baseline is not valid: both must be finite and not negative")
        })
    }

    /// A margin that is known at compile time.
    ///
    /// # Panics
    /// On what [`Margin::new`] rejects; at compile time if it is used in a constant.
    pub const fn fixed(absolute: f64, relative: f64) -> Margin {
        assert!(absolute >= 0.0 && absolute.is_finite() && relative >= 0.0 && relative.is_finite());
        Margin { absolute, relative }
    }

    /// The two parts: absolute in the unit of the metric, relative as a share of the baseline.
    pub fn parts(self) -> (f64, f64) {
        (self.absolute, self.relative)
    }

    /// In the unit of the metric: max(absolute, relative × |median of the baseline|).
    pub fn at(self, baseline_median: f64) -> f64 {
        self.absolute.max(self.relative * baseline_median.abs())
    }
}

/// What the rounds show about a difference.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Decision {
    /// The whole interval is within the margin (its ends included), even if it excludes zero.
    Same,
    /// The whole interval is below zero, and the estimate below minus the margin.
    Less,
    /// The whole interval is above zero, and the estimate above the margin.
    More,
    /// Neither.
    Undecided {
        /// Half the width of the interval: the program would just have seen an effect of this size.
        smallest_visible: f64,
        /// What a new run would need. `None` if no number of rounds can be predicted, because the
        /// estimate is on the margin itself.
        new_run: Option<NewRun>,
    },
    /// Too few rounds for an interval at this level: the points are shown without a verdict.
    TooFew {
        /// Complete rounds.
        have: usize,
        /// Complete rounds that the level needs.
        need: usize,
    },
}

/// The size of a new run that would probably decide.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
pub struct NewRun {
    /// Rounds in all, not in addition to those there are: a run that is extended after a look is only
    /// exploratory. Saturates for hopeless cases.
    pub rounds: usize,
    /// What they would show if the estimate does not change.
    pub goal: Goal,
}

/// What a new run could show.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Goal {
    /// That the difference does not matter: the interval is within the margin.
    Same,
    /// That there is a difference: the interval leaves zero.
    Difference,
}

/// A difference with everything that its decision is based on.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Comparison {
    /// Median of the paired differences, with interval.
    pub difference: Estimate,
    /// The smallest difference that matters, in the unit of the metric.
    pub matters: f64,
    /// The conclusion.
    pub decision: Decision,
}

/// Compares two paired series at the level of one comparison. A decision holds with the failed rounds at their lowest
/// and at their highest places, or is none.
pub fn compare(pairs: &Pairs, margin: Margin, alpha: Alpha) -> Comparison {
    let difference = pairs.difference(alpha);
    let matters = margin.at(pairs.baseline.median());
    let decision = decide_with(&pairs.failed, &pairs.differences, &difference, matters);
    let decision = match decision {
        Decision::TooFew { need, .. } => Decision::TooFew { have: pairs.differences.count(), need },
        decided => decided,
    };
    Comparison { difference, matters, decision }
}

/// Decides about the differences of rounds of which some failed, given the estimate over both extremes.
pub(super) fn decide_with(
    failed: &FailedRounds,
    known: &Sample,
    over_both: &Estimate,
    matters: f64,
) -> Decision {
    if failed.is_none() {
        return decide(over_both, matters);
    }
    let extremes = failed.at_both_extremes(known, over_both.alpha);
    let [lowest, highest] = extremes.map(|one| decide(&one, matters));
    if lowest == highest {
        return lowest;
    }
    let smallest_visible = over_both.interval.map_or(f64::INFINITY, |interval| interval.half_width());
    Decision::Undecided { smallest_visible, new_run: None }
}

/// Decides about a difference; `matters` is the smallest one that matters, in the same unit. A
/// negative one counts as 0.
pub fn decide(difference: &Estimate, matters: f64) -> Decision {
    let Some(interval) = difference.interval else {
        return Decision::TooFew { have: difference.rounds, need: min_rounds(difference.alpha) };
    };
    let matters = matters.max(0.0);
    let estimate = difference.value;
    if interval.farthest_end() <= matters {
        Decision::Same
    } else if interval.low > 0.0 && estimate > matters {
        Decision::More
    } else if interval.high < 0.0 && estimate < -matters {
        Decision::Less
    } else {
        Decision::Undecided {
            smallest_visible: interval.half_width(),
            new_run: new_run(difference, &interval, matters),
        }
    }
}

/// How many rounds would decide, if the estimate e did not change and each end kept its side.
///
/// The ends of a median's interval approach it like 1/√n, since k ≈ n/2 − z·√n/2. So an end at
/// distance d after n rounds is at d·√(n/n′) after n′, and to bring it within r of the estimate
/// takes n′ = n·(d/r)².
/// - e beyond the margin: only zero is in the way, so the end facing zero must be within
///   r = |e|. The goal is a difference.
/// - e inside the margin M: the lower end must be within r = M + e and the upper one within
///   r = M − e; the farther of the two decides. The goal is *same*.
///
/// This is planning, not inference: e itself will move, so it succeeds about half of the time if
/// the effect is as large as it looks now.
fn new_run(difference: &Estimate, interval: &Interval, matters: f64) -> Option<NewRun> {
    let estimate = difference.value;
    let (below, above) = (estimate - interval.low, interval.high - estimate);
    let (goal, shrink) = if estimate > matters {
        (Goal::Difference, below / estimate)
    } else if estimate < -matters {
        (Goal::Difference, above / -estimate)
    } else {
        // An end at the estimate itself needs no room (0/0 would be NaN).
        let shrink = |reach: f64, room: f64| if reach > 0.0 { reach / room } else { 0.0 };
        let widest = shrink(below, matters + estimate).max(shrink(above, matters - estimate));
        (Goal::Same, widest)
    };
    let rounds = difference.rounds as f64 * shrink * shrink;
    rounds.is_finite().then(|| NewRun {
        // One more than the whole part, since an interval that just touches zero does not exclude it.
        rounds: (rounds.floor() as usize).saturating_add(1),
        goal,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stats::Sample;
    use proptest::prelude::*;

    fn estimate(low: f64, value: f64, high: f64) -> Estimate {
        Estimate {
            value,
            interval: Some(Interval { low, high, coverage: 0.98 }),
            rounds: 20,
            alpha: Alpha::FIVE_PERCENT,
        }
    }

    #[test]
    fn same_needs_the_whole_interval_inside() {
        assert_eq!(decide(&estimate(-1.0, 0.0, 1.0), 1.0), Decision::Same);
        // Beyond zero, but too little to matter.
        assert_eq!(decide(&estimate(0.1, 0.5, 0.9), 1.0), Decision::Same);
        assert!(matches!(decide(&estimate(-1.1, 0.0, 1.0), 1.0), Decision::Undecided { .. }));
        assert_eq!(decide(&estimate(0.0, 0.0, 0.0), 0.0), Decision::Same);
    }

    #[test]
    fn a_difference_needs_the_interval_beyond_zero_and_an_estimate_that_matters() {
        assert_eq!(decide(&estimate(0.1, 2.0, 3.0), 1.0), Decision::More);
        assert_eq!(decide(&estimate(-3.0, -2.0, -0.1), 1.0), Decision::Less);
        for (low, value, high) in [(0.0, 2.0, 3.0), (0.1, 1.0, 3.0), (-3.0, -2.0, 0.0)] {
            let decision = decide(&estimate(low, value, high), 1.0);
            assert!(matches!(decision, Decision::Undecided { .. }), "{decision:?}");
        }
    }

    #[test]
    fn undecided_says_what_a_new_run_would_need() {
        // Twice as far as zero: four times the rounds, and one more to exclude it.
        let decision = decide(&estimate(-2.0, 2.0, 3.0), 1.0);
        let difference = NewRun { rounds: 81, goal: Goal::Difference };
        assert_eq!(decision, Decision::Undecided { smallest_visible: 2.5, new_run: Some(difference) });
        // The upper end is 3 away and can be 1.5 away: four times the rounds.
        let decision = decide(&estimate(-1.0, 0.5, 3.5), 2.0);
        let same = NewRun { rounds: 81, goal: Goal::Same };
        assert_eq!(decision, Decision::Undecided { smallest_visible: 2.25, new_run: Some(same) });
        // On the margin no number of rounds can be predicted.
        let decision = decide(&estimate(0.5, 1.0, 1.5), 1.0);
        assert_eq!(decision, Decision::Undecided { smallest_visible: 0.5, new_run: None });
    }

    #[test]
    fn too_few_rounds_give_no_verdict() {
        let sample = Sample::new(vec![5.0; 5]).unwrap();
        let few = Estimate::of_median(&sample, Alpha::FIVE_PERCENT);
        assert_eq!(decide(&few, 1.0), Decision::TooFew { have: 5, need: 6 });
    }

    #[test]
    fn the_larger_margin_counts() {
        let margin = Margin::new(2.0, 0.03).unwrap();
        assert_eq!(margin.at(10.0), 2.0);
        assert_eq!(margin.at(-1000.0), 30.0);
        for (absolute, relative) in [(-1.0, 0.0), (0.0, f64::NAN), (f64::INFINITY, 0.0)] {
            assert!(Margin::new(absolute, relative).is_err());
        }
    }

    #[test]
    fn a_comparison_takes_its_margin_from_the_paired_baseline() {
        let baseline = [Some(100.0); 8];
        let subject = [Some(104.0); 8];
        let pairs = Pairs::align(&baseline, &subject).unwrap();
        let judge = |relative| {
            let margin = Margin::new(0.0, relative).unwrap();
            compare(&pairs, margin, Alpha::FIVE_PERCENT)
        };
        assert_eq!((judge(0.03).matters, judge(0.03).decision), (3.0, Decision::More));
        assert_eq!(judge(0.05).decision, Decision::Same);
    }

    fn intervals() -> impl Strategy<Value = Estimate> {
        prop::array::uniform3(-10i32..10).prop_map(|mut ends| {
            ends.sort_unstable();
            let [low, value, high] = ends.map(f64::from);
            estimate(low, value, high)
        })
    }

    proptest! {
        #[test]
        fn the_mirror_image_gets_the_mirrored_decision(difference in intervals(), matters in 0i32..10) {
            let interval = difference.interval.unwrap();
            let mirrored = estimate(-interval.high, -difference.value, -interval.low);
            let expected = match decide(&difference, f64::from(matters)) {
                Decision::Less => Decision::More,
                Decision::More => Decision::Less,
                other => other,
            };
            prop_assert_eq!(decide(&mirrored, f64::from(matters)), expected);
        }

        #[test]
        fn a_new_run_needs_more_rounds_than_this_one_had(difference in intervals(), matters in 0i32..10) {
            if let Decision::Undecided { new_run: Some(new_run), .. } = decide(&difference, f64::from(matters)) {
                prop_assert!(new_run.rounds > difference.rounds);
            }
        }
    }
}
