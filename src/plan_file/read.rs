//! Reads a plan file from TOML. Strict: an unknown key, a value of the wrong kind, or two conflicting keys are a usage error
//! with the line and the valid choices.

use std::borrow::Cow;
use std::ops::{Range, RangeInclusive};

use anyhow::Result;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::{GivenMargin, Length, PlanFile, Typed, Variants};
use crate::exit::usage;
use crate::report::text::{meant, quoted};

const KEYS: &str = "about experiments subjects factors settings rounds precision quick vary why seed timeout tags predictions \
    margins";
/// The keys that set the length; only one is allowed.
const LENGTHS: [&str; 3] = ["rounds", "precision", "quick"];
const MARGIN_KEYS: &str = "absolute relative";
/// The same as on the command line.
const MOST_ROUNDS: u64 = 1_000_000;
const LONGEST_TIMEOUT: u64 = 3600;

/// Reads the text of the plan file `name`.
pub fn parse(name: &str, text: &str) -> Result<PlanFile> {
    let source = Source { name, text };
    let document = DeTable::parse(text)
        .map_err(|error| source.wrong(error.span().unwrap_or(0..0), error.message().to_owned()))?;
    let mut file = PlanFile::default();
    for (key, value) in document.get_ref() {
        match source.known(key, KEYS)? {
            "about" => file.about = Some(source.text(key.get_ref(), value)?.text),
            "experiments" => file.experiments = source.texts(key.get_ref(), value)?,
            "subjects" => file.subjects = source.texts(key.get_ref(), value)?,
            "factors" => file.factors = source.texts(key.get_ref(), value)?,
            "settings" => file.settings = pairs(&source, "settings", value)?,
            "rounds" => {
                file.length =
                    Some(Length::Rounds(source.whole(key.get_ref(), value, 1..=MOST_ROUNDS)? as u32));
            }
            "precision" => file.length = Some(Length::Precision(source.text(key.get_ref(), value)?)),
            "vary" if !source.truth(key.get_ref(), value)? => file.variants = Variants::None,
            "quick" if source.truth(key.get_ref(), value)? => file.length = Some(Length::Quick),
            "why" if source.truth(key.get_ref(), value)? => file.variants = Variants::Why,
            "vary" | "why" | "quick" => {}
            "seed" => file.seed = Some(source.whole(key.get_ref(), value, 0..=u64::MAX)?),
            "timeout" => file.timeout = Some(source.whole(key.get_ref(), value, 1..=LONGEST_TIMEOUT)? as u32),
            "tags" => file.tags = pairs(&source, "tags", value)?,
            "predictions" => file.predictions = source.texts(key.get_ref(), value)?,
            _ => file.margins = margins(&source, value)?,
        }
    }
    let said = |key: &&str| {
        let value = document.get_ref().get(*key);
        value.is_some_and(|value| value.get_ref().as_bool() != Some(false))
    };
    let lengths: Vec<&str> = LENGTHS.into_iter().filter(said).collect();
    if let [first, second, ..] = lengths[..] {
        let place = document.get_ref().get(second).map_or(0..0, Spanned::span);
        let why = format!("`{first}` and `{second}` both set the number of rounds\n\nhint: keep one of them");
        return Err(source.wrong(place, why));
    }
    Ok(file)
}

/// A table as `key=value`; a setting can have several values.
fn pairs(source: &Source<'_>, table: &str, value: &Spanned<DeValue<'_>>) -> Result<Vec<Typed>> {
    let mut all = Vec::new();
    for (key, value) in source.table(table, value)? {
        let values = match value.get_ref() {
            DeValue::Array(_) if table == "settings" => source.texts(key.get_ref(), value)?,
            _ => vec![source.text(key.get_ref(), value)?],
        };
        if values.is_empty() {
            return Err(source.not_a(key.get_ref(), value, "at least one value"));
        }
        let pair = |one: Typed| Typed { text: format!("{}={}", key.get_ref(), one.text), ..one };
        all.extend(values.into_iter().map(pair));
    }
    Ok(all)
}

fn margins(source: &Source<'_>, value: &Spanned<DeValue<'_>>) -> Result<Vec<GivenMargin>> {
    let mut all = Vec::new();
    for (experiment, value) in source.table("margins", value)? {
        for (metric, value) in source.table("margins.EXPERIMENT", value)? {
            let mut margin = GivenMargin {
                experiment: source.typed(experiment.span(), experiment.get_ref()),
                metric: source.typed(metric.span(), metric.get_ref()),
                absolute: None,
                relative: None,
            };
            for (key, value) in source.table("margins.EXPERIMENT.METRIC", value)? {
                match source.known(key, MARGIN_KEYS)? {
                    "absolute" => margin.absolute = Some(source.text_or_number(key.get_ref(), value)?),
                    _ => margin.relative = Some(source.text(key.get_ref(), value)?),
                }
            }
            if margin.absolute.is_none() && margin.relative.is_none() {
                let example = "{ absolute = \"1ms\", relative = \"5%\" }";
                let name = metric.get_ref();
                let why = format!(
                    "the margin of `{name}` has no value\n\nhint: write it as in `{name} = {example}`"
                );
                return Err(source.wrong(metric.span(), why));
            }
            all.push(margin);
        }
    }
    Ok(all)
}

/// A file's text with its name, to give places in errors.
struct Source<'a> {
    name: &'a str,
    text: &'a str,
}

impl Source<'_> {
    fn place(&self, span: &Range<usize>) -> String {
        let before = &self.text.as_bytes()[..span.start.min(self.text.len())];
        let line = before.iter().filter(|byte| **byte == b'\n').count() + 1;
        format!("plan file `{}`, line {line}", self.name)
    }

    fn wrong(&self, span: Range<usize>, why: String) -> anyhow::Error {
        usage(format!("{}: {why}", self.place(&span)))
    }

    fn typed(&self, span: Range<usize>, text: &str) -> Typed {
        Typed { text: text.to_owned(), place: Some(self.place(&span)) }
    }

    /// The key from the list of valid ones.
    fn known<'k>(&self, key: &Spanned<Cow<'_, str>>, valid: &'k str) -> Result<&'k str> {
        valid.split_whitespace().find(|one| one == key.get_ref()).ok_or_else(|| {
            let (own, names) = (key.get_ref(), valid.split_whitespace());
            let (meant, valid) = (meant(own, names.clone()), quoted(names));
            self.wrong(key.span(), format!("unknown key `{own}`\n\nhint: {meant}keys are {valid}"))
        })
    }

    fn not_a(&self, key: &str, value: &Spanned<DeValue<'_>>, wanted: &str) -> anyhow::Error {
        self.wrong(value.span(), format!("`{}` takes {wanted}", key))
    }

    fn text(&self, key: &str, value: &Spanned<DeValue<'_>>) -> Result<Typed> {
        let text = value.get_ref().as_str().ok_or_else(|| self.not_a(key, value, "a string in quotes"))?;
        Ok(self.typed(value.span(), text))
    }

    fn truth(&self, key: &str, value: &Spanned<DeValue<'_>>) -> Result<bool> {
        value.get_ref().as_bool().ok_or_else(|| self.not_a(key, value, "`true` or `false`"))
    }

    fn text_or_number(&self, key: &str, value: &Spanned<DeValue<'_>>) -> Result<Typed> {
        match value.get_ref() {
            DeValue::Integer(number) => Ok(self.typed(value.span(), &number.to_string())),
            DeValue::Float(number) => Ok(self.typed(value.span(), number.as_str())),
            _ => self.text(key, value),
        }
    }

    fn texts(&self, key: &str, value: &Spanned<DeValue<'_>>) -> Result<Vec<Typed>> {
        let Some(list) = value.get_ref().as_array() else {
            return Err(self.not_a(key, value, "a list of strings, as in `[\"one\", \"two\"]`"));
        };
        list.iter().map(|one| self.text(key, one)).collect()
    }

    fn whole(&self, key: &str, value: &Spanned<DeValue<'_>>, range: RangeInclusive<u64>) -> Result<u64> {
        let number = value.get_ref().as_integer();
        let number = number.and_then(|one| u64::from_str_radix(one.as_str(), one.radix()).ok());
        number.filter(|number| range.contains(number)).ok_or_else(|| {
            let wanted = format!("a whole number from {} to {}", range.start(), range.end());
            self.not_a(key, value, &wanted)
        })
    }

    fn table<'v, 'i>(&self, key: &str, value: &'v Spanned<DeValue<'i>>) -> Result<&'v DeTable<'i>> {
        value.get_ref().as_table().ok_or_else(|| self.not_a(key, value, "a table, as in `[settings]`"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(text: &str) -> String {
        parse("x.toml", text).expect_err(text).to_string()
    }

    fn words(all: &[Typed]) -> Vec<&str> {
        all.iter().map(|one| one.text.as_str()).collect()
    }

    #[test]
    fn a_whole_file_is_read() {
        let file = parse(
            "x.toml",
            "about = \"a try\"\nexperiments = [\"start\"]\nsubjects = [\"bare\", \"docker:net=none\"]\nrounds = 80\n\
             seed = 18446744073709551614\ntimeout = 30\npredictions = [\"returned: bare < docker\"]\n[settings]\nprestate = [\"idle\", \"primed\"]\n\
             [tags]\ncommit = \"ab\"\n[margins.start]\nreturned = { absolute = \"1ms\", relative = \"5%\" }\n\
             gone = { absolute = 0.002 }\n",
        )
        .unwrap();
        assert_eq!(words(&file.subjects), ["bare", "docker:net=none"]);
        assert_eq!(file.subjects[1].place.as_deref(), Some("plan file `x.toml`, line 3"));
        assert_eq!(words(&file.settings), ["prestate=idle", "prestate=primed"]);
        assert_eq!(words(&file.tags), ["commit=ab"]);
        assert_eq!(words(&file.predictions), ["returned: bare < docker"]);
        assert_eq!((file.length, file.timeout), (Some(Length::Rounds(80)), Some(30)));
        assert_eq!(file.seed, Some(u64::MAX - 1));
        let absolutes: Vec<_> = file.margins.iter().filter_map(|one| one.absolute.as_ref()).collect();
        assert_eq!([&absolutes[0].text, &absolutes[1].text], ["0.002", "1ms"]);
        assert_eq!(parse("x.toml", "quick = true").unwrap().length, Some(Length::Quick));
        assert_eq!(parse("x.toml", "quick = false").unwrap(), PlanFile::default());
    }

    #[test]
    fn what_is_wrong_is_told_with_its_line_and_what_is_valid() {
        for (text, words) in [
            (
                "\nround = 8",
                "line 2: unknown key `round`\n\nhint: did you mean `rounds`? keys are `about`, `experiments`, ",
            ),
            ("rounds = 0", "line 1: `rounds` takes a whole number from 1 to 1000000"),
            ("rounds = \"8\"", "line 1: `rounds` takes a whole number"),
            ("seed = -1", "line 1: `seed` takes a whole number"),
            ("timeout = 4000", "line 1: `timeout` takes a whole number from 1 to 3600"),
            ("quick = 1", "line 1: `quick` takes `true` or `false`"),
            ("\n\nsubjects = \"bare\"", "line 3: `subjects` takes a list of strings"),
            ("subjects = [\n1]", "line 2: `subjects` takes a string in quotes"),
            ("settings = 1", "line 1: `settings` takes a table"),
            ("[settings]\nprestate = []", "line 2: `prestate` takes at least one value"),
            ("rounds = 8\nquick = true", "line 2: `rounds` and `quick` both set the number of rounds"),
            ("[margins.start]\ngone = {}", "line 2: the margin of `gone` has no value"),
            ("[margins.start]\ngone = { least = 1 }", "line 2: unknown key `least`"),
            ("rounds = 8\nrounds = 9", "line 2: duplicate key"),
            ("rounds = ", "line 1: "),
        ] {
            let refused = refused(text);
            assert!(refused.contains(words) && refused.starts_with("plan file `x.toml`, "), "{refused}");
        }
    }
}
