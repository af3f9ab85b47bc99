//! What happens where two things meet? A field for each pair, with its value in words and its size as a shade: what
//! differs by subject and metric, a metric by subject and setting, and what worked.

use super::letters::shorten;
use super::svg::{Canvas, End, HEAT_STEPS, LABEL, SIDE, SMALL, WIDTH};
use super::{Drawing, Picture, Table, named};
use crate::report::model::{Experiment, Report, Row, Setting};
use crate::report::text::clean;
use crate::units::counted;
use crate::verdict::Verdict;

/// From so many decisive metrics on, a map tells more than pictures of each.
const MANY_METRICS: usize = 5;
/// Columns that fit beside each other.
const BESIDE: usize = 8;
/// Values further apart than this are told apart by their ratio.
const WIDE: f64 = 20.0;

const LABEL_ROOM: f64 = 150.0;
const LEFT: f64 = SIDE + LABEL_ROOM + 8.0;
const WIDEST: f64 = 140.0;
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
            Verdict::Slower => {
                let times = change.matters.map_or(1.0, |matters| difference.value / matters);
                (Tone::Plain, Some((1 + times.max(1.0).log2().round() as usize).min(HEAT_STEPS - 1)))
            }
            Verdict::Faster | Verdict::Same => (Tone::Plain, Some(0)),
            Verdict::Suspect(_) => (Tone::Alarm, None),
            _ => (Tone::Open, None),
        };
        let mark = match change.verdict {
            Verdict::Same => " =",
            Verdict::Suspect(_) => " !",
            Verdict::Slower | Verdict::Faster => "",
            _ => " ?",
        };
        let shown = unit.format_signed(difference.value);
        Field {
            subject: subject.to_owned(),
            words: format!(
                "{subject} {}: {shown}, {}",
                experiment.metrics[metric].name,
                change.verdict.word()
            ),
            text: format!("{shown}{mark}"),
            shade,
            tone,
        }
    };
    let rows = metrics.iter().map(|&metric| {
        let fields = subjects.iter().map(|row| field(&row.label, metric));
        (experiment.metrics[metric].name.to_owned(), fields.collect())
    });
    let grid = Grid { columns: subjects.iter().map(|row| row.label.clone()).collect(), rows: rows.collect() };
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
            "= no difference that matters · ? not decided · ! suspect".into(),
        ],
        alternative: format!(
            "Map of {} by {}: in {slower} of {} fields the subject is slower than {baseline}.",
            counted(metrics.len(), "metric"),
            counted(subjects.len(), "subject"),
            grid.fields().count()
        ),
        table: grid.table("metric"),
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

    /// Draws it from a height on, in parts where there are many columns, and says where it ends.
    pub(super) fn draw(&self, canvas: &mut Canvas, top: f64) -> f64 {
        let columns = self.columns.len().clamp(1, BESIDE);
        let across = ((WIDTH - SIDE - LEFT) / columns as f64).min(WIDEST);
        let mut y = top;
        for (part, heads) in self.columns.chunks(BESIDE).enumerate() {
            y += HEAD;
            for (index, head) in heads.iter().enumerate() {
                let middle = LEFT + across * (index as f64 + 0.5);
                canvas.text(
                    "faint",
                    (middle, y - 6.0),
                    End::Middle,
                    SMALL,
                    &shorten(head, SMALL, across - 6.0),
                );
            }
            for (name, fields) in &self.rows {
                let base = y + FIELD / 2.0 + 4.0;
                canvas.text("ink", (SIDE, base), End::Start, LABEL, &shorten(name, LABEL, LABEL_ROOM));
                for (index, field) in fields.iter().skip(part * BESIDE).take(heads.len()).enumerate() {
                    self.field(canvas, field, (LEFT + across * index as f64, y), across);
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
        let text = shorten(&field.text, SMALL, across - 6.0);
        canvas.text(tone, (at.0 + across / 2.0, at.1 + FIELD / 2.0 + 4.0), End::Middle, SMALL, &text);
        canvas.end();
    }
}
