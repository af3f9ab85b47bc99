//! What is suspect in numbers that others published: the rules that our own runs obey, applied to a table. Each says what
//! was seen and what probably made it so; none corrects a number.

mod bounds;
mod columns;
mod recomputed;
mod spread;

use super::{Number, Source};
use crate::report::model::Doubt;

/// From a source's numbers to what is suspect in them.
type Rule = fn(&[Number]) -> Vec<Doubt>;

const RULES: [Rule; 10] = [
    bounds::below_zero,
    bounds::better_than_bare,
    bounds::outside_its_interval,
    bounds::another_window,
    bounds::share_of_nothing,
    columns::copies,
    recomputed::not_given,
    spread::narrow_intervals,
    spread::within_the_noise,
    spread::single_runs,
];

/// Everything that the rules find in a source, by experiment in the order of its list.
pub fn doubts(source: &Source) -> Vec<Doubt> {
    let mut all: Vec<Doubt> = RULES.iter().flat_map(|rule| rule(&source.numbers)).collect();
    all.sort_by_key(|doubt| source.experiments.iter().position(|name| *name == doubt.experiment));
    all
}

/// `docker (place=rw;size=100MB)`.
fn named(number: &Number) -> String {
    let conditions = super::joined(&number.without(&["vs", "where", "stat"]));
    format!("{} of `{}` ({conditions})", number.metric, number.subject)
}

/// The raw repetitions of a quantity: the same experiment, subject, metric and conditions.
fn repetitions(numbers: &[Number], of: &Number, conditions: &[(String, String)]) -> Vec<f64> {
    let is_one = |one: &&Number| {
        one.repetition.is_some()
            && (&one.experiment, &one.subject, &one.metric) == (&of.experiment, &of.subject, &of.metric)
            && one.conditions == conditions
    };
    numbers.iter().filter(is_one).map(|one| one.value).collect()
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

/// A number as a person would write it: four digits at least, no zeros behind.
fn shown(value: f64) -> String {
    let decimals = (3 - value.abs().max(1e-9).log10().floor() as i32).clamp(0, 9) as usize;
    let text = format!("{value:.decimals$}");
    match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.').to_owned(),
        false => text,
    }
}

/// A number with its unit, as printed; plain numbers have none.
fn printed(number: &Number) -> String {
    match number.unit.as_str() {
        "ratio" | "count" => number.printed.clone(),
        unit => format!("{} {unit}", number.printed),
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::reference::{find, sources};

    /// A number for tests: `experiment subject conditions metric unit`, with repetition, value and interval.
    pub fn number(words: &str, repetition: u32, printed: &str) -> Number {
        let [experiment, subject, conditions, metric, unit] = words.split(' ').collect::<Vec<_>>()[..] else {
            panic!("five words: {words}")
        };
        let pair = |text: &str| text.split_once('=').map(|(key, value)| (key.to_owned(), value.to_owned()));
        Number {
            experiment: experiment.into(),
            subject: subject.into(),
            conditions: conditions.split(';').filter_map(pair).collect(),
            metric: metric.into(),
            unit: unit.into(),
            repetition: (repetition > 0).then_some(repetition),
            printed: printed.into(),
            value: printed.parse().unwrap(),
            interval: None,
            repetitions: None,
            note: String::new(),
        }
    }

    /// Values in a row as repetitions 1, 2, 3 …
    pub fn series(words: &str, printed: &[&str]) -> Vec<Number> {
        (1..).zip(printed).map(|(repetition, value)| number(words, repetition, value)).collect()
    }

    pub fn fired(rule: Rule, numbers: &[Number]) -> Vec<String> {
        rule(numbers).into_iter().map(|doubt| doubt.evidence).collect()
    }

    /// What the rules find in the published tables. Each finding was checked by hand against what the cautions of its source
    /// say, of which a part stands beside it; that a docker exec is 1.1 % quicker than bare is in none.
    #[test]
    fn the_published_tables_have_the_faults_that_their_cautions_tell() {
        let expected = [
            ("course", "start", "not what its raw data give", "237x", "the raw values give 235x and 136x"),
            ("course", "start", "not what its raw data give", "137", "the raw values give 235x and 136x"),
            ("course", "memory", "negative", "-41", "negative and noisy deltas"),
            ("course", "memory", "negative", "-143", "negative and noisy deltas"),
            (
                "course",
                "memory",
                "a single run",
                "30 numbers",
                "memory, scaling and nested cells are single runs",
            ),
            ("course", "cpu_exec", "difference within the noise", "-1.1 %", ""),
            ("course", "cpu_exec", "difference within the noise", "11.4 %", "not significant at 5 %"),
            ("course", "disk_write", "better than bare", "1600 MB/s", "3.5 times the bare device"),
            (
                "course",
                "disk_write",
                "difference within the noise",
                "8 %",
                "8-9 % above bare is not significant",
            ),
            (
                "course",
                "disk_write",
                "difference within the noise",
                "9 %",
                "8-9 % above bare is not significant",
            ),
            (
                "course",
                "nested",
                "a single run",
                "14 numbers",
                "memory, scaling and nested cells are single runs",
            ),
            (
                "course",
                "scale",
                "a single run",
                "27 numbers",
                "memory, scaling and nested cells are single runs",
            ),
            (
                "upv-unionfs",
                "layers",
                "columns that are copies",
                "overlay2",
                "printed twice, for 10 and for 20 layers",
            ),
            (
                "upv-unionfs",
                "layers",
                "columns that are copies",
                "fuse-overlayfs",
                "identical in all nine rows",
            ),
            ("upv-unionfs", "layers", "interval too narrow", "4 of 27", "1.58 times too narrow"),
            ("opscart", "syscall", "not what its raw data give", "25 %", "+25 % and +11.0 % at once"),
            ("opscart", "syscall", "no raw data", "1640", "the factor 1,640 has no test behind it"),
            ("opscart", "syscall", "a single run", "6 numbers", "Every test ran once"),
            (
                "opscart",
                "throttle",
                "window and counters disagree",
                "19.9 s",
                "199 periods of 100 ms are 19.9 s",
            ),
            (
                "opscart",
                "throttle",
                "a share of nothing",
                "0 periods",
                "without a quota there are no periods",
            ),
            ("opscart", "throttle", "a single run", "21 numbers", "Every test ran once"),
            (
                "opscart",
                "net_latency",
                "not what its raw data give",
                "0.2 us",
                "0.2 us statements from the earlier one",
            ),
            (
                "opscart",
                "net_latency",
                "no raw data",
                "97 %",
                "the 97 % reduction compares this tool with literature",
            ),
            ("opscart", "net_latency", "a single run", "6 numbers", "Every test ran once"),
            ("node-http", "http", "better than bare", "6924 req/s", "which isolation cannot explain"),
            ("node-http", "http", "better than bare", "7485 req/s", "which isolation cannot explain"),
            ("node-http", "http", "better than bare", "net=bridge", "which isolation cannot explain"),
            ("node-http", "http", "better than bare", "net=host", "which isolation cannot explain"),
        ];
        let found: Vec<(&str, Doubt)> = sources()
            .iter()
            .flat_map(|source| doubts(source).into_iter().map(|doubt| (source.name.as_str(), doubt)))
            .collect();
        let told: Vec<_> =
            found.iter().map(|(source, one)| (*source, one.experiment.as_str(), one.rule)).collect();
        assert_eq!(
            told,
            expected.map(|(source, experiment, rule, ..)| (source, experiment, rule)),
            "{found:#?}"
        );
        for ((source, doubt), (.., seen, caution)) in found.iter().zip(expected) {
            let cautions = &find(source).unwrap().cautions;
            let seen = seen.trim_end_matches('x');
            assert!(doubt.evidence.contains(seen), "{doubt:?}");
            assert!(cautions.iter().any(|one| one.text.contains(caution)), "{caution}");
        }
    }
}
