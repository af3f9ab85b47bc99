//! Predictions beside what came of them, in words. What is said of a link is what its finding says.

use serde::Serialize;

use super::compared::{phrase_of, predicate_of};
use crate::plan::Plan;
use crate::record::Recorded;
use crate::report::text::clean;
use crate::verdict::Analysis;
use crate::verdict::prediction::{Came, LinkOutcome, Outcome, outcomes};

/// A prediction, and what came of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Prediction {
    /// As it is written, in the canonical form.
    #[serde(rename = "prediction")]
    pub text: String,
    /// All of it.
    #[serde(rename = "outcome")]
    pub came: Came,
    /// Each of its parts.
    pub links: Vec<PredictedLink>,
}

/// Two subjects of a prediction in one setting.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PredictedLink {
    /// As it is written, such as `bare < floor`.
    #[serde(rename = "link")]
    pub text: String,
    /// The setting as `key=value` joined by `;`; none where nothing was measured of it.
    pub setting: Option<String>,
    /// The same, only the values.
    #[serde(skip)]
    pub values: String,
    /// What came of it.
    #[serde(rename = "outcome")]
    pub came: Came,
    /// The word of the verdict on the subject named second or first, as compared; none where there is none.
    pub verdict: Option<&'static str>,
    /// What the finding says, or why there is none.
    #[serde(rename = "sentence")]
    pub because: String,
}

/// What was predicted about a run.
pub(super) fn predictions(run: &Recorded, analysis: &Analysis) -> Vec<Prediction> {
    outcomes(run, analysis).iter().map(|outcome| told(&run.plan, analysis, outcome)).collect()
}

fn told(plan: &Plan, analysis: &Analysis, outcome: &Outcome) -> Prediction {
    let prediction = &plan.predictions[outcome.prediction];
    let link = |one: &LinkOutcome| {
        let link = prediction.links().nth(one.link);
        let finding = one.finding.map(|index| &analysis.findings[index]);
        let because = match finding {
            Some(finding) => {
                let unit = plan.metrics(&plan.cells[finding.cell])[finding.metric].unit;
                let relation = &plan.comparisons[finding.comparison].relation;
                let mut because = format!(
                    "{} {}",
                    phrase_of(plan, finding.comparison),
                    predicate_of(relation, unit, finding)
                );
                if finding.noise.is_some() {
                    because.push_str(", but not above the noise floor");
                }
                because
            }
            None => {
                let ends = link.map_or(Vec::new(), |link| vec![link.first, link.second]);
                let lacking: Vec<_> =
                    plan.not_there(prediction).filter(|label| ends.contains(&label.as_str())).collect();
                match lacking.first() {
                    Some(label) => format!("`{}` was not measured", clean(label)),
                    None => "no setting of the run is meant".into(),
                }
            }
        };
        let values = one.setting.iter().flat_map(|setting| &setting.0).map(|(_, value)| *value);
        PredictedLink {
            text: clean(&link.map_or(String::new(), |link| link.to_string())),
            setting: one.setting.as_ref().map(|setting| clean(&setting.to_string())),
            values: clean(&values.collect::<Vec<_>>().join(", ")),
            came: one.came,
            verdict: finding.map(|finding| finding.kind().word()),
            because: clean(&because),
        }
    };
    Prediction {
        text: clean(&prediction.to_string()),
        came: outcome.came,
        links: outcome.links.iter().map(link).collect(),
    }
}
