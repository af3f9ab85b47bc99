//! Maps over two dimensions, with a field for each pair: its value in words, its size as a shade. Differences by
//! subject and metric, a metric by subject and setting, and what worked.

use super::letters::{shorten, width};
use super::svg::{Canvas, End, HEAT_STEPS, LABEL, SIDE, SMALL, WIDTH};
use super::{Drawing, Picture, Table, named, row_of, subjects, under};
use crate::report::model::{Experiment, Report, Row, Setting};
use crate::report::text::{after_comma, clean};
use crate::units::counted;
use crate::verdict::Verdict;

/// From so many decisive metrics on, a map is better than a picture of each.
const MANY_METRICS: usize = 5;
/// Values further apart than this are shaded by their ratio.
const WIDE: f64 = 20.0;

/// The narrowest and the widest column of row names: at most a third of the picture.
const LABEL_ROOM: (f64, f64) = (40.0, 240.0);
/// The narrowest and the widest field.
const ACROSS: (f64, f64) = (44.0, 140.0);
/// The space around the text of a field.
const AIR: f64 = 8.0;
const FIELD: f64 = 24.0;
const HEAD: f64 = 22.0;

/// Fields in rows and columns.
#[derive(Debug, Clone)]
pub struct Grid {
    /// Column headings.
    pub columns: Vec<String>,
    /// The labels of subjects, and a field for each column.
    pub rows: Vec<(String, Vec<Field>)>,
}

/// The field of a row and a column.
#[derive(Debug, Clone)]
pub struct Field {
    /// Its text.
    pub text: String,
    /// The words shown under the pointer.
    pub word: &'static str,
    /// Its size as a step of the shades; none if unknown.
    pub shade: Option<usize>,
    /// The class of its text: `faint` if undecided or missing, `alarm` if something is wrong.
    pub class: &'static str,
}

impl Field {
    fn of(text: String, class: &'static str, shade: Option<usize>) -> Field {
        Field { text, word: "", shade, class }
    }
}

/// The maps of an experiment, with the one of what worked last.
pub(super) fn pictures(report: &Report, experiment: &Experiment) -> Vec<Picture> {
    let mut pictures: Vec<Picture> =
        experiment.settings.iter().filter_map(|setting| differences(experiment, setting)).collect();
    let is_map = |metric: &usize| experiment.about.maps.contains(&experiment.metrics[*metric].name);
    let maps = (0..experiment.metrics.len()).filter(is_map);
    pictures.extend(maps.filter_map(|metric| by_setting(experiment, metric)));
    pictures.extend(what_worked(report, experiment));
    pictures
}

/// The difference of every subject from the baseline in every decisive metric; none if there are few metrics.
fn differences(experiment: &Experiment, setting: &Setting) -> Option<Picture> {
    let metrics: Vec<usize> =
        (0..experiment.metrics.len()).filter(|&index| experiment.metrics[index].decisive).collect();
    let subjects: Vec<&Row> =
        subjects(experiment).into_iter().filter(|row| row.variant_of.is_none() && !row.is_baseline).collect();
    let baseline = &setting.ladders.first()?.baseline;
    if metrics.len() < MANY_METRICS || subjects.is_empty() {
        return None;
    }
    let field = |row: &Row, metric: usize| -> Option<Field> {
        let change = row_of(setting, &row.label)?.found(metric)?;
        let difference = change.difference?;
        let (mark, class, shade) = match change.verdict {
            _ if change.noise.is_some() => (" ~", "faint", None),
            // Changes for the worse are shaded; in neutral metrics, increases.
            Verdict::More | Verdict::Less if change.kind().of_the_one_named() == change.kind() => {
                let times = change.matters.map_or(1.0, |matters| difference.value.abs() / matters);
                ("", "ink", Some((1 + times.max(1.0).log2().round() as usize).min(HEAT_STEPS - 1)))
            }
            Verdict::More | Verdict::Less => ("", "ink", Some(0)),
            Verdict::Same => (" =", "ink", Some(0)),
            Verdict::Suspect(_) => (" !", "alarm", None),
            _ => (" ?", "faint", None),
        };
        let shown = experiment.metrics[metric].unit.format_signed(difference.value);
        Some(Field { word: change.word(), ..Field::of(format!("{shown}{mark}"), class, shade) })
    };
    // Subjects are rows: there can be thirty of them with long names, and metrics have short ones.
    let columns = metrics.iter().map(|&metric| (experiment.metrics[metric].name.to_owned(), metric));
    let grid = Grid::of(&subjects, columns, |row, metric| {
        field(row, metric).unwrap_or_else(|| Field::of("-".into(), "faint", None))
    });
    let slower = grid.fields().filter(|field| field.shade.is_some_and(|shade| shade > 0)).count();
    let alternative = format!(
        "Map of {} by {}: in {slower} of {} fields the subject is slower than {baseline}.",
        counted(subjects.len(), "subject"),
        counted(metrics.len(), "metric"),
        grid.fields().count()
    );
    let under = if experiment.settings.len() > 1 { under(setting) } else { String::new() };
    Some(grid.picture(
        &[experiment.name, "differences", if under.is_empty() { "" } else { &setting.values }],
        format!("{}: difference of each subject from {baseline}{under}", experiment.name),
        vec![
            "Medians of the paired differences. Shaded fields are decided: the darker, the larger the difference relative \
             to the smallest that matters; the lightest does not exceed it."
                .into(),
            "= no difference that matters · ? undecided · ~ in noise · ! suspect".into(),
        ],
        alternative,
    ))
}

/// A metric by subject and setting; none if there is nothing to see.
fn by_setting(experiment: &Experiment, metric: usize) -> Option<Picture> {
    let unit = experiment.metrics[metric].unit;
    let subjects = subjects(experiment);
    let value =
        |setting: &Setting, row: &Row| Some(row_of(setting, &row.label)?.value(metric)?.summary.median.value);
    let of_setting = |setting: &Setting| subjects.iter().any(|row| value(setting, row).is_some());
    let settings: Vec<&Setting> = experiment.settings.iter().filter(|setting| of_setting(setting)).collect();
    let has_value = |row: &&Row| settings.iter().any(|setting| value(setting, row).is_some());
    let subjects: Vec<&Row> = subjects.iter().copied().filter(has_value).collect();
    let all = settings.iter().flat_map(|setting| subjects.iter().filter_map(|row| value(setting, row)));
    let (low, high) =
        all.fold((f64::INFINITY, 0.0), |(low, high): (f64, f64), value| (low.min(value), high.max(value)));
    // A metric of a single setting is in the pictures of that setting.
    if settings.len() < 2 || high <= 0.0 {
        return None;
    }
    let share = |value: f64| match low > 0.0 && high / low > WIDE {
        true => (value / low).ln() / (high / low).ln(),
        false => value / high,
    };
    let columns = settings.iter().map(|one| (clean(&one.values), *one));
    let grid = Grid::of(&subjects, columns, |row, setting| match value(setting, row) {
        Some(value) => {
            let shade = (share(value).clamp(0.0, 1.0) * (HEAT_STEPS - 1) as f64).round() as usize;
            Field::of(unit.format(value), "ink", Some(shade))
        }
        None => Field::of("n/a".into(), "faint", None),
    });
    let name = experiment.metrics[metric].name;
    let alternative = format!(
        "Map of {name} of {} in {}, from {} to {}.",
        counted(subjects.len(), "subject"),
        counted(settings.len(), "setting"),
        unit.format(low),
        unit.format(high)
    );
    Some(grid.picture(
        &[experiment.name, "map", name],
        format!("{}: {name} by subject and setting", experiment.name),
        vec![format!("Medians. The darker, the larger {name}; n/a: does not apply, or has no value.")],
        alternative,
    ))
}

/// Which subjects worked in which settings; none if all did.
fn what_worked(report: &Report, experiment: &Experiment) -> Option<Picture> {
    let failures: Vec<_> = report.failures.iter().filter(|one| one.experiment == experiment.name).collect();
    if failures.is_empty() {
        return None;
    }
    let field = |row: &Row, setting: &Setting| {
        let own = row_of(setting, &row.label);
        let has_value = own.is_some_and(|own| own.values.iter().any(Option::is_some));
        let class = failures
            .iter()
            .find(|one| one.label == row.label && one.settings.contains(&setting.text))
            .map_or("failed", |one| one.class);
        match own.map(|own| own.lost) {
            None => Field::of("-".into(), "faint", None),
            Some(0) => Field::of("✓ works".into(), "ink", Some(1)),
            Some(lost) if has_value => Field::of(format!("✓ but {lost}× {class}"), "alarm", Some(0)),
            Some(_) => Field::of(format!("✗ {class}"), "alarm", None),
        }
    };
    let columns = experiment.settings.iter().map(|setting| match setting.text.as_str() {
        "" => ("all".to_owned(), setting),
        _ => (clean(&setting.values), setting),
    });
    let grid = Grid::of(&subjects(experiment), columns, field);
    let alternative = format!(
        "Map of what worked: {} of {} combinations of subject and setting failed at least once.",
        grid.fields().filter(|field| field.class == "alarm").count(),
        grid.fields().count()
    );
    Some(grid.picture(
        &[experiment.name, "worked"],
        format!("{}: what worked, by subject and setting", experiment.name),
        vec!["✓ at least one sample · ✗ none, with the class of the failure; see the failures for the reasons.".into()],
        alternative,
    ))
}

impl Grid {
    /// A row for each subject, and a column for each of these with its heading.
    fn of<T: Copy>(
        subjects: &[&Row],
        columns: impl Iterator<Item = (String, T)>,
        field: impl Fn(&Row, T) -> Field,
    ) -> Grid {
        let (columns, about): (Vec<String>, Vec<T>) = columns.unzip();
        let fields = |row: &Row| about.iter().map(|&one| field(row, one)).collect();
        Grid { columns, rows: subjects.iter().map(|row| (row.label.clone(), fields(row))).collect() }
    }

    fn fields(&self) -> impl Iterator<Item = &Field> {
        self.rows.iter().flat_map(|(_, fields)| fields)
    }

    /// Its picture, with the data.
    fn picture(self, name: &[&str], title: String, caption: Vec<String>, alternative: String) -> Picture {
        let row = |(name, fields): &(String, Vec<Field>)| {
            std::iter::once(name.clone()).chain(fields.iter().map(|field| field.text.clone())).collect()
        };
        let columns = std::iter::once("subject".to_owned()).chain(self.columns.iter().cloned()).collect();
        let table = Table { columns, rows: self.rows.iter().map(row).collect() };
        Picture { name: named(name), title, caption, alternative, table, drawing: Drawing::Grid(self) }
    }

    /// The width of the row names.
    fn label_room(&self) -> f64 {
        let longest = self.rows.iter().map(|(name, _)| width(name, LABEL)).fold(0.0, f64::max);
        longest.clamp(LABEL_ROOM.0, LABEL_ROOM.1)
    }

    /// How many columns fit next to each other, and how wide each is: as many as are readable, in about equal
    /// parts, so that none has a single column.
    fn beside(&self, room: f64) -> (usize, f64) {
        let heads = self.columns.iter().map(String::as_str);
        let texts = heads.chain(self.fields().map(|field| field.text.as_str()));
        let needed = texts.map(|text| width(text, SMALL) + AIR).fold(ACROSS.0, f64::max).min(ACROSS.1);
        let most = ((room / needed) as usize).max(1);
        let parts = self.columns.len().div_ceil(most).max(1);
        let beside = self.columns.len().div_ceil(parts).max(1);
        (beside, (room / beside as f64).min(ACROSS.1))
    }

    /// Draws it from a height on, in parts if there are many columns, and returns where it ends.
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
                for (index, (field, head)) in fields.iter().skip(part * beside).zip(heads).enumerate() {
                    let at = (left + across * index as f64, y);
                    let words = format!("{name}, {head}: {}{}", field.text, after_comma(field.word));
                    let class = field.shade.map_or(String::new(), |shade| format!("h{shade}"));
                    canvas.subject(&class, name, &words);
                    if field.shade.is_some() {
                        canvas.rectangle("mark", (at.0 + 1.0, at.1 + 1.0), (across - 2.0, FIELD - 2.0));
                    }
                    let text = shorten(&field.text, SMALL, across - AIR / 2.0);
                    let middle = (at.0 + across / 2.0, base);
                    canvas.text(field.class, middle, End::Middle, SMALL, &text);
                    canvas.end();
                }
                y += FIELD;
            }
            y += 8.0;
        }
        y
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn grid(subjects: usize, metrics: usize) -> Grid {
        let field = |_| Field::of("+11.4 ns ?".into(), "ink", None);
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
            // Nothing is cut: headings and fields have enough room.
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
