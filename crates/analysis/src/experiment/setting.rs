//! The conditions that an experiment itself chooses: keys, their values, all combinations, and the text by
//! which files and people name each combination.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Mutex;

use serde::{Serialize, Serializer};

use crate::share;
use crate::text::in_brackets;

/// The conditions that an experiment chooses for one cell, as `key=value` in a fixed order.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct Setting(pub Vec<(&'static str, &'static str)>);

impl Setting {
    /// The value of a key.
    pub fn get(&self, key: &str) -> Option<&'static str> {
        self.0.iter().find(|(own, _)| *own == key).map(|(_, value)| *value)
    }

    /// The same with another value of this key.
    pub fn with(&self, key: &str, value: &'static str) -> Setting {
        let one = |&(own, old): &(&'static str, &'static str)| (own, if own == key { value } else { old });
        Setting(self.0.iter().map(one).collect())
    }

    /// The text that follows a name: ` (key=value)`, or nothing if there are no keys.
    pub fn in_brackets(&self) -> String {
        in_brackets(&self.to_string())
    }
}

/// `key=value`, joined by `;`. A value that contains `;`, `"` or `\` is put in double quotes, where a
/// backslash escapes the next character.
impl fmt::Display for Setting {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let parts: Vec<_> = self.0.iter().map(|(key, value)| format!("{key}={}", quoted(value))).collect();
        out.pad(&parts.join(";"))
    }
}

impl Serialize for Setting {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        share::setting(&format_args!("{self}"), to)
    }
}

fn quoted(value: &str) -> String {
    if value.contains([';', '"', '\\']) { escaped(value, '"') } else { value.to_owned() }
}

/// The text in these quotes, with a backslash before each of them and of itself.
pub fn escaped(text: &str, quote: char) -> String {
    let one = |c: char| (c == quote || c == '\\').then_some('\\').into_iter().chain([c]);
    format!("{quote}{}{quote}", text.chars().flat_map(one).collect::<String>())
}

/// The pairs in the text of a setting; none if it is not the text of one.
pub(super) fn pairs_in(text: &str) -> Option<Vec<(String, String)>> {
    let (pairs, rest) = pairs_until(text, &[';'])?;
    rest.is_empty().then_some(pairs)
}

/// The pairs at the beginning of a text, joined by `;`, and what follows them; a value ends before one of these letters.
pub fn pairs_until<'a>(text: &'a str, ends: &[char]) -> Option<(Vec<(String, String)>, &'a str)> {
    let mut pairs = Vec::new();
    let mut rest = text;
    loop {
        let (key, after) = rest.split_once('=')?;
        let (value, after) = match after.strip_prefix('"') {
            Some(quoted) => unquoted(quoted, '"')?,
            None => {
                let (value, after) = after.split_at(after.find(ends).unwrap_or(after.len()));
                (value.to_owned(), after)
            }
        };
        pairs.push((key.trim().to_owned(), value));
        match after.strip_prefix(';') {
            Some(after) => rest = after,
            None => return Some((pairs, after)),
        }
    }
}

/// The value after an opening quote, and the rest after the closing one; a backslash escapes the next
/// character.
pub fn unquoted(text: &str, quote: char) -> Option<(String, &str)> {
    let mut value = String::new();
    let mut characters = text.chars();
    loop {
        match characters.next()? {
            c if c == quote => return Some((value, characters.as_str())),
            '\\' => value.push(characters.next()?),
            c => value.push(c),
        }
    }
}

/// Why a value is rejected.
pub type Check = fn(&str) -> Result<(), String>;

/// Nothing if the value fits; otherwise what would fit.
pub(super) fn fits(fits: bool, what: &str) -> Result<(), String> {
    if fits { Ok(()) } else { Err(what.to_owned()) }
}

/// Whether a value is a number in this range, without a sign.
pub(super) fn is_number(value: &str, range: std::ops::RangeInclusive<usize>) -> bool {
    let has_digits = value.starts_with(|c: char| c.is_ascii_digit());
    has_digits && value.parse().is_ok_and(|number: usize| range.contains(&number))
}

/// A key that an experiment's settings vary, with the values it can take.
#[derive(Debug)]
pub struct SettingKey {
    /// Its name in `--set key=value`.
    pub name: &'static str,
    /// Its default values, the one for `--quick` first.
    pub values: &'static [&'static str],
    /// What holds in a setting without the key, if not the first of its values: in runs of older versions. The values are
    /// written down then, also if the user chose none.
    pub formerly: Option<&'static str>,
    /// Checks any other value; if none, only `values` are allowed.
    pub check: Option<Check>,
    /// What of such a value is recorded and shown; all of it if none.
    pub shown: Option<fn(&str) -> String>,
    /// What it means, for users.
    pub meaning: &'static str,
}

impl SettingKey {
    /// A key that takes these values.
    pub(super) const fn of(name: &'static str, values: &'static [&'static str]) -> SettingKey {
        SettingKey { name, values, formerly: None, check: None, shown: None, meaning: "" }
    }

    /// The same, and any other value that passes this check.
    pub(super) const fn or(self, check: Check) -> SettingKey {
        SettingKey { check: Some(check), ..self }
    }

    /// The same with only this part of a value recorded and shown.
    pub(super) const fn shown_as(self, shown: fn(&str) -> String) -> SettingKey {
        SettingKey { shown: Some(shown), ..self }
    }

    /// The same, where this value held when none was written down.
    pub(super) const fn formerly(self, value: &'static str) -> SettingKey {
        SettingKey { formerly: Some(value), ..self }
    }

    /// The value that holds in a setting without the key.
    pub fn unwritten(&self) -> &'static str {
        self.formerly.unwrap_or(self.values[0])
    }

    /// The same with what it means.
    pub(super) const fn meaning(self, meaning: &'static str) -> SettingKey {
        SettingKey { meaning, ..self }
    }

    /// The value if the key accepts it; otherwise what the key accepts, in words.
    pub fn take(&self, value: &str) -> Result<&'static str, String> {
        if let Some(listed) = self.values.iter().find(|one| **one == value) {
            return Ok(listed);
        }
        let check = self.check.ok_or_else(|| self.values.join(", "))?;
        check(value)?;
        Ok(match self.shown {
            Some(shown) => interned(&shown(value)),
            None => interned(value),
        })
    }
}

/// A value of a key that is compared, in the same rounds and with everything else alike, with another one: the control.
#[derive(Debug)]
pub struct Controlled {
    /// The key.
    pub key: &'static str,
    /// The value in question.
    pub value: &'static str,
    /// The control's.
    pub control: &'static str,
}

/// The same text for the rest of the program's life: settings are copied into every cell, and users give few
/// values of their own.
pub fn interned(text: &str) -> &'static str {
    static KNOWN: Mutex<BTreeSet<&'static str>> = Mutex::new(BTreeSet::new());
    let mut known = KNOWN.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    if let Some(own) = known.get(text) {
        return own;
    }
    let own: &'static str = Box::leak(text.to_owned().into_boxed_str());
    known.insert(own);
    own
}

/// All combinations of the values of an experiment's keys, in the order of declaration.
pub fn settings(keys: &[SettingKey], chosen: impl Fn(&SettingKey) -> Vec<&'static str>) -> Vec<Setting> {
    extended(vec![Setting::default()], keys, chosen)
}

/// All these settings with all combinations of the values of more keys.
pub fn extended(
    settings: Vec<Setting>,
    keys: &[SettingKey],
    chosen: impl Fn(&SettingKey) -> Vec<&'static str>,
) -> Vec<Setting> {
    keys.iter().fold(settings, |settings, key| {
        let values = chosen(key);
        let extended = |setting: &Setting, value| {
            let mut pairs = setting.0.clone();
            pairs.push((key.name, value));
            Setting(pairs)
        };
        settings
            .iter()
            .flat_map(|setting| values.iter().map(|value| extended(setting, value)).collect::<Vec<_>>())
            .collect()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_value_with_a_separator_stands_in_quotes() {
        let setting = Setting(vec![("cmd", r#"sh -c "a; b\c""#), ("mode", "run")]);
        assert_eq!(setting.to_string(), r#"cmd="sh -c \"a; b\\c\"";mode=run"#);
        let plain = Setting(vec![("cmd", "gzip -9 a=b"), ("mode", "run")]);
        assert_eq!(plain.to_string(), "cmd=gzip -9 a=b;mode=run");
    }

    #[test]
    fn what_is_no_setting_has_no_pairs() {
        for text in ["a", "a=b;c", "a=\"b", "a=\"b\"c", "a=\"b\\", "a=b;"] {
            assert_eq!(pairs_in(text), None, "{text}");
        }
    }

    proptest! {
        #[test]
        fn the_text_of_a_setting_gives_its_pairs_back(values in proptest::collection::vec("\\PC{0,12}", 1..4)) {
            let pairs: Vec<_> = values.iter().map(|value| ("key", interned(value))).collect();
            let back = pairs_in(&Setting(pairs).to_string());
            let back: Option<Vec<_>> = back.map(|all| all.into_iter().map(|(_, value)| value).collect());
            prop_assert_eq!(back, Some(values));
        }
    }
}
