//! What is measured: the subjects of a plan, and its cells.

use serde::{Deserialize, Serialize};

use crate::experiment::{self, Experiment, ExperimentName, Setting};
use crate::share;
use crate::subject::inherited::Inherited;
use crate::subject::{Layer, Need, Spec};
use crate::units::{self, Nanos};

/// The ladder of a subject.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Ladder {
    /// With the engine's defaults.
    #[serde(rename = "as installed")]
    AsInstalled,
    /// With the differences between engines removed.
    Equalised,
}

/// A subject of the plan.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Entry {
    /// Its name in tables; distinct among the subjects.
    #[serde(serialize_with = "share::label")]
    pub label: String,
    /// The subject as asked for.
    #[serde(rename = "subject")]
    pub spec: Spec,
    /// Its layer.
    pub layer: Layer,
    /// Its ladder. Subjects below the engines are on both.
    pub ladder: Ladder,
    /// The index of the subject that it repeats under another label.
    pub twin_of: Option<usize>,
    /// The runtime that does the work, as found on the machine.
    #[serde(serialize_with = "share::runtime")]
    pub runtime: Option<String>,
    /// The time of one launch until nothing is left, as measured in a trial.
    #[serde(rename = "launch_ns", with = "units::whole_nanos")]
    pub launch: Nanos,
    /// What it supports; experiments that need more have no cells with it.
    pub offers: Vec<Need>,
    /// The experiments that it takes part in; empty for all.
    #[serde(default, skip_serializing_if = "Vec::is_empty", deserialize_with = "experiment::read_names")]
    pub only_in: Vec<ExperimentName>,
    /// The label of the subject that an experiment made it from, with another value of one key.
    #[serde(serialize_with = "share::label")]
    pub variant_of: Option<String>,
    /// What its containers inherit, as read back in its trial.
    #[serde(default, skip_serializing_if = "Inherited::is_empty")]
    pub inherited: Inherited,
}

/// An experiment, a setting and a subject.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "CellFile")]
pub struct Cell {
    /// The experiment's name.
    pub experiment: ExperimentName,
    /// Its conditions.
    pub setting: Setting,
    /// The subject's index.
    pub subject: usize,
}

impl Cell {
    /// Its experiment.
    pub fn asks(&self) -> &'static Experiment {
        experiment::find(self.experiment).expect("cells are made of known experiments")
    }

    /// Whether it belongs to the same experiment and setting as another cell.
    pub fn is_beside(&self, other: &Cell) -> bool {
        self.experiment == other.experiment && self.setting == other.setting
    }
}

/// A cell as read from a file: only its experiment knows the possible settings.
#[derive(Deserialize)]
struct CellFile {
    experiment: String,
    setting: String,
    subject: usize,
}

impl TryFrom<CellFile> for Cell {
    type Error = String;

    fn try_from(CellFile { experiment: name, setting, subject }: CellFile) -> Result<Cell, String> {
        let experiment = experiment::known(&name)?;
        let parsed = experiment::parse_setting(experiment, &setting);
        let setting = parsed.ok_or_else(|| format!("`{setting}` is not a setting of `{name}`"))?;
        Ok(Cell { experiment: experiment.name, setting, subject })
    }
}
