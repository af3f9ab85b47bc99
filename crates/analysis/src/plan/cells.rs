//! What is measured: the subjects of a plan, and its cells.

use serde::{Deserialize, Serialize};

use crate::experiment::{self, Experiment, ExperimentName, Setting};
use crate::subject::{Layer, Need, Spec};
use crate::units::{self, Nanos};

/// On which ladder a subject stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Ladder {
    /// As a person who just installed it would start it.
    #[serde(rename = "as installed")]
    AsInstalled,
    /// With the differences between engines taken away.
    Equalised,
}

/// A subject of the plan.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Entry {
    /// What stands in tables; distinct among the subjects.
    pub label: String,
    /// What it is.
    #[serde(rename = "subject")]
    pub spec: Spec,
    /// Its layer.
    pub layer: Layer,
    /// Its ladder. Subjects below the engines stand on both.
    pub ladder: Ladder,
    /// The index of the subject that it repeats under another label.
    pub twin_of: Option<usize>,
    /// The runtime that does the work, as found.
    pub runtime: Option<String>,
    /// The time of one launch until all is gone, as seen in a trial.
    #[serde(rename = "launch_ns", with = "units::whole_nanos")]
    pub launch: Nanos,
    /// What it can do; experiments that need more have no cells with it.
    pub offers: Vec<Need>,
    /// The experiments that it takes part in; all where none is named.
    #[serde(default, skip_serializing_if = "Vec::is_empty", deserialize_with = "experiment::read_names")]
    pub only_in: Vec<ExperimentName>,
    /// The label of the subject of which an experiment made it, by another value of one key.
    pub variant_of: Option<String>,
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
    /// What it is a cell of.
    pub fn asks(&self) -> &'static Experiment {
        experiment::find(self.experiment).expect("cells are made of known experiments")
    }

    /// Whether another subject's cell is measured in the same way.
    pub fn is_beside(&self, other: &Cell) -> bool {
        self.experiment == other.experiment && self.setting == other.setting
    }
}

/// A cell as it is read: only its experiment knows which settings there are.
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
        let setting = parsed.ok_or_else(|| format!("`{setting}` is no setting of `{name}`"))?;
        Ok(Cell { experiment: experiment.name, setting, subject })
    }
}
