//! What happens where two things meet? A field for each pair, with its value in words and its size as a shade: what
//! differs by subject and metric, a metric by subject and setting, and what worked.

use super::letters::{shorten, width};
use super::svg::{Canvas, End, HEAT_STEPS, LABEL, SIDE, SMALL, WIDTH};
use super::{Drawing, Picture, Table, named};
use crate::report::model::{Experiment, Report, Row, Setting};
use crate::report::text::clean;
use crate::units::counted;
use crate::verdict::Verdict;

/// From so many decisive metrics on, a map tells more than pictures of each.
const MANY_METRICS: usize = 5;
/// Values further apart than this are told apart by their ratio.
const WIDE: f64 = 20.0;

/// What the names of rows take at least, and at most: a third of the picture.
const LABEL_ROOM: (f64, f64) = (40.0, 240.0);
/// How wide a field is at least, and at most.
const ACROSS: (f64, f64) = (44.0, 140.0);
/// What is left free around the letters of a field.
const AIR: f64 = 8.0;
const FIELD: f64 = 24.0;
const HEAD: f64 = 22.0;

/// Fields in rows and columns.
#[derive(Debug, Clone)]
pub struct Grid {
    /// Heads of columns.
    pub columns: Vec<String>,
    /// Heads of rows, and a field for each column.
    pub rows: Vec<(String, Vec<Field>)>,
}

/// Where a row and a column meet.
#[derive(Debug, Clone, Default)]
pub struct Field {
    /// The label of the subject that it is about.
    pub subject: String,
    /// What it says.
    pub text: String,
    /// How much of it there is, as a step of the shades; none where that is not known.
    pub shade: Option<usize>,
    /// Whether it must not be overlooked.
    pub tone: Tone,
    /// All of it in words.
    pub words: String,
}

/// How a field is to be taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Tone {
    /// As any other.
    #[default]
    Plain,
    /// As something that is not decided, or not there.
    Open,
    /// As something that is wrong.
    Alarm,
}

/// The maps of an experiment, what worked last.
pub(super) fn pictures(report: &Report, experiment: &Experiment) -> Vec<Picture> {
    let mut pictures: Vec<Picture> =
        experiment.settings.iter().filter_map(|setting| differences(experiment, setting)).collect();
    pictures.extend(experiment.maps.iter().filter_map(|&metric| by_setting(experiment, metric)));
    pictures.extend(what_worked(report, experiment));
    pictures
}

/// The labels of all subjects, what was made of one below it.
pub(super) fn subjects(experiment: &Experiment) -> Vec<&Row> {
    let mut rows: Vec<&Row> = Vec::new();
    for (_, _, row) in experiment.rows() {
        if rows.iter().all(|known| known.label != row.label) {
            rows.push(row);
        }
    }
    let place = |row: &Row| {
        let original = row.variant_of.as_ref().unwrap_or(&row.label);
        rows.iter().position(|one| one.label == *original).unwrap_or(usize::MAX)
    };
    let mut sorted = rows.clone();
    sorted.sort_by(|one, other| place(one).cmp(&place(other)).then(one.label.cmp(&other.label)));
    sorted
}

fn row_of<'a>(setting: &'a Setting, label: &str) -> Option<&'a Row> {
    setting.ladders.iter().flat_map(|ladder| &ladder.rows).find(|row| row.label == label)
}

/// What every subject takes more than the baseline in every decisive metric; none where there are few metrics.
fn differences(experiment: &Experiment, setting: &Setting) -> Option<Picture> {
    let metrics: Vec<usize> =
        (0..experiment.metrics.len()).filter(|&index| experiment.metrics[index].decisive).collect();
    let subjects: Vec<&Row> =
        subjects(experiment).into_iter().filter(|row| row.variant_of.is_none() && !row.is_baseline).collect();
    let baseline = &setting.ladders.first()?.baseline;
    if metrics.len() < MANY_METRICS || subjects.is_empty() {
        return None;
    }
    let field = |subject: &str, metric: usize| -> Field {
        let own = row_of(setting, subject);
        let change = own.and_then(|row| row.against_baseline.get(metric)?.as_ref());
        let unit = experiment.metrics[metric].unit;
        let nothing =
            || Field { subject: subject.to_owned(), text: "-".into(), tone: Tone::Open, ..Field::default() };
        let Some((change, difference)) = change.and_then(|one| Some((one, one.difference?))) else {
            return nothing();
        };
        let (tone, shade) = match change.verdict {
            _ if change.hidden_by_noise.is_some() => (Tone::Open, None),
            // Shaded is what a person does not wish for; of what only describes, more of it.
            Verdict::More | Verdict::Less if change.kind.of_the_one_named() == change.kind => {
                let times = change.matters.map_or(1.0, |matters| difference.value.abs() / matters);
                (Tone::Plain, Some((1 + times.max(1.0).log2().round() as usize).min(HEAT_STEPS - 1)))
            }
            Verdict::More | Verdict::Less | Verdict::Same => (Tone::Plain, Some(0)),
            Verdict::Suspect(_) => (Tone::Alarm, None),
            _ => (Tone::Open, None),
        };
        let mark = match change.verdict {
            _ if change.hidden_by_noise.is_some() => " ~",
            Verdict::Same => " =",
            Verdict::Suspect(_) => " !",
            Verdict::More | Verdict::Less => "",
            _ => " ?",
        };
        let shown = unit.format_signed(difference.value);
        Field {
            subject: subject.to_owned(),
            words: format!("{subject} {}: {shown}, {}", experiment.metrics[metric].name, change.word()),
            text: format!("{shown}{mark}"),
            shade,
            tone,
        }
    };
    // Subjects are rows: there can be thirty of them with long names, and metrics have short ones.
    let rows = subjects.iter().map(|row| {
        let fields = metrics.iter().map(|&metric| field(&row.label, metric));
        (row.label.clone(), fields.collect())
    });
    let columns = metrics.iter().map(|&metric| experiment.metrics[metric].name.to_owned());
    let grid = Grid { columns: columns.collect(), rows: rows.collect() };
    let slower = grid.fields().filter(|field| field.shade.is_some_and(|shade| shade > 0)).count();
    let under =
        if experiment.settings.len() > 1 { format!(", {}", clean(&setting.text)) } else { String::new() };
    Some(Picture {
        name: named(&[experiment.name, "differences", if under.is_empty() { "" } else { &setting.values }]),
        experiment: experiment.name,
        title: format!("{}: what each subject takes more than {baseline}{under}", experiment.name),
        caption: vec![
            "Median of the paired differences. A shade means that it is decided: the darker, the more times what matters; \
             the lightest is no more than that."
                .into(),
            "= no difference that matters · ? not decided · ~ no more than the noise floor · ! suspect".into(),
        ],
        alternative: format!(
            "Map of {} by {}: in {slower} of {} fields the subject is slower than {baseline}.",
            counted(subjects.len(), "subject"),
            counted(metrics.len(), "metric"),
            grid.fields().count()
        ),
        table: grid.table("subject"),
        drawing: Drawing::Grid(grid),
    })
}

/// A metric by subject and setting; none where there is nothing to be seen.
fn by_setting(experiment: &Experiment, metric: usize) -> Option<Picture> {
    let unit = experiment.metrics[metric].unit;
    let value = |setting: &Setting, label: &str| {
        Some(row_of(setting, label)?.values.get(metric)?.as_ref()?.median.value)
    };
    let settings: Vec<&Setting> = experiment
        .settings
        .iter()
        .filter(|setting| subjects(experiment).iter().any(|row| value(setting, &row.label).is_some()))
        .collect();
    let has_value = |row: &&Row| settings.iter().any(|setting| value(setting, &row.label).is_some());
    let subjects: Vec<&Row> = subjects(experiment).into_iter().filter(has_value).collect();
    let all: Vec<f64> = settings
        .iter()
        .flat_map(|setting| subjects.iter().filter_map(|row| value(setting, &row.label)))
        .collect();
    let (low, high) = all
        .iter()
        .fold((f64::INFINITY, 0.0), |(low, high): (f64, f64), value| (low.min(*value), high.max(*value)));
    // What only one setting has is told by pictures of that setting.
    if settings.len() < 2 || high <= 0.0 {
        return None;
    }
    let share = |value: f64| match low > 0.0 && high / low > WIDE {
        true => (value / low).ln() / (high / low).ln(),
        false => value / high,
    };
    let field = |setting: &Setting, row: &Row| match value(setting, &row.label) {
        Some(value) => Field {
            subject: row.label.clone(),
            text: unit.format(value).replace('-', "−"),
            shade: Some((share(value).clamp(0.0, 1.0) * (HEAT_STEPS - 1) as f64).round() as usize),
            tone: Tone::Plain,
            words: format!("{}, {}: {}", row.label, clean(&setting.values), unit.format(value)),
        },
        None => Field {
            subject: row.label.clone(),
            text: "n/a".into(),
            tone: Tone::Open,
            words: format!("{}, {}: no value", row.label, clean(&setting.values)),
            ..Field::default()
        },
    };
    let rows = subjects
        .iter()
        .map(|row| (row.label.clone(), settings.iter().map(|setting| field(setting, row)).collect()));
    let grid =
        Grid { columns: settings.iter().map(|one| clean(&one.values)).collect(), rows: rows.collect() };
    let name = experiment.metrics[metric].name;
    Some(Picture {
        name: named(&[experiment.name, "map", name]),
        experiment: experiment.name,
        title: format!("{}: {name} by subject and setting", experiment.name),
        caption: vec![format!(
            "Medians. The darker, the more {name}; n/a: it does not apply, or there is no value."
        )],
        alternative: format!(
            "Map of {name} of {} in {}, from {} to {}.",
            counted(subjects.len(), "subject"),
            counted(settings.len(), "setting"),
            unit.format(low).replace('-', "−"),
            unit.format(high).replace('-', "−")
        ),
        table: grid.table("subject"),
        drawing: Drawing::Grid(grid),
    })
}

/// Which subjects worked in which settings; none where all did.
fn what_worked(report: &Report, experiment: &Experiment) -> Option<Picture> {
    let failures: Vec<_> = report.failures.iter().filter(|one| one.experiment == experiment.name).collect();
    if failures.is_empty() {
        return None;
    }
    let field = |setting: &Setting, row: &Row| {
        let own = row_of(setting, &row.label);
        let has_value = own.is_some_and(|own| own.values.iter().any(Option::is_some));
        let class = failures
            .iter()
            .find(|one| one.label == row.label && one.settings.contains(&setting.text))
            .map_or("failed", |one| one.class);
        let (text, tone, shade) = match own.map(|own| own.lost) {
            None => ("-".to_owned(), Tone::Open, None),
            Some(0) => ("✓ works".to_owned(), Tone::Plain, Some(1)),
            Some(lost) if has_value => (format!("✓ but {lost}× {class}"), Tone::Alarm, Some(0)),
            Some(_) => (format!("✗ {class}"), Tone::Alarm, None),
        };
        let words = format!("{}, {}: {text}", row.label, clean(&setting.values));
        Field { subject: row.label.clone(), text, shade, tone, words }
    };
    let subjects = subjects(experiment);
    let rows = subjects.iter().map(|row| {
        (row.label.clone(), experiment.settings.iter().map(|setting| field(setting, row)).collect())
    });
    let head =
        |setting: &Setting| if setting.text.is_empty() { "all".to_owned() } else { clean(&setting.values) };
    let grid = Grid { columns: experiment.settings.iter().map(head).collect(), rows: rows.collect() };
    let wrong = grid.fields().filter(|field| field.tone == Tone::Alarm).count();
    Some(Picture {
        name: named(&[experiment.name, "worked"]),
        experiment: experiment.name,
        title: format!("{}: what worked, by subject and setting", experiment.name),
        caption: vec!["✓ at least one sample · ✗ none, with the class of the failure; the reasons stand under failures.".into()],
        alternative: format!(
            "Map of what worked: {wrong} of {} combinations of subject and setting failed at least once.",
            grid.fields().count()
        ),
        table: grid.table("subject"),
        drawing: Drawing::Grid(grid),
    })
}

impl Grid {
    fn fields(&self) -> impl Iterator<Item = &Field> {
        self.rows.iter().flat_map(|(_, fields)| fields)
    }

    fn table(&self, head: &str) -> Table {
        let row = |(name, fields): &(String, Vec<Field>)| {
            std::iter::once(name.clone()).chain(fields.iter().map(|field| field.text.clone())).collect()
        };
        Table {
            columns: std::iter::once(head.to_owned()).chain(self.columns.iter().cloned()).collect(),
            rows: self.rows.iter().map(row).collect(),
        }
    }

    /// What the names of rows take.
    fn label_room(&self) -> f64 {
        let longest = self.rows.iter().map(|(name, _)| width(name, LABEL)).fold(0.0, f64::max);
        longest.clamp(LABEL_ROOM.0, LABEL_ROOM.1)
    }

    /// How many columns stand beside each other, and how wide each is: as many as can be read, and in parts that
    /// are about equal, so that none is left with a single column.
    fn beside(&self, room: f64) -> (usize, f64) {
        let heads = self.columns.iter().map(String::as_str);
        let texts = heads.chain(self.fields().map(|field| field.text.as_str()));
        let needed = texts.map(|text| width(text, SMALL) + AIR).fold(ACROSS.0, f64::max).min(ACROSS.1);
        let most = ((room / needed) as usize).max(1);
        let parts = self.columns.len().div_ceil(most).max(1);
        let beside = self.columns.len().div_ceil(parts).max(1);
        (beside, (room / beside as f64).min(ACROSS.1))
    }

    /// Draws it from a height on, in parts where there are many columns, and says where it ends.
    pub(super) fn draw(&self, canvas: &mut Canvas, top: f64) -> f64 {
        let labels = self.label_room();
        let left = SIDE + labels + AIR;
        let (beside, across) = self.beside(WIDTH - SIDE - left);
        let mut y = top;
        for (part, heads) in self.columns.chunks(beside).enumerate() {
            y += HEAD;
            for (index, head) in heads.iter().enumerate() {
                let middle = left + across * (index as f64 + 0.5);
                let head = shorten(head, SMALL, across - AIR / 2.0);
                canvas.text("faint", (middle, y - 6.0), End::Middle, SMALL, &head);
            }
            for (name, fields) in &self.rows {
                let base = y + FIELD / 2.0 + 4.0;
                canvas.text("ink", (SIDE, base), End::Start, LABEL, &shorten(name, LABEL, labels));
                for (index, field) in fields.iter().skip(part * beside).take(heads.len()).enumerate() {
                    self.field(canvas, field, (left + across * index as f64, y), across);
                }
                y += FIELD;
            }
            y += 8.0;
        }
        y
    }

    fn field(&self, canvas: &mut Canvas, field: &Field, at: (f64, f64), across: f64) {
        let class = field.shade.map_or(String::new(), |shade| format!("h{shade}"));
        canvas.subject(&class, &field.subject, &field.words);
        if field.shade.is_some() {
            canvas.rectangle("mark", (at.0 + 1.0, at.1 + 1.0), (across - 2.0, FIELD - 2.0));
        }
        let tone = match field.tone {
            Tone::Plain => "ink",
            Tone::Open => "faint",
            Tone::Alarm => "alarm",
        };
        let text = shorten(&field.text, SMALL, across - AIR / 2.0);
        canvas.text(tone, (at.0 + across / 2.0, at.1 + FIELD / 2.0 + 4.0), End::Middle, SMALL, &text);
        canvas.end();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn grid(subjects: usize, metrics: usize) -> Grid {
        let field = |_| Field { text: "+11.4 ns ?".into(), ..Field::default() };
        let rows = (0..subjects).map(|row| (format!("docker:{row}"), (0..metrics).map(field).collect()));
        Grid {
            columns: (0..metrics).map(|metric| format!("pipe_round_trip{metric}")).collect(),
            rows: rows.collect(),
        }
    }

    #[test]
    fn parts_are_about_equal_and_no_column_stands_alone() {
        for metrics in 1..=30 {
            let grid = grid(3, metrics);
            let (beside, across) = grid.beside(WIDTH - 2.0 * SIDE - grid.label_room() - AIR);
            let last = (metrics - 1) % beside + 1;
            assert!(metrics == 1 || last > 1, "{metrics} in parts of {beside} leave {last}");
            // Nothing is cut: heads and fields have the room that they take.
            assert!(across >= width("pipe_round_trip29", SMALL) + AIR / 2.0, "{across}");
        }
    }

    #[test]
    fn names_of_rows_have_a_third_of_the_picture_at_most() {
        let mut long = grid(2, 3);
        long.rows[1].0 = "containerd:log=none,net=none,seccomp=default,memory=64MiB,cpus=0.5".into();
        assert_eq!(long.label_room(), LABEL_ROOM.1);
        assert!(grid(1, 1).label_room() < 80.0);
    }
}
