//! In words: who is better in one metric, and yet not in the metric by which the choice is told.

use super::{Words, absolute, group};
use crate::plan::{Ladder, Layer};
use crate::report::text::joined;
use crate::verdict::summary::Turned;

impl Words<'_> {
    /// The pair that differs most with its numbers, setting by setting, and the others by name.
    pub(super) fn otherwise(&self, layer: Layer, ladder: Ladder, turned: &[Turned]) -> String {
        let named = |subject: usize| self.names(layer, ladder, &[subject]).concat();
        let mut pairs: Vec<[usize; 2]> = Vec::new();
        for one in turned {
            let pair = self.better_and_worse(one);
            if !pairs.contains(&pair) {
                pairs.push(pair);
            }
        }
        let (Some(largest), Some([better, worse])) = (turned.first(), pairs.first()) else {
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
            turned.iter().filter(|one| self.better_and_worse(one) == [*better, *worse]).map(size).collect();
        let takes = self.takes(largest.decided.finding(), "takes less", "has more");
        let mut text = format!(
            "of the {}, what is waited for decides: {} {takes} than {} of `{metric}`, by {}, and of `{first}` that is not shown",
            group(layer, ladder),
            named(*better),
            named(*worse),
            joined(&sizes, "and")
        );
        let others =
            pairs.iter().skip(1).map(|[better, worse]| format!("{} and {}", named(*better), named(*worse)));
        let others: Vec<String> = others.collect();
        if !others.is_empty() {
            text.push_str(&format!("; likewise {}", others.join(", ")));
        }
        text
    }

    /// Who is better, and who worse.
    fn better_and_worse(&self, one: &Turned) -> [usize; 2] {
        let comparison = &self.plan.comparisons[self.analysis.findings[one.decided.finding()].comparison];
        match one.decided.is_worse() {
            true => [comparison.against, comparison.subject],
            false => [comparison.subject, comparison.against],
        }
    }
}
