//! What is suspect in published numbers? The rules that dunnage's own runs obey, applied to published tables. The
//! tables never change, so the findings are in a file, `data/reference/suspects.toml`, which the program reads and
//! these tests compare with what the rules find. Each rule reports the evidence and the probable cause; none
//! corrects a number.

mod bounds;
mod columns;
mod pattern;
mod recomputed;
mod spread;
mod student;
mod sums;

use std::collections::BTreeMap;
use std::path::Path;

use dunnage_report::reference::{Number, Source, Suspect, find, joined, sources};

/// What is suspect, and its probable cause.
struct Rule {
    name: &'static str,
    find: Find,
    mechanism: &'static str,
}

/// How a rule finds suspects, and the evidence it reports.
enum Find {
    /// In one number, compared with all others.
    Each(fn(&[Number], &Number) -> Option<String>),
    /// In all numbers together, with the experiment of each finding.
    All(fn(&[Number]) -> Vec<(&str, String)>),
}

const fn rule(name: &'static str, find: Find, mechanism: &'static str) -> Rule {
    Rule { name, find, mechanism }
}

const RULES: &[Rule] = &[
    rule(
        "negative",
        Find::Each(bounds::below_zero),
        "a difference of two readings of the whole machine, dominated by other activity",
    ),
    rule(
        "better than bare",
        Find::Each(bounds::better_than_bare_in_a_layer),
        "writes that never reach the device: a volatile mount, or the page cache",
    ),
    rule(
        "better than bare",
        Find::Each(bounds::better_than_bare_elsewhere),
        "different programs, paths or loads on the two sides: isolation makes nothing faster",
    ),
    rule(
        "outside its interval",
        Find::Each(bounds::outside_its_interval),
        "numbers from different rows, or a typing error",
    ),
    rule(
        "window and counters disagree",
        Find::All(bounds::another_window),
        "counters not read at both ends of the stated window",
    ),
    rule(
        "window and counters disagree",
        Find::Each(sums::share_of_another_window),
        "the requested length instead of the one that the counters cover",
    ),
    rule(
        "a share of nothing",
        Find::Each(bounds::share_of_nothing),
        "nothing is counted without a quota: the share does not apply",
    ),
    rule(
        "columns that are copies",
        Find::All(columns::copies),
        "one measurement printed several times, or copied in place of another",
    ),
    rule(
        "not what its raw data give",
        Find::Each(recomputed::not_given),
        "computed from rounded or different numbers, or left over from another version",
    ),
    rule(
        "parts and whole disagree",
        Find::Each(sums::not_the_sum),
        "parts of another run, or a sum rounded by hand",
    ),
    rule(
        "parts and whole disagree",
        Find::Each(sums::components),
        "estimates that were not checked against the whole",
    ),
    rule(
        "two values",
        Find::Each(sums::told_otherwise),
        "left over from another run or version of the document",
    ),
    rule(
        "linear without a fit",
        Find::Each(pattern::no_line),
        "a figure per container is the slope of a line, and these totals show none: too few, too noisy or not linear",
    ),
    rule(
        "one factor in two columns",
        Find::All(pattern::one_factor),
        "something that the rows have in common causes the difference, not what they are named after",
    ),
    rule(
        "a sign that flips",
        Find::All(pattern::flips),
        "something that was not varied, such as the position of files on the disk, or intervals that are too narrow",
    ),
    rule(
        "load that cannot be divided",
        Find::All(sums::undivided_connections),
        "the load generator opens the same number for each thread",
    ),
    rule(
        "no raw data",
        Find::Each(recomputed::without_data),
        "a claim without a measurement, or a comparison of a measurement with a quotation",
    ),
    rule(
        "interval too narrow",
        Find::Each(spread::narrower_than_student),
        "the quantile of a normal distribution instead of Student's, or an underestimated spread",
    ),
    rule(
        "interval too narrow",
        Find::All(spread::disagreements),
        "intervals too narrow for so few repetitions, or a machine that changed in between",
    ),
    rule(
        "difference within the noise",
        Find::Each(spread::within_the_noise),
        "too few repetitions for a difference of this size",
    ),
    rule("a single run", Find::All(spread::single_runs), "the deviation of a second run is unknown"),
];

/// Everything that the rules find in a source, by experiment, in the order of its list.
fn suspects(source: &Source) -> Vec<Suspect> {
    let mut all = found(&source.numbers);
    all.sort_by_key(|one| source.experiments.iter().position(|name| *name == one.experiment));
    all
}

fn found(numbers: &[Number]) -> Vec<Suspect> {
    let of = |rule: &Rule| -> Vec<Suspect> {
        let found: Vec<(&str, String)> = match rule.find {
            Find::Each(find) => {
                let one = |one| Some((one, find(numbers, one)?));
                numbers
                    .iter()
                    .filter_map(one)
                    .map(|(one, evidence)| (one.experiment.as_str(), evidence))
                    .collect()
            }
            Find::All(find) => find(numbers),
        };
        let suspect = |(experiment, evidence): (&str, String)| Suspect {
            rule: rule.name.to_owned(),
            experiment: experiment.to_owned(),
            evidence,
            mechanism: rule.mechanism.to_owned(),
        };
        found.into_iter().map(suspect).collect()
    };
    RULES.iter().flat_map(of).collect()
}

/// `used of `docker` (place=rw;size=100MB)`.
fn named(number: &Number) -> String {
    let conditions = joined(&number.without(&["vs", "where", "stat"]));
    format!("{} of `{}` ({conditions})", number.metric, number.subject)
}

/// The same with its number and unit as printed; plain numbers have no unit.
fn told(number: &Number) -> String {
    match number.unit.as_str() {
        "ratio" | "count" => format!("{} is {}", named(number), number.printed),
        unit => format!("{} is {} {unit}", named(number), number.printed),
    }
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

/// One step in the last printed digit: rounding and truncation move a number by no more.
fn last_digit(number: &Number) -> f64 {
    let decimals = number.printed.split_once('.').map_or(0, |(_, decimals)| decimals.len());
    10f64.powi(-(decimals as i32))
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

/// The smallest and the largest value.
fn range(values: &[f64]) -> [f64; 2] {
    [
        values.iter().copied().fold(f64::INFINITY, f64::min),
        values.iter().copied().fold(f64::NEG_INFINITY, f64::max),
    ]
}

/// A number in short form: at least four digits, no trailing zeros.
fn shown(value: f64) -> String {
    let decimals = (3 - value.abs().max(1e-9).log10().floor() as i32).clamp(0, 9) as usize;
    let text = format!("{value:.decimals$}");
    match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.').to_owned(),
        false => text,
    }
}

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

/// The evidence of the rules with this name.
pub fn fired(rule: &str, numbers: &[Number]) -> Vec<String> {
    assert!(RULES.iter().any(|one| one.name == rule), "no rule is called {rule}");
    found(numbers).into_iter().filter(|one| one.rule == rule).map(|one| one.evidence).collect()
}

#[test]
fn a_last_digit_is_as_large_as_its_place() {
    assert!((last_digit(&number("x docker a=1 wall_time ms", 0, "307.8")) - 0.1).abs() < 1e-12);
    assert_eq!(last_digit(&number("x docker a=1 wall_time ms", 0, "308")), 1.0);
}

/// The program says what the rules find; `DUNNAGE_BLESS=1` writes it.
#[test]
#[expect(
    clippy::disallowed_methods,
    reason = "writes the file where it is asked to; the crate itself writes none"
)]
fn the_file_of_suspects_holds_what_the_rules_find() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../data/reference/suspects.toml");
    let found: BTreeMap<&str, Vec<Suspect>> =
        sources().iter().map(|source| (source.name.as_str(), suspects(source))).collect();
    if std::env::var_os("DUNNAGE_BLESS").is_some() {
        let head = "# What dunnage's rules find in published.csv; written by its tests.\n\n";
        std::fs::write(&path, format!("{head}{}", toml::to_string(&found).unwrap())).unwrap();
        return;
    }
    for source in sources() {
        assert_eq!(
            found[source.name.as_str()],
            source.suspects,
            "`DUNNAGE_BLESS=1` writes {}",
            path.display()
        );
    }
}

/// What the rules find in the published tables. Each finding was checked by hand against the cautions of its source,
/// and part of the caution is quoted here; that a docker exec is 1.1 % faster than bare, and a sum of 9.5 MB, are in
/// none of them.
#[test]
fn the_published_tables_have_the_faults_that_their_cautions_tell() {
    let expected = [
        ("course", "start", "not what its raw data give", "237x", "the raw values give 235x and 136x"),
        ("course", "start", "not what its raw data give", "137", "the raw values give 235x and 136x"),
        ("course", "memory", "negative", "-41", "negative and noisy deltas"),
        ("course", "memory", "negative", "-143", "negative and noisy deltas"),
        ("course", "memory", "parts and whole disagree", "9.29 MB", ""),
        ("course", "memory", "linear without a fit", "`docker` is -41", "50-150 MB, above the signal"),
        ("course", "memory", "linear without a fit", "`podman` is 39", "50-150 MB, above the signal"),
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
        ("course", "disk_write", "difference within the noise", "8 %", "8-9 % above bare is not significant"),
        ("course", "disk_write", "difference within the noise", "9 %", "8-9 % above bare is not significant"),
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
            "linear without a fit",
            "2.00, 7.76, 10.70 s",
            "the linear trend claimed does not hold",
        ),
        ("course", "scale", "linear without a fit", "50, 119, 199 MB", "single runs"),
        ("course", "scale", "linear without a fit", "35, 14, 87 MB", "single runs"),
        ("course", "scale", "a single run", "27 numbers", "memory, scaling and nested cells are single runs"),
        (
            "upv-unionfs",
            "layers",
            "columns that are copies",
            "overlay2",
            "printed twice, for 10 and for 20 layers",
        ),
        ("upv-unionfs", "layers", "columns that are copies", "fuse-overlayfs", "identical in all nine rows"),
        ("upv-unionfs", "layers", "a sign that flips", "9 of 54", "differ in opposite directions"),
        ("upv-unionfs", "layers", "interval too narrow", "4 of 27", "1.58 times too narrow"),
        ("opscart", "syscall", "not what its raw data give", "25 %", "+25 % and +11.0 % at once"),
        ("opscart", "syscall", "two values", "25 % in the headline", "+25 % and +11.0 % at once"),
        ("opscart", "syscall", "no raw data", "1640", "the factor 1,640 has no test behind it"),
        ("opscart", "syscall", "a single run", "6 numbers", "Every test ran once"),
        ("opscart", "throttle", "window and counters disagree", "19.9 s", "199 periods of 100 ms are 19.9 s"),
        (
            "opscart",
            "throttle",
            "window and counters disagree",
            "40.7 %",
            "41 % of the observed window, not 27 %",
        ),
        ("opscart", "throttle", "a share of nothing", "0 periods", "without a quota there are no periods"),
        ("opscart", "throttle", "a single run", "21 numbers", "Every test ran once"),
        (
            "opscart",
            "net_latency",
            "not what its raw data give",
            "0.2 us",
            "0.2 us statements from the earlier one",
        ),
        ("opscart", "net_latency", "two values", "0.568 us", "0.2 us statements from the earlier one"),
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
        ("node-http", "http", "one factor in two columns", "0.9214", "follows the cost of the HTTP path"),
        ("node-http", "http", "load that cannot be divided", "384", "opens 384 connections"),
    ];
    let found: Vec<(&str, Suspect)> = sources()
        .iter()
        .flat_map(|source| suspects(source).into_iter().map(|suspect| (source.name.as_str(), suspect)))
        .collect();
    let told: Vec<_> =
        found.iter().map(|(source, one)| (*source, one.experiment.as_str(), one.rule.as_str())).collect();
    assert_eq!(told, expected.map(|(source, experiment, rule, ..)| (source, experiment, rule)), "{found:#?}");
    for ((source, suspect), (.., seen, caution)) in found.iter().zip(expected) {
        let cautions = &find(source).unwrap().cautions;
        let seen = seen.trim_end_matches('x');
        assert!(suspect.evidence.contains(seen), "{suspect:?}");
        assert!(cautions.iter().any(|one| one.text.contains(caution)), "{caution}");
    }
}
