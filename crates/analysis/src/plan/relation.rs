//! Why two cells are compared, and which cells those are: two subjects in every setting, or two settings of one
//! subject.

use serde::{Deserialize, Serialize};

use super::{Cell, Plan};
use crate::experiment::setting::interned;
use crate::experiment::{self, ExperimentName, Setting};

/// Why two cells are compared.
#[derive(Serialize, Deserialize, strum::IntoStaticStr, strum::VariantNames)]
#[serde(tag = "relation", rename_all = "lowercase")]
#[strum(serialize_all = "lowercase")]
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Relation {
    /// The second is the baseline of the run.
    Baseline,
    /// Both are the same, so the difference is noise.
    Twin,
    /// Both belong to one layer and one ladder, and the user chose at most one difference, which may bring
    /// others with it: another engine as installed.
    #[serde(rename = "one choice")]
    #[strum(serialize = "one choice")]
    Choice,
    /// The first is one step above the second: what the step adds.
    Step,
    /// They differ in this one thing, so it can be named as a cause.
    #[serde(rename = "one key")]
    #[strum(serialize = "one key")]
    OneKey {
        /// The key of subjects, or `engine`, `runtime`.
        key: String,
    },
    /// The user chose this one thing, but what their containers inherit is not the same either, so no cause can be named.
    #[serde(rename = "one key and more")]
    #[strum(serialize = "one key and more")]
    KeyAndMore {
        /// Likewise.
        key: String,
    },
    /// One subject in two settings that differ in this one thing: the second has the control's value.
    #[serde(rename = "one setting")]
    #[strum(serialize = "one setting")]
    OneSetting {
        /// The key of the experiment.
        key: String,
        /// Its value.
        value: String,
        /// The control's value.
        control: String,
    },
    /// The user predicted how they compare.
    Predicted,
    /// Several things differ, and a reader asked to see both: nothing is decided.
    #[serde(skip_deserializing)]
    Several,
}

impl Relation {
    /// The words used in files.
    pub const NAMES: &[&str] = <Relation as strum::VariantNames>::VARIANTS;

    /// The word used in files.
    pub fn name(&self) -> &'static str {
        self.into()
    }

    /// The purpose of such a comparison.
    pub fn role(&self) -> Role {
        match self {
            Relation::Twin => Role::Control,
            Relation::Several => Role::Described,
            _ => Role::Asked,
        }
    }

    /// Whether both sides differ in one thing alone, so that it is the cause.
    pub fn names_a_cause(&self) -> bool {
        matches!(self, Relation::OneKey { .. } | Relation::OneSetting { .. })
    }

    /// Whether both sides are one subject in two settings.
    pub fn is_of_settings(&self) -> bool {
        matches!(self, Relation::OneSetting { .. })
    }

    /// Whether no more than one key differs as far as was chosen.
    pub(super) fn is_of_one_key(&self) -> bool {
        matches!(self, Relation::OneKey { .. } | Relation::KeyAndMore { .. } | Relation::Twin)
    }

    /// The setting of the other side; none if this setting is not compared.
    fn other_side(&self, setting: &Setting) -> Option<Setting> {
        match self {
            Relation::OneSetting { key, value, control } => {
                (setting.get(key) == Some(value)).then(|| setting.with(key, interned(control)))
            }
            _ => Some(setting.clone()),
        }
    }

    /// What both sides have of a setting.
    pub fn shared(&self, setting: &Setting) -> Setting {
        let is_shared = |(own, _): &&(&str, &str)| match self {
            Relation::OneSetting { key, .. } => own != key,
            _ => true,
        };
        Setting(setting.0.iter().filter(is_shared).copied().collect())
    }
}

/// What a comparison is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// A question that is asked first: these verdicts of an experiment are a family of their own.
    First,
    /// One of the other verdicts of its experiment.
    Asked,
    /// A check of the instrument, at a level that the controls of its experiment share.
    Control,
    /// Shown with its interval only.
    Described,
}

/// Two sides that will be compared in every decisive metric of an experiment: two subjects, in every setting, or one
/// subject, in those settings that have a control.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Comparison {
    /// The experiment's name.
    #[serde(deserialize_with = "experiment::read_name")]
    pub experiment: ExperimentName,
    /// The subject's index.
    pub subject: usize,
    /// The index of the subject that it is compared with.
    pub against: usize,
    /// Why.
    #[serde(flatten)]
    pub relation: Relation,
}

impl Comparison {
    /// Whether a cell is on the side of the subject.
    pub(super) fn is_about(&self, cell: &Cell) -> bool {
        cell.subject == self.subject
            && cell.experiment == self.experiment
            && self.relation.other_side(&cell.setting).is_some()
    }
}

impl Plan {
    /// Each comparison with its cells: the subject's, and the one that it is compared with.
    pub fn compared(&self) -> impl Iterator<Item = (usize, usize, usize)> {
        let cells = |(index, one): (usize, &Comparison)| {
            self.cells_of(one).into_iter().map(move |(cell, against)| (index, cell, against))
        };
        self.comparisons.iter().enumerate().flat_map(cells)
    }

    /// The cells of a comparison, likewise.
    pub(super) fn cells_of(&self, one: &Comparison) -> Vec<(usize, usize)> {
        let own = self.cells.iter().enumerate().filter(|(_, cell)| one.is_about(cell));
        let against =
            |cell: &Cell| self.cell_of(one.experiment, &one.relation.other_side(&cell.setting)?, one.against);
        own.filter_map(|(at, cell)| Some((at, against(cell)?))).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Reasons as they are written, those of older versions among them.
    #[test]
    fn a_reason_is_read_as_it_was_written() {
        let key = || "net".to_owned();
        let setting = Relation::OneSetting {
            key: "place".to_owned(),
            value: "volume".to_owned(),
            control: "root".to_owned(),
        };
        for (relation, text) in [
            (Relation::Baseline, r#""relation":"baseline""#),
            (Relation::Choice, r#""relation":"one choice""#),
            (Relation::OneKey { key: key() }, r#""relation":"one key","key":"net""#),
            (Relation::KeyAndMore { key: key() }, r#""relation":"one key and more","key":"net""#),
            (setting, r#""relation":"one setting","key":"place","value":"volume","control":"root""#),
        ] {
            let comparison = Comparison { experiment: "disk", subject: 1, against: 0, relation };
            let text = format!(r#"{{"experiment":"disk","subject":1,"against":0,{text}}}"#);
            assert_eq!(serde_json::to_string(&comparison).unwrap(), text);
            assert_eq!(serde_json::from_str::<Comparison>(&text).unwrap(), comparison);
        }
        // Only a report describes; no plan says so.
        let several = r#"{"experiment":"disk","subject":1,"against":0,"relation":"several"}"#;
        assert!(serde_json::from_str::<Comparison>(several).is_err());
    }

    #[test]
    fn a_setting_with_the_value_in_question_has_the_control_on_the_other_side() {
        let setting = |place| Setting(vec![("place", place), ("size", "1GiB")]);
        let (key, value, control) = ("place".to_owned(), "volume".to_owned(), "root".to_owned());
        let relation = Relation::OneSetting { key, value, control };
        assert_eq!(relation.other_side(&setting("volume")), Some(setting("root")));
        assert_eq!(
            [relation.other_side(&setting("root")), relation.other_side(&setting("bind"))],
            [None, None]
        );
        assert_eq!(relation.shared(&setting("volume")), Setting(vec![("size", "1GiB")]));
        assert_eq!(Relation::Baseline.other_side(&setting("bind")), Some(setting("bind")));
        assert_eq!(Relation::Baseline.shared(&setting("bind")), setting("bind"));
    }
}
