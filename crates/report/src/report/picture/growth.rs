//! Growth: a metric over a number in which the settings differ, such as the size of a job, or over the ports that
//! subjects publish. Each subject has a line through its medians, in a band of their intervals.

use dunnage_analysis::group::in_groups;

use super::plane::{Curve, Place, Plane, Shape, Side, Strips};
use super::{Picture, row_of, subjects};
use crate::axis::Range;
use crate::distinct;
use crate::report::model::{Experiment, Setting, Value};
use crate::report::text::{after_comma, clean, estimated, listed};
use crate::stats::Estimate;
use crate::subject::Spec;
use crate::units::Unit;

/// The fewest points: two show no growth.
const FEWEST: usize = 3;
/// Numbers further apart than this are placed by their ratio.
const WIDE: f64 = 20.0;

/// A line: its label, and the medians of a metric by number.
type Medians<'a> = (String, Vec<(f64, &'a Estimate)>);

/// A picture for each decisive metric and each rate, if all settings differ in a single number; and one for the first metric in
/// each setting in which subjects differ only in how many ports they publish.
pub(super) fn pictures(experiment: &Experiment) -> Vec<Picture> {
    let ports = experiment.settings.iter().filter_map(|setting| {
        let lines = by_ports(setting);
        picture(experiment, 0, "publish", &setting.values, lines)
    });
    over_settings(experiment).into_iter().chain(ports).collect()
}

fn over_settings(experiment: &Experiment) -> Vec<Picture> {
    let texts: Vec<&str> = experiment.settings.iter().map(|setting| setting.text.as_str()).collect();
    let Some((along, numbers)) = one_number(&texts) else { return Vec::new() };
    let asked = || subjects(experiment).into_iter().filter(|row| row.variant_of.is_none());
    let line = |metric: usize, label: &str| -> Medians<'_> {
        let median = |setting| Some(&row_of(setting, label)?.value(metric)?.summary.median);
        let known = numbers.iter().zip(&experiment.settings);
        (label.to_owned(), known.filter_map(|(number, setting)| Some((*number, median(setting)?))).collect())
    };
    let is_drawn = |index: &usize| {
        let metric = &experiment.metrics[*index];
        metric.decisive || metric.unit == Unit::PerSecond
    };
    let drawn = (0..experiment.metrics.len()).filter(is_drawn).filter_map(|metric| {
        picture(experiment, metric, &along, "", asked().map(|row| line(metric, &row.label)).collect())
    });
    drawn.collect()
}

/// The first metric of subjects that differ only in the number of ports they publish.
fn by_ports<'a>(setting: &'a Setting) -> Vec<Medians<'a>> {
    let known = setting.subjects().into_iter();
    let known = known.filter_map(|row| Some((Spec::parse(&row.subject).ok()?, row.value(0)?)));
    let lines = in_groups(known, |(spec, _)| spec.without("publish").to_string()).into_iter();
    let place = |(spec, value): (Spec, &'a Value)| (f64::from(spec.published()), &value.summary.median);
    lines.map(|(name, all)| (name, all.into_iter().map(place).collect())).collect()
}

/// A picture of these lines, without those that are too short.
fn picture(
    experiment: &Experiment,
    metric: usize,
    along: &str,
    setting: &str,
    mut lines: Vec<Medians<'_>>,
) -> Option<Picture> {
    let unit = experiment.metrics[metric].unit;
    lines.iter_mut().for_each(|(_, places)| places.sort_by(|(one, _), (other, _)| one.total_cmp(other)));
    lines.retain(|(_, places)| places.len() >= FEWEST);
    let low = lines.iter().map(|(_, places)| places[0].0).min_by(f64::total_cmp)?;
    let high = lines.iter().map(|(_, places)| places[places.len() - 1].0).max_by(f64::total_cmp)?;
    let curve = |(label, known): Medians<'_>| {
        let place = |(x, median): &(f64, &Estimate)| {
            let (low, high) = median.interval.map_or((median.value, median.value), |one| (one.low, one.high));
            Some(Place { x: *x, low, value: median.value, high })
        };
        let words = known.iter().map(|(number, median)| format!("{} at {number}", estimated(unit, median)));
        Curve {
            layer: "",
            places: known.iter().map(place).collect(),
            words: format!("{label}: {}", listed(words, ", ")),
            notes: Default::default(),
            label,
        }
    };
    // In the order of the subjects, so that each has one colour in all pictures.
    let curves: Vec<Curve> = lines.into_iter().map(curve).collect();
    let range = if low > 0.0 && high / low > WIDE { Range::Ratio } else { Range::FromZero };
    let name = experiment.metrics[metric].name;
    let plane = Plane {
        across: Side { name: along.to_owned(), unit: Unit::Count, range },
        up: Side { name: name.to_owned(), unit, range: Range::Ratio },
        strips: Strips::Together,
        shape: Shape::Line,
        curves,
    };
    let title = format!("{}: {name} over {along}{}", experiment.name, after_comma(setting));
    let caption = vec!["Lines connect medians; bands are their 95 % intervals.".into()];
    let table = plane.table();
    plane.picture(
        &[experiment.name, name, "over", along],
        title,
        caption,
        &format!("{name} over {along}"),
        table,
    )
}

/// The only number in which texts differ, and the text before it.
fn one_number(texts: &[&str]) -> Option<(String, Vec<f64>)> {
    let (first, rest) = texts.split_first()?;
    let before =
        |text: &&str| first.bytes().zip(text.bytes()).take_while(|(one, other)| one == other).count();
    let after = |text: &&str| {
        first.bytes().rev().zip(text.bytes().rev()).take_while(|(one, other)| one == other).count()
    };
    let is_of_number = |letter: char| letter.is_ascii_digit() || letter == '.';
    let before = first.get(..rest.iter().map(before).min()?)?.trim_end_matches(is_of_number);
    let after = first.get(first.len() - rest.iter().map(after).min()?..)?.trim_start_matches(is_of_number);
    let number =
        |text: &&str| text.get(before.len()..text.len().checked_sub(after.len())?)?.parse::<f64>().ok();
    let numbers: Vec<f64> = texts.iter().filter_map(number).filter(|number| number.is_finite()).collect();
    let distinct = distinct(numbers.iter().copied());
    let key = before.rsplit(';').next().unwrap_or(before).trim_end_matches('=');
    let key = key.rsplit('=').next().unwrap_or(key);
    (numbers.len() == texts.len() && distinct.len() == texts.len() && distinct.len() >= FEWEST)
        .then(|| (clean(key), numbers))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_that_differ_in_one_number_lie_on_an_axis() {
        let found = |texts: &[&str]| one_number(texts);
        let jobs =
            ["cmd=sort;mode=run;sweep=n=10", "cmd=sort;mode=run;sweep=n=20", "cmd=sort;mode=run;sweep=n=400"];
        assert_eq!(found(&jobs), Some(("n".into(), vec![10.0, 20.0, 400.0])));
        // Digits and units that numbers share at their ends belong to them.
        assert_eq!(
            found(&["w=100ms", "w=200ms", "w=1500ms"]),
            Some(("w".into(), vec![100.0, 200.0, 1500.0]))
        );
        assert_eq!(found(&["w=1ms", "w=2ms"]), None, "two are not enough");
        assert_eq!(found(&["a=1;b=2", "a=2;b=1", "a=3;b=3"]), None);
        assert_eq!(found(&["prestate=idle", "prestate=primed", "prestate=x"]), None);
        assert_eq!(found(&["", "", ""]), None);
        assert_eq!(found(&["é=1", "é=2", "è=3"]), None);
    }
}
