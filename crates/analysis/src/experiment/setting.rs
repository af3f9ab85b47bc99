//! The conditions that an experiment itself chooses: keys, their values, all combinations of them, and
//! the one text of each by which files and people name it.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Mutex;

/// The conditions that an experiment itself chooses in one cell, as `key=value` in a fixed order.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct Setting(pub Vec<(&'static str, &'static str)>);

impl Setting {
    /// The value of a key.
    pub fn get(&self, key: &str) -> Option<&'static str> {
        self.0.iter().find(|(own, _)| *own == key).map(|(_, value)| *value)
    }
}

/// `key=value`, joined by `;`. A value that holds `;`, `"` or `\` stands in double quotes, in which a
/// backslash takes the meaning from the next character.
impl fmt::Display for Setting {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let parts: Vec<_> = self.0.iter().map(|(key, value)| format!("{key}={}", quoted(value))).collect();
        out.pad(&parts.join(";"))
    }
}

fn quoted(value: &str) -> String {
    if !value.contains([';', '"', '\\']) {
        return value.to_owned();
    }
    let escaped = value.chars().flat_map(|c| matches!(c, '"' | '\\').then_some('\\').into_iter().chain([c]));
    format!("\"{}\"", escaped.collect::<String>())
}

/// The pairs in the text of a setting; none where it is not the text of one.
pub(super) fn pairs_in(text: &str) -> Option<Vec<(String, String)>> {
    let mut pairs = Vec::new();
    let mut rest = text;
    loop {
        let (key, after) = rest.split_once('=')?;
        let (value, after) = match after.strip_prefix('"') {
            Some(quoted) => unquoted(quoted)?,
            None => {
                after.find(';').map_or((after.to_owned(), ""), |at| (after[..at].to_owned(), &after[at..]))
            }
        };
        pairs.push((key.to_owned(), value));
        if after.is_empty() {
            return Some(pairs);
        }
        rest = after.strip_prefix(';')?;
    }
}

/// The value that begins behind an opening quote, and what follows the closing one.
pub fn unquoted(text: &str) -> Option<(String, &str)> {
    let mut value = String::new();
    let mut characters = text.chars();
    loop {
        match characters.next()? {
            '"' => return Some((value, characters.as_str())),
            '\\' => value.push(characters.next()?),
            c => value.push(c),
        }
    }
}

/// A key that an experiment's settings vary, with the values it can take.
#[derive(Debug)]
pub struct SettingKey {
    /// Its name in `--set key=value`.
    pub name: &'static str,
    /// Its values where none is chosen, the one for `--quick` first.
    pub values: &'static [&'static str],
    /// Which other values it can be given.
    pub taken: Taken,
    /// What it means, for people.
    pub meaning: &'static str,
}

/// Which values a key can be given.
#[derive(Debug, Clone, Copy)]
pub enum Taken {
    /// Those that are listed.
    Listed,
    /// Others too, if this check has nothing against them; else it says what the key takes.
    Also(fn(&str) -> Result<(), String>),
}

impl SettingKey {
    /// The value as one of the key's, or in words what the key takes instead.
    pub fn take(&self, value: &str) -> Result<&'static str, String> {
        if let Some(listed) = self.values.iter().find(|one| **one == value) {
            return Ok(listed);
        }
        match self.taken {
            Taken::Listed => Err(self.values.join(", ")),
            Taken::Also(check) => check(value).map(|()| interned(value)),
        }
    }
}

/// The same text for as long as the program runs: settings are copied into every cell, and a person gives
/// few values of their own.
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
