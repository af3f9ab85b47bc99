//! What came of predictions: each link of each chain, in every setting that it is about, against its finding.
//!
//! A link holds where the verdict is the one that was predicted, and does not where it is another one; what is not
//! decided, suspect, or not above the noise floor speaks neither for it nor against it.

use std::cmp::Ordering;

use serde::{Serialize, Serializer};

use super::summary::Decided;
use super::text::clean;
use super::words::{phrase, predicate};
use crate::plan::prediction::Link;
use crate::plan::{self, Plan};
use crate::record::Recorded;
use crate::verdict::{Analysis, Finding, Verdict};

/// What came of a prediction or of a part of it; of several parts together, the last of these.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Came {
    /// All of it is as predicted.
    Held,
    /// Nothing of it is otherwise, and some of it is not decided.
    NotDecided,
    /// Some of it is otherwise.
    DidNotHold,
}

/// In its words.
impl Serialize for Came {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(self.words())
    }
}

impl Came {
    /// The words used in reports and files.
    pub fn words(self) -> &'static str {
        match self {
            Came::Held => "held",
            Came::DidNotHold => "did not hold",
            Came::NotDecided => "not decided",
        }
    }
}

/// A prediction, and what came of it.
#[derive(Debug, Clone, Serialize)]
pub struct Prediction {
    /// As it is written, in the canonical form.
    #[serde(rename = "prediction")]
    pub text: String,
    /// All of it.
    #[serde(rename = "outcome")]
    pub came: Came,
    /// By link, and for each link by setting; a link of which nothing was measured stands there once, without setting.
    pub links: Vec<PredictedLink>,
}

/// Two subjects of a prediction in one setting.
#[derive(Debug, Clone, Serialize)]
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

/// What came of all predictions of a run.
pub fn predictions(run: &Recorded, analysis: &Analysis) -> Vec<Prediction> {
    let plan = &run.plan;
    let one = |prediction: &plan::Prediction| {
        let links = prediction.links().flat_map(|link| links(plan, analysis, prediction, &link));
        let links: Vec<PredictedLink> = links.collect();
        let text = clean(&prediction.to_string());
        let came = links.iter().map(|link| link.came).max().unwrap_or(Came::NotDecided);
        Prediction { text, came, links }
    };
    plan.predictions.iter().map(one).collect()
}

/// What came of a link in every setting that the prediction is about.
fn links(
    plan: &Plan,
    analysis: &Analysis,
    prediction: &plan::Prediction,
    link: &Link<'_>,
) -> Vec<PredictedLink> {
    let text = clean(&link.to_string());
    let compared = plan.comparison_of(prediction.experiment, link.first, link.second);
    let is_meant = |finding: &&Finding| {
        compared.is_some_and(|(comparison, _)| comparison == finding.comparison)
            && finding.metric == prediction.metric
            && prediction.is_about(&plan.cells[finding.cell].setting)
    };
    let of = |finding: &Finding| {
        let setting = &plan.cells[finding.cell].setting;
        let is_turned = compared.is_some_and(|(_, is_subject)| !is_subject);
        PredictedLink {
            text: text.clone(),
            setting: Some(clean(&setting.to_string())),
            values: clean(&setting.values()),
            came: match Decided::of(finding) {
                Some(_) if finding.verdict == verdict(link.order, is_turned) => Came::Held,
                Some(_) => Came::DidNotHold,
                None => Came::NotDecided,
            },
            verdict: Some(finding.kind().word()),
            because: clean(&format!("{} {}", phrase(plan, finding.comparison), predicate(finding))),
        }
    };
    let told: Vec<PredictedLink> = analysis.findings.iter().filter(is_meant).map(of).collect();
    if !told.is_empty() {
        return told;
    }
    let is_end = |label: &&String| [link.first, link.second].contains(&label.as_str());
    let because = match plan.not_there(prediction).find(is_end) {
        Some(label) => format!("`{}` was not measured", clean(label)),
        None => "no setting of the run is meant".into(),
    };
    let (came, values) = (Came::NotDecided, String::new());
    vec![PredictedLink { text, setting: None, values, came, verdict: None, because }]
}

/// What a finding must say of its subject; turned where that is the second of the link.
fn verdict(order: Ordering, is_turned: bool) -> Verdict {
    match if is_turned { order.reverse() } else { order } {
        Ordering::Less => Verdict::Less,
        Ordering::Equal => Verdict::Same,
        Ordering::Greater => Verdict::More,
    }
}
