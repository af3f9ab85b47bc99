//! The names of subjects, commands and values of settings in a pack. Kinds, keys, their listed values and numbers are kept;
//! other words of the user are replaced by the name of the key.

use super::words::{Kind, Words};
use crate::experiment::command::line;
use crate::experiment::setting::{interned, pairs_until};
use crate::experiment::{self, Setting};
use crate::plan::prediction::Written;
use crate::record::import::hyperfine::LABELLED;
use crate::subject::spec::Values;
use crate::subject::{KINDS, Spec};

/// What the labels of a run contain.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Labels {
    /// Subjects in their grammar, as in runs of dunnage.
    Subjects,
    /// Command lines, as in imports.
    Commands,
}

/// A subject's label or specification.
pub fn label(text: &str, labels: Labels, words: &mut Words) -> String {
    const TWIN: &str = " (twin)";
    let (own, twin) = text.strip_suffix(TWIN).map_or((text, ""), |own| (own, TWIN));
    let parsed = Spec::parse(own).ok().filter(|_| labels == Labels::Subjects);
    let Some(parsed) = parsed else { return command(own, words) + twin };
    let label = parsed.label.as_ref();
    let name = label.map(|name| format!("{}=", words.kept(Kind::Label, "subject", name))).unwrap_or_default();
    let is_known = KINDS.iter().any(|kind| kind.name == parsed.name);
    if !is_known && parsed.keys.is_empty() {
        return name + &words.kept(Kind::Label, "subject", own) + twin;
    }
    format!("{name}{}{twin}", spec(parsed, words))
}

fn spec(spec: Spec, words: &mut Words) -> Spec {
    let keys = spec.keys.into_iter().map(|(key, value)| {
        let value = key_value(&key, &value, words);
        (key, value)
    });
    Spec {
        keys: keys.collect(),
        name: words.kept(Kind::Label, "subject", &spec.name),
        runtime: spec.runtime.map(|runtime| words.kept(Kind::Label, "runtime", &runtime)),
        label: None,
    }
}

/// The user's value for a key of a subject.
fn key_value(key: &str, value: &str, words: &mut Words) -> String {
    match key {
        _ if is_listed(value, |one| one == key) => value.to_owned(),
        "bin" => words.program(value),
        _ => words.given(Kind::Value, key, value),
    }
}

/// Whether a value is a number or one of the program's words for such a key.
fn is_listed(value: &str, key: impl Fn(&str) -> bool) -> bool {
    let mut own = KINDS.iter().flat_map(|kind| kind.keys).filter(|one| key(one.name));
    own.any(|one| !matches!(one.values, Values::Path | Values::Text(_)) && one.values.allow(value))
}

/// The level of a factor: the name of a kind, or the value of a key.
pub fn level(text: &str, words: &mut Words) -> String {
    let is_kind = KINDS.iter().any(|kind| kind.name == text);
    if is_kind || is_listed(text, |_| true) {
        text.to_owned()
    } else {
        words.given(Kind::Value, "level", text)
    }
}

/// A command. The program's name, options without values, and numbers are kept.
pub fn command(text: &str, words: &mut Words) -> String {
    let Ok(all) = line::split(text) else { return words.given(Kind::Value, "value", text) };
    let kept = all.iter().enumerate().map(|(at, word)| match at {
        0 if word.contains('/') => words.program(word),
        0 if !word.contains('=') => words.kept(Kind::Value, "value", word),
        _ => value("value", word, words),
    });
    let kept: Vec<String> = kept.collect();
    if kept == all { text.to_owned() } else { line::join(&kept) }
}

/// A word of a command, or the value of a key. Options and numbers are kept.
pub fn value(name: &str, text: &str, words: &mut Words) -> String {
    let is_plain = |text: &str| text.chars().all(|c| c.is_ascii_alphanumeric() || "-.%_".contains(c));
    let is_number = text.trim_start_matches(['-', '(']).starts_with(|c: char| c.is_ascii_digit());
    let is_variable = text.strip_prefix('{').and_then(|text| text.strip_suffix('}')).is_some_and(is_plain);
    // A short option may be followed by a number; letters may be a password.
    let is_short =
        text.starts_with('-') && text.len() < 5 && text.bytes().skip(2).all(|byte| byte.is_ascii_digit());
    let is_number = is_number && is_plain(text.trim_matches(['(', ')']));
    let is_kept = is_variable || is_number || is_plain(text) && (is_short || text.starts_with("--"));
    if is_kept && words.is_open(text) { text.to_owned() } else { words.given(Kind::Value, name, text) }
}

/// The setting of a cell.
pub fn setting(text: &str, words: &mut Words) -> String {
    let Some((pairs, "")) = pairs_until(text, &[';']) else { return words.told(text) };
    let pairs = pairs.iter().map(|(key, value)| {
        let value = value_of_setting(key, value, words);
        (interned(key), interned(&value))
    });
    Setting(pairs.collect()).to_string()
}

/// A prediction, so that it still refers to subjects and settings.
pub fn prediction(text: &str, labels: Labels, words: &mut Words) -> String {
    let Ok(mut written) = Written::parse(text) else { return words.told(text) };
    for (key, value) in &mut written.setting {
        *value = value_of_setting(key, value, words);
    }
    for subject in &mut written.subjects {
        *subject = label(subject, labels, words);
    }
    written.to_string()
}

/// The user's value for a key of an experiment, in the key's format.
fn value_of_setting(key: &str, text: &str, words: &mut Words) -> String {
    let pair = |word: &String, words: &mut Words| match word.split_once('=') {
        Some((name, given)) => {
            format!("{}={}", words.kept(Kind::Value, "name", name), value("value", given, words))
        }
        // Of a variable there is only the name.
        None if key == "env" => words.kept(Kind::Value, "name", word),
        None => words.given(Kind::Value, "value", word),
    };
    let place = |part: &str, words: &mut Words| {
        if matches!(part, "ro" | "rw") { part.to_owned() } else { words.path(part) }
    };
    let mut keys = experiment::ALL.iter().flat_map(|one| one.all_keys());
    if keys.any(|one| one.name == key && one.values.contains(&text)) {
        return text.to_owned();
    }
    let all = line::split(text).unwrap_or_else(|_| vec![text.to_owned()]);
    let kept = match key {
        "cmd" if text == LABELLED => return text.to_owned(),
        "cmd" | "serve" => return command(text, words),
        "ready" => {
            let pattern = text.strip_prefix("log ").map(|pattern| value("value", pattern, words));
            return pattern.map_or_else(|| text.to_owned(), |pattern| format!("log {pattern}"));
        }
        "workdir" | "request" => return words.path(text),
        "env" | "sweep" => all.iter().map(|word| pair(word, words)).collect::<Vec<_>>(),
        "mount" => {
            let mount =
                |word: &String| word.split(':').map(|part| place(part, words)).collect::<Vec<_>>().join(":");
            all.iter().map(mount).collect()
        }
        _ => return words.kept(Kind::Value, key, text),
    };
    if kept == all { text.to_owned() } else { line::join(&kept) }
}

/// The ways in which engines write the name of a private image: in full, without tag or digest, without its registry, and the
/// registry alone.
pub fn names_of_image(image: &str) -> Vec<String> {
    let Some((first, rest)) = image.split_once('/') else { return Vec::new() };
    let mut all = vec![image];
    let repository = image.split('@').next().unwrap_or(image);
    let tag = repository.rfind(':').filter(|colon| !repository[*colon..].contains('/'));
    let repository = &repository[..tag.unwrap_or(repository.len())];
    all.push(repository);
    if first.contains(['.', ':']) {
        all.push(first);
        all.push(first.split(':').next().unwrap_or(first));
        // A single word is too common to search for.
        let inner = &repository[first.len() + 1..];
        all.extend(inner.contains('/').then_some(inner));
        all.extend(rest.contains('/').then_some(rest));
    }
    all.into_iter().map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::super::words::tests::annas as words;
    use super::*;

    #[test]
    fn subjects_keep_what_they_are() {
        let cases = [
            ("docker+crun:net=none", "docker+crun:net=none"),
            ("old=crun:bin=./crun-1.8", "old=crun:bin=/…/crun-1.8"),
            ("docker:image=\"registry.a:5000/x\" (twin)", "docker:image=image1 (twin)"),
            ("podman:rootless=berta", "podman:rootless=rootless1"),
            ("docker:cpus=0.5,memory=64MiB", "docker:cpus=0.5,memory=64MiB"),
            ("anna=fake", "subject1=fake"),
            ("a", "a"),
            ("anna", "subject1"),
        ];
        for (text, expected) in cases {
            assert_eq!(label(text, Labels::Subjects, &mut words()), expected);
        }
    }

    #[test]
    fn a_command_keeps_its_program_options_and_numbers() {
        let cases = [
            ("gzip -k9 --fast 10 'x y'", "gzip -k9 --fast 10 value1"),
            ("/usr/bin/gzip -k9 {n}", "'/…/gzip' -k9 '{n}'"),
            ("curl --token abc -v https://a.b", "curl --token value1 -v value2"),
            ("mysql -phunter --password=abc", "mysql value1 value2"),
            ("TOKEN=abc x", "value1 value2"),
            ("gzip /srv/acme/x (2)", "gzip value1 '(2)'"),
            ("sh -c 'cat /home/anna/x | wc'", "sh -c value1"),
        ];
        for (text, expected) in cases {
            let cleaned = label(text, Labels::Commands, &mut words());
            assert_eq!(cleaned, expected, "{text}");
            assert_eq!(command(&cleaned, &mut words()), cleaned);
        }
    }

    #[test]
    fn a_level_stays_if_it_is_the_programs_word_or_a_number() {
        for kept in ["docker", "crun", "host", "0.5", "64MiB"] {
            assert_eq!(level(kept, &mut words()), kept);
        }
        for private in ["anna", "/srv/acme", "x=1"] {
            assert_eq!(level(private, &mut words()), "level1");
        }
    }

    #[test]
    fn a_setting_keeps_what_experiments_list() {
        let cases = [
            ("prestate=idle;cache=warm", "prestate=idle;cache=warm"),
            ("cmd=\"x -v; y\";workdir=/srv/x", "cmd=x value1 value2;workdir=/…/path1"),
            ("env=TOKEN;mount=/srv/a:/b:ro", "env=TOKEN;mount='/…/path1:/…/path2:ro'"),
            ("from anna", "text1"),
        ];
        for (text, expected) in cases {
            assert_eq!(setting(text, &mut words()), expected, "{text}");
        }
    }

    #[test]
    fn engines_speak_of_an_image_in_several_ways() {
        assert_eq!(names_of_image("alpine:3"), [""; 0]);
        assert_eq!(names_of_image("acme/pay:2"), ["acme/pay:2", "acme/pay"]);
        assert_eq!(
            names_of_image("reg.acme:5000/team/pay:2@sha256:0a"),
            [
                "reg.acme:5000/team/pay:2@sha256:0a",
                "reg.acme:5000/team/pay",
                "reg.acme:5000",
                "reg.acme",
                "team/pay",
                "team/pay:2@sha256:0a"
            ]
        );
    }
}
