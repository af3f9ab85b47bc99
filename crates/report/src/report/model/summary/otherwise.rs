//! In words: who takes less of one metric, and yet not of the metric by which the choice is told.

use super::{Words, absolute, group};
use crate::plan::{Ladder, Layer};
use crate::report::text::joined;
use crate::verdict::summary::{Turned, Way};

impl Words<'_> {
    /// The pair that differs most with its numbers, setting by setting, and the others by name.
    pub(super) fn otherwise(&self, layer: Layer, ladder: Ladder, turned: &[Turned]) -> String {
        let named = |subject: usize| self.names(layer, ladder, &[subject]).concat();
        let mut pairs: Vec<[usize; 2]> = Vec::new();
        for one in turned {
            let pair = self.less_and_more(one);
            if !pairs.contains(&pair) {
                pairs.push(pair);
            }
        }
        let (Some(largest), Some([less, more])) = (turned.first(), pairs.first()) else {
            return String::new();
        };
        let [metric, first] =
            [largest.decided.finding(), largest.first].map(|finding| self.metric(finding).name);
        let size = |one: &Turned| {
            let setting =
                self.setting_of(one.decided.finding()).map_or(String::new(), |own| format!(" ({own})"));
            format!("{}{setting}", absolute(self.metric(one.decided.finding()).unit, &one.decided))
        };
        let sizes: Vec<String> =
            turned.iter().filter(|one| self.less_and_more(one) == [*less, *more]).map(size).collect();
        let mut text = format!(
            "of the {}, what is waited for decides: {} takes less than {} of `{metric}`, by {}, and of `{first}` that is not shown",
            group(layer, ladder),
            named(*less),
            named(*more),
            joined(&sizes, "and")
        );
        let others =
            pairs.iter().skip(1).map(|[less, more]| format!("{} and {}", named(*less), named(*more)));
        let others: Vec<String> = others.collect();
        if !others.is_empty() {
            text.push_str(&format!("; likewise {}", others.join(", ")));
        }
        text
    }

    /// Who takes less, and who more.
    fn less_and_more(&self, one: &Turned) -> [usize; 2] {
        let comparison = &self.plan.comparisons[self.analysis.findings[one.decided.finding()].comparison];
        match one.decided.way() {
            Way::More => [comparison.against, comparison.subject],
            _ => [comparison.subject, comparison.against],
        }
    }
}
