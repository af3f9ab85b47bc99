//! The grammar of subjects on the command line: `[LABEL=]NAME[+RUNTIME][:key=value,…]`, where a value that
//! contains a comma, colon or equals sign is in double quotes. The kinds know what keys mean; here a
//! specification is only parsed, checked against the keys that its kind declares, and printed in one
//! canonical form.

use std::fmt;

use serde::{Deserialize, Serialize, Serializer};
use thiserror::Error;

use super::limits::{cpus_text, parse_cpus, parse_ulimits, ulimits_text};
use crate::share;
use crate::text::meant;

/// A subject as the user wrote it.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Deserialize)]
#[serde(try_from = "String")]
pub struct Spec {
    /// The user's own name for it, to distinguish two of a kind.
    pub label: Option<String>,
    /// The kind: `bare`, `floor`, `crun`, `docker` …
    pub name: String,
    /// The OCI runtime that an engine is to use.
    pub runtime: Option<String>,
    /// Keys with their values, sorted by key.
    pub keys: Vec<(String, String)>,
}

/// Why a text is not a subject.
#[derive(Debug, Error, PartialEq, Eq)]
#[error("{0}")]
pub struct SpecError(pub(super) String);

/// What a key's value can be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Values {
    /// One of these words.
    OneOf(&'static [&'static str]),
    /// A path to a file.
    Path,
    /// Any text that is not empty.
    Text(&'static str),
    /// A decimal number above zero.
    Number,
    /// A whole number from zero to this one.
    UpTo(u16),
    /// A number of CPUs or `none`; the kernel grants at least 1 ms in a period of 100 ms.
    Cpus,
    /// A number of bytes, such as `64MiB`.
    Size,
    /// A duration, such as `1.5ms`.
    Duration,
    /// Resource limits, such as `1024` or `nofile=1024:2048`.
    Ulimits,
    /// CPUs by number, such as `0-2,4`.
    CpuSet,
}

impl Values {
    /// Whether `value` is one of them.
    pub fn allow(self, value: &str) -> bool {
        match self {
            Values::OneOf(words) => words.contains(&value),
            // A leading hyphen would make it an option.
            Values::Path | Values::Text(_) => !value.is_empty() && !value.starts_with('-'),
            Values::Number => value.parse::<f64>().is_ok_and(|number| number.is_finite() && number > 0.0),
            Values::UpTo(most) => value.parse::<u16>().is_ok_and(|number| number <= most),
            Values::Cpus => {
                let granted = |number: f64| number.is_finite() && number >= 0.01;
                value == "none" || value.parse().is_ok_and(granted)
            }
            Values::Size => parse_size(value).is_some(),
            Values::Duration => parse_duration(value).is_some(),
            Values::Ulimits => parse_ulimits(value).is_some(),
            Values::CpuSet => parse_cpus(value).is_some(),
        }
    }

    /// The values in words, for help and errors.
    pub fn described(self) -> String {
        match self {
            Values::OneOf(words) => words.join(", "),
            Values::Path => "a path".into(),
            Values::Text(what) => what.into(),
            Values::Number => "a number above zero".into(),
            Values::UpTo(most) => format!("a whole number from 0 to {most}"),
            Values::Cpus => {
                "a number of CPUs from 0.01 (the kernel grants at least 1 ms in 100 ms), or none".into()
            }
            Values::Size => "a size such as 64MiB".into(),
            Values::Duration => "a duration such as 1.5ms".into(),
            Values::Ulimits => {
                "a number of open files, or limits in docker's form in double quotes, such as \"nofile=1024:2048,core=0\"".into()
            }
            Values::CpuSet => "numbers of CPUs such as 0, 0-2 or \"0,2\"".into(),
        }
    }
}

/// A key of a kind of subject.
#[derive(Debug)]
pub struct Key {
    /// Its name.
    pub name: &'static str,
    /// The values that it can have.
    pub values: Values,
    /// What it does, and its default.
    pub meaning: &'static str,
    /// Its value when it is not given, if that is always the same.
    pub default: Option<&'static str>,
}

impl Key {
    /// A key without a fixed default.
    pub(super) const fn of(name: &'static str, values: Values) -> Key {
        Key { name, values, meaning: "", default: None }
    }

    /// A key that takes one of these words; the first is the default.
    pub(super) const fn choice(name: &'static str, words: &'static [&'static str]) -> Key {
        Key { default: Some(words[0]), ..Key::of(name, Values::OneOf(words)) }
    }

    /// The same with this default.
    pub(super) const fn by_default(self, value: &'static str) -> Key {
        Key { default: Some(value), ..self }
    }

    /// The same without a fixed default.
    pub(super) const fn without_default(self) -> Key {
        Key { default: None, ..self }
    }

    /// The same with what it does, and its default.
    pub(super) const fn meaning(self, meaning: &'static str) -> Key {
        Key { meaning, ..self }
    }
}

/// A number with one of these units, multiplied by the unit's size.
fn in_units(text: &str, units: &[(&str, f64)]) -> Option<f64> {
    let end = text.find(|c: char| !(c.is_ascii_digit() || c == '.')).unwrap_or(text.len());
    let (_, factor) = units.iter().find(|(unit, _)| *unit == &text[end..])?;
    Some(text[..end].parse::<f64>().ok()? * factor)
}

/// A number of bytes with an optional binary or decimal unit; none below 1 or beyond 2⁵³.
pub fn parse_size(text: &str) -> Option<u64> {
    const BINARY: [(&str, f64); 3] = [("KiB", 1024.0), ("MiB", 1048576.0), ("GiB", 1073741824.0)];
    const DECIMAL: [(&str, f64); 5] = [("", 1.0), ("B", 1.0), ("kB", 1e3), ("MB", 1e6), ("GB", 1e9)];
    let bytes = in_units(text, &BINARY).or_else(|| in_units(text, &DECIMAL))?;
    (1.0..9e15).contains(&bytes).then_some(bytes as u64)
}

/// A duration with its unit, in seconds.
pub fn parse_duration(text: &str) -> Option<f64> {
    const LONG: [(&str, f64); 4] = [("min", 60.0), ("m", 60.0), ("h", 3600.0), ("d", 86400.0)];
    in_units(text, &[("ns", 1e-9), ("us", 1e-6), ("µs", 1e-6), ("ms", 1e-3), ("s", 1.0)])
        .or_else(|| in_units(text, &LONG))
}

fn is_word(text: &str) -> bool {
    !text.is_empty() && text.chars().all(|c| c.is_ascii_alphanumeric() || "._-".contains(c))
}

impl Spec {
    /// Parses a subject. The kind and its keys are not checked here.
    pub fn parse(text: &str) -> Result<Spec, SpecError> {
        let wrong = |why: &str| {
            SpecError(format!(
                "`{text}` is not a subject: {why}\n\nhint: the form is `[LABEL=]NAME[+RUNTIME][:key=value,…]`, as in `docker+crun:net=none`"
            ))
        };
        let head_end = text.find(':').unwrap_or(text.len());
        let (head, tail) = text.split_at(head_end);
        let (label, head) = match head.split_once('=') {
            Some((label, head)) => (Some(label.to_owned()), head),
            None => (None, head),
        };
        if label.as_deref().is_some_and(|label| !is_word(label)) {
            return Err(wrong("a label consists of letters, digits, `.`, `_` and `-`"));
        }
        let (name, runtime) = match head.split_once('+') {
            Some((name, runtime)) => (name, Some(runtime.to_owned())),
            None => (head, None),
        };
        if !is_word(name) || runtime.as_deref().is_some_and(|runtime| !is_word(runtime)) {
            return Err(wrong("a name consists of letters, digits, `.`, `_` and `-`"));
        }
        let mut keys = match tail.strip_prefix(':') {
            None => Vec::new(),
            Some(list) => split_keys(list).map_err(wrong)?,
        };
        keys.sort();
        if let Some(pair) = keys.windows(2).find(|pair| pair[0].0 == pair[1].0) {
            return Err(SpecError(format!("`{}` is given twice in `{text}`", pair[0].0)));
        }
        Ok(Spec { label, name: name.to_owned(), runtime, keys })
    }

    /// A subject without label, runtime and keys.
    pub fn plain(name: &str) -> Spec {
        Spec { label: None, name: name.to_owned(), runtime: None, keys: Vec::new() }
    }

    /// The same subject without this key, and without its label.
    pub fn without(&self, key: &str) -> Spec {
        let keys = self.keys.iter().filter(|(own, _)| own != key).cloned().collect();
        Spec { label: None, keys, ..self.clone() }
    }

    /// The number of TCP ports to publish (key `publish`).
    pub fn published(&self) -> u16 {
        self.get("publish").and_then(|number| number.parse().ok()).unwrap_or(0)
    }

    /// The value of a key, if given.
    pub fn get(&self, key: &str) -> Option<&str> {
        self.keys.iter().find(|(own, _)| own == key).map(|(_, value)| value.as_str())
    }

    /// The same subject with these keys besides its own.
    pub fn with(&self, keys: &[(&str, &str)]) -> Spec {
        let mut all = self.clone();
        all.keys.retain(|(key, _)| keys.iter().all(|(new, _)| new != key));
        all.keys.extend(keys.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())));
        all.keys.sort();
        all
    }

    /// The same subject without keys that only set the default, so that two ways of asking for
    /// the same thing are equal.
    pub fn without_defaults(mut self, declared: &[Key]) -> Spec {
        let says_nothing = |key: &str, value: &str| {
            declared.iter().any(|known| known.name == key && known.default == Some(value))
        };
        self.keys.retain(|(key, value)| !says_nothing(key, value));
        self
    }

    /// The same with numbers and limits in their shortest form, so that `0.50` and `0.5` are equal.
    pub fn with_plain_numbers(mut self, declared: &[Key]) -> Spec {
        for (key, value) in &mut self.keys {
            let known = declared.iter().find(|known| known.name == key.as_str());
            let plain = known.and_then(|known| match known.values {
                Values::Number | Values::Cpus | Values::UpTo(_) => {
                    value.parse::<f64>().ok().map(|number| number.to_string())
                }
                Values::Ulimits => parse_ulimits(value).map(|all| ulimits_text(&all)),
                Values::CpuSet => parse_cpus(value).map(|all| cpus_text(&all)),
                _ => None,
            });
            *value = plain.unwrap_or_else(|| std::mem::take(value));
        }
        self
    }

    /// Its name in tables: the label, or else the canonical text.
    pub fn shown(&self) -> String {
        self.label.clone().unwrap_or_else(|| self.to_string())
    }

    /// Checks the keys against those that the kind declares.
    pub fn check_keys(&self, declared: &[Key]) -> Result<(), SpecError> {
        let name = &self.name;
        for (key, value) in &self.keys {
            let Some(known) = declared.iter().find(|known| known.name == key) else {
                let names: Vec<_> = declared.iter().map(|known| known.name).collect();
                let meant = meant(key, names.iter().copied());
                let valid = if names.is_empty() { "none".to_owned() } else { names.join(", ") };
                return Err(SpecError(format!(
                    "`{name}` has no key `{key}`\n\nhint: {meant}its keys are {valid}"
                )));
            };
            if !known.values.allow(value) {
                let valid = known.values.described();
                return Err(SpecError(format!(
                    "`{key}={value}` is not valid for `{name}`\n\nhint: `{key}` takes {valid}"
                )));
            }
        }
        Ok(())
    }
}

/// Splits `key=value,key="value"` at commas outside double quotes.
fn split_keys(list: &str) -> Result<Vec<(String, String)>, &'static str> {
    let mut pairs = Vec::new();
    let mut rest = list;
    loop {
        let (key, after) = rest.split_once('=').ok_or("`key=value` pairs must follow the colon")?;
        if !is_word(key) {
            return Err("a key consists of letters, digits, `.`, `_` and `-`");
        }
        let (value, next) = match after.strip_prefix('"') {
            Some(quoted) => quoted.split_once('"').ok_or("a quote is not closed")?,
            None => after.split_at(after.find(',').unwrap_or(after.len())),
        };
        if !after.starts_with('"') && value.contains([':', '=', '"']) {
            return Err(
                "a value with a comma, colon, equals sign or quote must be in double quotes; for a shell, put all of it in \
                 single quotes, as in 'docker:image=\"alpine:3\"'",
            );
        }
        pairs.push((key.to_owned(), value.to_owned()));
        match next.strip_prefix(',') {
            Some(more) => rest = more,
            None if next.is_empty() => return Ok(pairs),
            None => return Err("pairs are separated by commas"),
        }
    }
}

impl TryFrom<String> for Spec {
    type Error = SpecError;

    fn try_from(text: String) -> Result<Spec, SpecError> {
        Spec::parse(&text)
    }
}

impl Serialize for Spec {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        share::spec(&format_args!("{self}"), to)
    }
}

/// The canonical form, without the label.
impl fmt::Display for Spec {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.name)?;
        if let Some(runtime) = &self.runtime {
            write!(out, "+{runtime}")?;
        }
        for (index, (key, value)) in self.keys.iter().enumerate() {
            let quote = if value.contains([',', ':', '=']) { "\"" } else { "" };
            write!(out, "{}{key}={quote}{value}{quote}", if index == 0 { ':' } else { ',' })?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn parsed(text: &str) -> Spec {
        Spec::parse(text).unwrap()
    }

    #[test]
    fn every_part_is_found() {
        let spec = parsed("old=docker+crun:net=none,image=\"registry:5000/app:2\"");
        assert_eq!(spec.label.as_deref(), Some("old"));
        assert_eq!((spec.name.as_str(), spec.runtime.as_deref()), ("docker", Some("crun")));
        assert_eq!(spec.get("image"), Some("registry:5000/app:2"));
        assert_eq!(spec.to_string(), "docker+crun:image=\"registry:5000/app:2\",net=none");
        assert_eq!(parsed("crun:bin=./crun-1.8").label, None);
    }

    #[test]
    fn what_is_wrong_is_said() {
        for text in [
            "",
            "+crun",
            "docker+",
            "docker:",
            "docker:net",
            "docker:net=a=b",
            "a b",
            "=crun",
            "docker:net=\"x",
        ] {
            let error = Spec::parse(text).unwrap_err().to_string();
            assert!(error.contains("is not a subject"), "`{text}`: {error}");
        }
        let error = Spec::parse("docker:net=none,net=host").unwrap_err().to_string();
        assert!(error.contains("given twice"), "{error}");
    }

    #[test]
    fn keys_and_values_are_checked_against_the_declared_ones() {
        let declared = [Key::choice("net", &["none", "host"]).by_default("host")];
        assert_eq!(parsed("x:net=none").check_keys(&declared), Ok(()));
        let error = parsed("x:nut=none").check_keys(&declared).unwrap_err();
        assert!(error.to_string().contains("`x` has no key `nut`"), "{error}");
        let error = parsed("x:net=nine").check_keys(&declared).unwrap_err();
        assert!(error.to_string().contains("`net` takes none, host"), "{error}");
    }

    #[test]
    fn numbers_of_ports_are_whole_and_bounded() {
        let ports = Key::of("publish", Values::UpTo(1000)).by_default("0");
        for (text, is_valid) in
            [("0", true), ("1000", true), ("1001", false), ("-1", false), ("1.5", false), ("", false)]
        {
            assert_eq!(ports.values.allow(text), is_valid, "`{text}`");
        }
        let declared = [ports];
        let plain = |text| parsed(text).with_plain_numbers(&declared).without_defaults(&declared);
        assert_eq!([plain("x:publish=08"), plain("x:publish=00")], [parsed("x:publish=8"), parsed("x")]);
        assert_eq!([parsed("x:publish=8").published(), parsed("x").published()], [8, 0]);
        assert_eq!(parsed("a=x:net=y,publish=8").without("publish"), parsed("x:net=y"));
    }

    #[test]
    fn two_ways_of_asking_for_a_limit_are_equal() {
        let declared = [Key::of("ulimit", Values::Ulimits), Key::of("cpuset", Values::CpuSet)];
        let plain = |text| parsed(text).with_plain_numbers(&declared);
        assert_eq!(plain("x:ulimit=\"nofile=5:5\",cpuset=\"1,0\""), parsed("x:ulimit=5,cpuset=0-1"));
        let error = parsed("x:ulimit=files").check_keys(&declared).unwrap_err().to_string();
        assert!(error.contains("\"nofile=1024:2048,core=0\""), "{error}");
    }

    #[test]
    fn sizes_and_durations_have_units() {
        assert_eq!(parse_size("64MiB"), Some(64 << 20));
        assert_eq!(parse_size("64M"), None);
        assert_eq!(parse_size("-1"), None);
        assert_eq!(parse_duration("1.5ms"), Some(0.0015));
        assert_eq!(parse_duration("1.5"), None);
        assert_eq!([parse_duration("2h"), parse_duration("1.5min")], [Some(7200.0), Some(90.0)]);
    }

    proptest! {
        #[test]
        fn the_canonical_form_parses_to_itself(
            name in "[a-z]{1,8}", runtime in proptest::option::of("[a-z]{1,5}"),
            keys in proptest::collection::btree_map("[a-z]{1,5}", "[a-z0-9:,=/.]{1,9}", 0..4),
        ) {
            let spec = Spec { label: None, name, runtime, keys: keys.into_iter().collect() };
            prop_assert_eq!(Spec::parse(&spec.to_string()).unwrap(), spec);
        }

        #[test]
        fn no_text_makes_it_panic(text in "\\PC{0,40}") {
            let _ = Spec::parse(&text);
        }
    }
}
