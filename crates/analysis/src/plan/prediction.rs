//! The user's predictions, made before measuring, as text: `start.returned[prestate=idle]: bare < floor <
//! docker`. Here they are read, printed, and matched with the experiments of a run; `verdict` says whether
//! they held.
//!
//! The form: a metric, as `experiment.metric` or by a name that only one experiment has; a setting in square
//! brackets, without which the prediction is for every setting; a colon; subjects with relations between
//! them, with blanks around these, since the names of subjects contain equals signs.

use std::cmp::Ordering;
use std::fmt;

use serde::de::{Deserialize, Deserializer, Error};
use serde::{Serialize, Serializer};

use super::{Cell, Comparison, Plan, Relation};
use crate::experiment::setting::{escaped, pairs_until, unquoted};
use crate::experiment::{self, Setting, Weight};
use crate::share;
use crate::text::{listed, quoted};

/// The symbols of relations: the first subject has less, does not differ by anything that matters, has more.
const RELATIONS: [(Ordering, &str); 3] =
    [(Ordering::Less, "<"), (Ordering::Equal, "="), (Ordering::Greater, ">")];

/// Its symbol.
fn symbol(order: Ordering) -> &'static str {
    RELATIONS.iter().find(|(own, _)| *own == order).map_or("=", |(_, symbol)| symbol)
}

/// A prediction as written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Written {
    /// The experiment's name, if given.
    pub experiment: Option<String>,
    /// The metric's name.
    pub metric: String,
    /// Values of the setting; empty for every setting.
    pub setting: Vec<(String, String)>,
    /// The subjects, by the user's names for them or by label; at least two.
    pub subjects: Vec<String>,
    /// How each but the last compares with the next.
    pub relations: Vec<Ordering>,
}

/// The form of a prediction.
pub const FORM: &str = "the form is `start.returned[prestate=idle]: bare < floor < docker`, with blanks around `<`, `=` and `>`; the brackets are optional";

impl Written {
    /// Parses a text, or says what is wrong with it.
    pub fn parse(text: &str) -> Result<Written, &'static str> {
        let end = text.find(['[', ':']).ok_or("there is no colon after the metric")?;
        let (name, mut rest) = (text[..end].trim(), &text[end..]);
        let (experiment, metric) = match name.split_once(|c: char| c == '.' || c.is_whitespace()) {
            Some((experiment, metric)) => (Some(experiment), metric.trim_start()),
            None => (None, name),
        };
        let is_name = |name: &str| !name.is_empty() && !name.contains(char::is_whitespace);
        if !is_name(metric) || !experiment.is_none_or(is_name) {
            return Err("it does not begin with the name of a metric");
        }
        let mut setting = Vec::new();
        if let Some(inside) = rest.strip_prefix('[') {
            (setting, rest) =
                bracketed(inside).ok_or("the brackets do not contain `key=value`, joined by `;`")?;
        }
        let chain = rest.trim_start().strip_prefix(':').ok_or("there is no colon after the metric")?;
        let mut words = words(chain).ok_or("a quote is not closed")?.into_iter();
        let mut subjects = vec![words.next().ok_or("there are no subjects after the colon")?];
        let mut relations = Vec::new();
        while let Some(relation) = words.next() {
            relations.push(relation_of(&relation).ok_or("write `<`, `=` or `>` between two subjects")?);
            subjects.push(words.next().ok_or("there is no subject after the last relation")?);
        }
        if subjects.iter().any(|subject| relation_of(subject).is_some()) {
            return Err("there is a relation where a subject should be");
        }
        if relations.is_empty() {
            return Err("a prediction needs at least two subjects");
        }
        Ok(Written {
            experiment: experiment.map(str::to_owned),
            metric: metric.to_owned(),
            setting,
            subjects: subjects.into_iter().map(|subject| subject.text).collect(),
            relations,
        })
    }
}

impl fmt::Display for Written {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(experiment) = &self.experiment {
            write!(out, "{experiment}.")?;
        }
        out.write_str(&self.metric)?;
        if !self.setting.is_empty() {
            let one = |(key, value): &(String, String)| format!("{key}={}", quoted_value(value));
            write!(out, "[{}]", listed(self.setting.iter().map(one), ";"))?;
        }
        write!(out, ": {}", quoted_subject(&self.subjects[0]))?;
        for (order, subject) in self.relations.iter().zip(&self.subjects[1..]) {
            write!(out, " {} {}", symbol(*order), quoted_subject(subject))?;
        }
        Ok(())
    }
}

/// The pairs up to the closing bracket, and what follows it.
fn bracketed(text: &str) -> Option<(Vec<(String, String)>, &str)> {
    let (pairs, after) = pairs_until(text, &[';', ']'])?;
    let is_key = |key: &str| !key.is_empty() && !key.contains([']', ';', '"']);
    let after = after.strip_prefix(']')?;
    pairs.iter().all(|(key, _)| is_key(key)).then_some((pairs, after))
}

fn quoted_value(value: &str) -> String {
    if value.contains([';', ']', '"', '\\']) { escaped(value, '"') } else { value.to_owned() }
}

/// A subject with blanks outside its double quotes, or that looks like something else, is put in single
/// quotes.
fn quoted_subject(subject: &str) -> String {
    let word = Word { text: subject.to_owned(), is_quoted: false };
    let is_plain = words(subject).is_some_and(|words| words == [word])
        && RELATIONS.iter().all(|(_, symbol)| *symbol != subject);
    if is_plain { subject.to_owned() } else { escaped(subject, '\'') }
}

/// A word of a chain.
#[derive(Debug, PartialEq, Eq)]
struct Word {
    text: String,
    is_quoted: bool,
}

fn relation_of(word: &Word) -> Option<Ordering> {
    let known = RELATIONS.iter().find(|(_, symbol)| *symbol == word.text);
    known.filter(|_| !word.is_quoted).map(|(order, _)| *order)
}

/// Words between blanks: in single quotes, where a backslash escapes the next character, or plain, where
/// double quotes keep blanks together and stay. None if a quote is not closed.
fn words(text: &str) -> Option<Vec<Word>> {
    let mut all = Vec::new();
    let mut rest = text.trim_start();
    while !rest.is_empty() {
        let (text, after) = match rest.strip_prefix('\'') {
            Some(quoted) => unquoted(quoted, '\'')?,
            None => {
                let mut inside = false;
                let ends = |c: char| {
                    inside ^= c == '"';
                    !inside && c.is_whitespace()
                };
                let (word, after) = rest.split_at(rest.find(ends).unwrap_or(rest.len()));
                if inside {
                    return None;
                }
                (word.to_owned(), after)
            }
        };
        all.push(Word { text, is_quoted: rest.starts_with('\'') });
        rest = after.trim_start();
    }
    Some(all)
}

/// A prediction about an experiment of the run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Prediction {
    /// The experiment's name.
    pub experiment: &'static str,
    /// Index into the experiment's metrics; it is a metric with verdicts.
    pub metric: usize,
    /// As written, with the name of the experiment.
    pub written: Written,
}

/// Two subjects that a prediction is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Link<'a> {
    /// The label of the first.
    pub first: &'a str,
    /// How it compares with the second.
    pub order: Ordering,
    /// The label of the second.
    pub second: &'a str,
}

impl fmt::Display for Link<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{} {} {}", quoted_subject(self.first), symbol(self.order), quoted_subject(self.second))
    }
}

impl Prediction {
    /// The prediction, if one of these experiments gives verdicts about the metric; otherwise the reason,
    /// with a hint.
    pub fn of(written: &Written, experiments: &[&'static str]) -> Result<Prediction, String> {
        let decisive = |name: &'static str| {
            let metrics = experiment::find(name).map_or(&[][..], |one| one.metrics);
            let decided = metrics.iter().enumerate().filter(|(_, metric)| metric.weight == Weight::Verdict);
            decided.map(move |(index, metric)| (name, index, metric.name))
        };
        let own =
            |name: &&'static str| written.experiment.as_deref().is_none_or(|experiment| experiment == *name);
        let asked: Vec<&'static str> = experiments.iter().copied().filter(own).collect();
        if let (Some(experiment), []) = (&written.experiment, &asked[..]) {
            let valid = quoted(experiments);
            return Err(format!(
                "`{experiment}` is not an experiment of this run\n\nhint: its experiments are {valid}"
            ));
        }
        let known: Vec<_> = asked.iter().flat_map(|name| decisive(name)).collect();
        let found: Vec<_> = known.iter().filter(|(_, _, name)| *name == written.metric).collect();
        let full = |(experiment, _, metric): &(&str, usize, &str)| format!("{experiment}.{metric}");
        match found[..] {
            [&(experiment, metric, _)] => Ok(Prediction {
                experiment,
                metric,
                written: Written { experiment: Some(experiment.to_owned()), ..written.clone() },
            }),
            [] => {
                let valid = quoted(known.iter().map(full));
                let valid = if valid.is_empty() { "none here".to_owned() } else { valid };
                Err(format!(
                    "there are no verdicts about a metric `{}`\n\nhint: metrics with verdicts are {valid}",
                    written.metric
                ))
            }
            _ => {
                let which = quoted(found.into_iter().map(full));
                Err(format!(
                    "several experiments have a metric `{}`\n\nhint: name one of them: {which}",
                    written.metric
                ))
            }
        }
    }

    /// Whether it is about this setting.
    pub fn is_about(&self, setting: &Setting) -> bool {
        self.written.setting.iter().all(|(key, value)| setting.get(key) == Some(value.as_str()))
    }

    /// Its pairs, from left to right.
    pub fn links(&self) -> impl Iterator<Item = Link<'_>> {
        let pairs = self.written.subjects.windows(2).zip(&self.written.relations);
        pairs.map(|(pair, order)| Link { first: &pair[0], order: *order, second: &pair[1] })
    }
}

impl fmt::Display for Prediction {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.pad(&self.written.to_string())
    }
}

impl Serialize for Prediction {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        share::prediction(&format_args!("{self}"), to)
    }
}

impl<'de> Deserialize<'de> for Prediction {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Prediction, D::Error> {
        let text = String::deserialize(from)?;
        let all: Vec<&'static str> = experiment::ALL.iter().map(|one| one.name).collect();
        let read = Written::parse(&text).map_err(str::to_owned).and_then(|one| Prediction::of(&one, &all));
        read.map_err(|why| D::Error::custom(format!("the plan's prediction `{text}` cannot be read: {why}")))
    }
}

impl Plan {
    /// The labels in a prediction that have no cell in its experiment, so that nothing is decided about them.
    pub fn not_there<'a>(&'a self, prediction: &'a Prediction) -> impl Iterator<Item = &'a String> {
        prediction
            .written
            .subjects
            .iter()
            .filter(|label| self.measured_as(prediction.experiment, label).is_none())
    }

    /// The index of the subject with this label, if it takes part in the experiment.
    fn measured_as(&self, experiment: &str, label: &str) -> Option<usize> {
        let subject = self.subjects.iter().position(|one| one.label == label && one.twin_of.is_none())?;
        let has_a_cell = |cell: &Cell| cell.subject == subject && cell.experiment == experiment;
        self.cells.iter().any(has_a_cell).then_some(subject)
    }

    /// Adds the comparison of two subjects, by label, to every experiment in which both have cells and which
    /// does not compare them yet: described, not decided. Returns the number of experiments in which both
    /// have cells.
    pub fn describe(&mut self, first: &str, second: &str) -> usize {
        let mut names: Vec<&'static str> = self.cells.iter().map(|cell| cell.experiment).collect();
        names.dedup();
        let mut found = 0;
        for experiment in names {
            let both = (self.measured_as(experiment, first), self.measured_as(experiment, second));
            let (Some(subject), Some(against)) = both else { continue };
            found += 1;
            if self.comparison_of(experiment, first, second).is_none() {
                let relation = Relation::Several;
                self.comparisons.push(Comparison { experiment, subject, against, relation });
            }
        }
        found
    }

    /// The comparison of two subjects in an experiment, by label, and whether the first is its subject.
    pub fn comparison_of(&self, experiment: &str, first: &str, second: &str) -> Option<(usize, bool)> {
        let (first, second) = (self.measured_as(experiment, first)?, self.measured_as(experiment, second)?);
        let ends = |one: &Comparison| (one.subject, one.against);
        let fits = |one: &Comparison| {
            one.experiment == experiment && [(first, second), (second, first)].contains(&ends(one))
        };
        let found = self.comparisons.iter().position(fits)?;
        Some((found, self.comparisons[found].subject == first))
    }
}

/// The comparisons that predictions need and that are not made otherwise.
pub(super) fn comparisons_wanted(plan: &Plan) -> Vec<Comparison> {
    let mut wanted: Vec<Comparison> = Vec::new();
    for prediction in &plan.predictions {
        for link in prediction.links() {
            let find = |label| plan.measured_as(prediction.experiment, label);
            let (Some(one), Some(other)) = (find(link.first), find(link.second)) else { continue };
            let (subject, against, experiment) = (one.max(other), one.min(other), prediction.experiment);
            let is_known = plan.comparison_of(experiment, link.first, link.second).is_some();
            let pair = Comparison { experiment, subject, against, relation: Relation::Predicted };
            if !is_known && one != other && !wanted.contains(&pair) {
                wanted.push(pair);
            }
        }
    }
    wanted
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn parsed(text: &str) -> Written {
        Written::parse(text).unwrap_or_else(|why| panic!("{text}: {why}"))
    }

    #[test]
    fn a_prediction_is_a_metric_and_a_chain() {
        let one = parsed("start.returned: bare < floor < docker");
        assert_eq!((one.experiment.as_deref(), one.metric.as_str()), (Some("start"), "returned"));
        assert_eq!(one.subjects, ["bare", "floor", "docker"]);
        assert_eq!(one.relations, [Ordering::Less, Ordering::Less]);
        let two = parsed("http requests/s: bare = docker:net=host > docker");
        assert_eq!((two.experiment.as_deref(), two.metric.as_str()), (Some("http"), "requests/s"));
        assert_eq!(two.subjects, ["bare", "docker:net=host", "docker"]);
        assert_eq!(two.relations, [Ordering::Equal, Ordering::Greater]);
        let three = parsed("returned[prestate=idle; cache=\"a;]b\"] : docker:image=\"a b\" < 'x y'");
        assert_eq!(three.setting, [("prestate".into(), "idle".into()), ("cache".into(), "a;]b".into())]);
        assert_eq!(three.subjects, ["docker:image=\"a b\"", "x y"]);
    }

    #[test]
    fn what_is_wrong_is_told() {
        for (text, why) in [
            ("bare < floor", "no colon"),
            (": bare < floor", "does not begin"),
            ("a b c: bare < floor", "does not begin"),
            ("returned[: bare < floor", "brackets"),
            ("returned[prestate]: bare < floor", "brackets"),
            ("returned[prestate=idle: bare < floor", "brackets"),
            ("returned:", "no subjects"),
            ("returned: bare", "at least two subjects"),
            ("returned: bare<floor", "at least two subjects"),
            ("returned: bare floor", "between two subjects"),
            ("returned: bare <", "no subject"),
            ("returned: bare < <", "a relation where"),
            ("returned: < bare = floor", "between two subjects"),
            ("returned: bare < 'floor", "quote is not closed"),
            ("returned: bare < docker:image=\"a", "quote is not closed"),
        ] {
            let told = Written::parse(text).expect_err(text);
            assert!(told.contains(why), "{text}: {told}");
        }
    }

    #[test]
    fn metrics_are_found_where_something_is_decided() {
        let of = |text: &str, experiments: &[&'static str]| Prediction::of(&parsed(text), experiments);
        let chain = "bare < floor";
        let found = of(&format!("gone: {chain}"), &["start"]).unwrap();
        assert_eq!(found.to_string(), "start.gone: bare < floor");
        assert!(
            of(&format!("returned: {chain}"), &["start", "exec"])
                .unwrap_err()
                .contains("`start.returned`, `exec.returned`")
        );
        assert!(
            of(&format!("exec.returned: {chain}"), &["start"])
                .unwrap_err()
                .contains("not an experiment of this run")
        );
        let undecided = of(&format!("start.client_cpu: {chain}"), &["start"]).unwrap_err();
        assert!(undecided.contains("hint: metrics with verdicts are `start.returned`"), "{undecided}");
    }

    fn name() -> impl Strategy<Value = String> {
        "[a-z_][a-z0-9_/-]{0,9}"
    }

    fn order() -> impl Strategy<Value = Ordering> {
        prop::sample::select(&[Ordering::Less, Ordering::Equal, Ordering::Greater][..])
    }

    proptest! {
        #[test]
        fn what_is_printed_reads_back(
            experiment in prop::option::of(name()),
            metric in name(),
            setting in prop::collection::vec((name(), "\\PC{0,8}"), 0..3),
            first in "\\PC{1,12}",
            others in prop::collection::vec((order(), "[a-z:=,\"'<> \\\\.]{1,12}|\\PC{1,12}"), 1..4),
        ) {
            let (relations, others): (Vec<_>, Vec<_>) = others.into_iter().unzip();
            let subjects = [vec![first], others].concat();
            let written = Written { experiment, metric, setting, subjects, relations };
            let text = written.to_string();
            prop_assert_eq!(Written::parse(&text), Ok(written), "{}", text);
        }

        #[test]
        fn no_text_is_too_odd(text in "(\\PC|[\\[\\]:;=<>'\"\\\\ ]){0,60}") {
            if let Ok(written) = Written::parse(&text) {
                prop_assert_eq!(Written::parse(&written.to_string()), Ok(written));
            }
        }
    }
}
