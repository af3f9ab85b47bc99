//! The outcome of predictions: each link of each chain is checked against its finding, in every setting it concerns.
//!
//! A link holds if the verdict is the predicted one, and does not hold if it is another one. A finding that is
//! undecided, suspect, or not above the noise floor leaves it undecided.

use std::cmp::Ordering;

use serde::{Serialize, Serializer};

use super::summary::Decided;
use super::text::clean;
use super::words::{claim, setting_values};
use crate::plan::prediction::Link;
use crate::plan::{self, Plan};
use crate::record::Recorded;
use crate::verdict::{Analysis, Finding, Verdict};

/// The outcome of a prediction or of one of its links; several links together have the last of theirs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Came {
    /// As predicted.
    Held,
    /// Nothing contradicts it, but something is undecided.
    NotDecided,
    /// Something contradicts it.
    DidNotHold,
}

/// As its words.
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

/// A prediction and its outcome.
#[derive(Debug, Clone, Serialize)]
pub struct Prediction {
    /// Its text in canonical form.
    #[serde(rename = "prediction")]
    pub text: String,
    /// The outcome as a whole.
    #[serde(rename = "outcome")]
    pub came: Came,
    /// By link, and for each link by setting; a link without measurements appears once, without a setting.
    pub links: Vec<PredictedLink>,
}

/// Two subjects of a prediction in one setting.
#[derive(Debug, Clone, Serialize)]
pub struct PredictedLink {
    /// Its text, such as `bare < floor`.
    #[serde(rename = "link")]
    pub text: String,
    /// The setting as `key=value` joined by `;`; none if nothing was measured.
    pub setting: Option<String>,
    /// The values of the setting only.
    #[serde(skip)]
    pub values: String,
    /// The outcome.
    #[serde(rename = "outcome")]
    pub came: Came,
    /// The word of the verdict on the compared subject, which may be the first or the second; none without a verdict.
    pub verdict: Option<&'static str>,
    /// What the finding says, or why there is none.
    #[serde(rename = "sentence")]
    pub because: String,
}

/// The outcomes of all predictions of a run.
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

/// The outcome of a link in every setting that the prediction concerns.
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
            values: setting_values(plan, prediction.experiment, setting),
            came: match Decided::of(finding) {
                Some(_) if finding.verdict == verdict(link.order, is_turned) => Came::Held,
                Some(_) => Came::DidNotHold,
                None => Came::NotDecided,
            },
            verdict: Some(finding.kind().word()),
            because: claim(plan, finding),
        }
    };
    let told: Vec<PredictedLink> = analysis.findings.iter().filter(is_meant).map(of).collect();
    if !told.is_empty() {
        return told;
    }
    let is_end = |label: &&String| [link.first, link.second].contains(&label.as_str());
    let because = match plan.not_there(prediction).find(is_end) {
        Some(label) => format!("`{}` was not measured", clean(label)),
        None => "the run has no such setting".into(),
    };
    let (came, values) = (Came::NotDecided, String::new());
    vec![PredictedLink { text, setting: None, values, came, verdict: None, because }]
}

/// The verdict that a finding must have; reversed if its subject is the second of the link.
fn verdict(order: Ordering, is_turned: bool) -> Verdict {
    match if is_turned { order.reverse() } else { order } {
        Ordering::Less => Verdict::Less,
        Ordering::Equal => Verdict::Same,
        Ordering::Greater => Verdict::More,
    }
}
