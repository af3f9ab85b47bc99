//! The variables of a command. Their values are secret: a setting has only the names, and the values are kept apart from
//! everything that is shown or shared.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fmt;

use serde::{Deserialize, Serialize};

use crate::experiment::command::line;

/// The key of settings whose value is a list of names.
pub const KEY: &str = "env";
/// Shorter values are part of many texts by chance, and hiding them would make texts unreadable.
const SHORTEST: usize = 4;

/// The values of variables by the names in the setting, such as `A B`.
#[derive(Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Variables(BTreeMap<String, Vec<String>>);

impl fmt::Debug for Variables {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_set().entries(self.0.keys()).finish()
    }
}

/// The name in `NAME=VALUE` or `NAME`.
fn name(word: &str) -> &str {
    word.split_once('=').map_or(word, |(name, _)| name)
}

/// The names in a list of `NAME=VALUE` and `NAME`.
pub fn names(text: &str) -> Result<String, String> {
    let words = line::split(text)?;
    words.iter().try_for_each(|word| line::variable(word))?;
    let names: Vec<String> = words.iter().map(|word| name(word).to_owned()).collect();
    Ok(line::join(&names))
}

impl Variables {
    /// Keeps the values in a list of `NAME=VALUE`, and of `NAME`, whose value `outside` knows. Returns the names for the setting.
    pub fn keep(
        &mut self,
        text: &str,
        outside: impl Fn(&str) -> Result<String, String>,
    ) -> Result<String, String> {
        let shown = names(text)?;
        let whole = |word: String| match word.contains('=') {
            true => Ok(word),
            false => outside(&word).map(|value| format!("{word}={value}")),
        };
        let all: Vec<String> = line::split(text)?.into_iter().map(whole).collect::<Result<_, _>>()?;
        if self.0.get(&shown).is_some_and(|known| *known != all) {
            return Err(format!(
                "`{shown}` has two values, and as values are not shown, their results could not be told apart\n\nhint: use \
                 `--sweep`, whose values are shown, as in `--shell --cmd 'GOGC={{n}} exec ./program' --sweep n=50,100`"
            ));
        }
        self.0.insert(shown.clone(), all);
        Ok(shown)
    }

    /// The variables with these names, as `NAME=VALUE`; none if their values are not here.
    pub fn named(&self, names: &str) -> Option<&[String]> {
        self.0.get(names).map(Vec::as_slice)
    }

    /// The text with the name of a variable in place of each of its values.
    pub fn hidden(&self, text: &str) -> String {
        let mut all: Vec<(&str, &str)> =
            self.0.values().flatten().filter_map(|pair| pair.split_once('=')).collect();
        all.retain(|(_, value)| value.trim().len() >= SHORTEST);
        // A value may be part of another one.
        all.sort_by_key(|(_, value)| std::cmp::Reverse(value.len()));
        let hide = |text: String, (name, value): (&str, &str)| {
            let hide = |text: String, value: &str| text.replace(value, &format!("[value of {name}]"));
            // Messages have no line ends.
            let lines = value.lines().map(str::trim).filter(|line| line.len() >= SHORTEST);
            lines.fold(hide(text, value.trim()), hide)
        };
        all.into_iter().fold(text.to_owned(), hide)
    }
}

/// A word of a command line without values: of `--env`, of `--set env=…`, and wherever else a value of these is.
pub fn without_values(words: impl Iterator<Item = OsString>, variables: &Variables) -> Vec<String> {
    let pairs = |text: &str| names(text).unwrap_or_else(|_| String::from("…"));
    let pair = |text: &str| name(text).to_owned();
    let mut before = String::new();
    let mut shown = |word: String| {
        let set =
            |text: &str| text.strip_prefix(KEY)?.strip_prefix('=').map(|all| format!("{KEY}={}", pairs(all)));
        let safe = match (before.as_str(), word.split_once('=')) {
            ("--env", _) => Some(pair(&word)),
            ("--set", _) => set(&word),
            (_, Some(("--env", own))) => Some(format!("--env={}", pair(own))),
            (_, Some(("--set", own))) => set(own).map(|own| format!("--set={own}")),
            _ => None,
        };
        let safe = safe.unwrap_or_else(|| variables.hidden(&word));
        before = word;
        safe
    };
    words.map(|word| shown(word.to_string_lossy().into_owned())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kept(text: &str) -> (Variables, String) {
        let mut variables = Variables::default();
        let shown = variables.keep(text, |name| Ok(format!("{name} outside"))).unwrap();
        (variables, shown)
    }

    #[test]
    fn a_setting_has_the_names_and_the_values_are_apart() {
        let (mut variables, shown) = kept("TOKEN=hunter22 B 'C=x y'");
        assert_eq!(shown, "TOKEN B C");
        assert_eq!(variables.named(&shown).unwrap(), ["TOKEN=hunter22", "B=B outside", "C=x y"]);
        assert_eq!(variables.named("D"), None);
        assert!(!format!("{variables:?}").contains("hunter22"));
        let two = variables.keep("TOKEN=other B=1 C=2", |_| Err(String::new())).unwrap_err();
        assert!(two.contains("two values") && !two.contains("other"), "{two}");
        assert!(variables.keep("D", |_| Err("no D".into())).is_err());
        assert!(names("=secret").is_err() && names("A='").is_err());
    }

    #[test]
    fn a_value_is_hidden_wherever_it_is() {
        let (variables, _) = kept("TOKEN=hunter22 LONG=hunter22more N=1 'KEY=first line\nsecond line'");
        for (text, expected) in [
            ("no hunter22, 1", "no [value of TOKEN], 1"),
            ("hunter22more", "[value of LONG]"),
            ("first line second line", "[value of KEY] [value of KEY]"),
        ] {
            assert_eq!(variables.hidden(text), expected);
        }
        let line =
            "run --env TOKEN=hunter22 --env=A=1 --set env=A=2 --set=env=B=3 --set cmd=x -s hunter22 --env C";
        let shown = without_values(line.split(' ').map(Into::into), &variables).join(" ");
        let expected =
            "run --env TOKEN --env=A --set env=A --set=env=B --set cmd=x -s [value of TOKEN] --env C";
        assert_eq!(shown, expected);
    }
}
