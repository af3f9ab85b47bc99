//! What of a command line may be given away? Programs and options stay; places, and values that stand behind
//! telling names, do not. This holds for what was measured as for the command line that began a run.

use super::label::{self, Labels};
use super::words::{Kind, Words};
use crate::experiment::command;
use crate::plan::prediction::Written;

/// The names behind which a command is given what nobody else should know.
const BEFORE_SECRETS: [&str; 8] = ["pass", "token", "secret", "key", "auth", "credential", "cookie", "user"];

/// The command line that began the run: `dunnage`, and each word by its own form. Of tags that are dropped nothing
/// stays.
pub fn own(all: &[String], words: &mut Words, dropped: &[String]) -> Vec<String> {
    let mut cleaned: Vec<String> = Vec::new();
    let mut before = "";
    for (at, word) in all.iter().enumerate() {
        if at == 0 {
            cleaned.push("dunnage".to_owned());
            continue;
        }
        let (option, head, value) = match taken_apart(word) {
            Some(apart) => apart,
            None if word.len() > 1 && word.starts_with('-') => {
                before = word;
                cleaned.push(words.text(word));
                continue;
            }
            None => (before, "", word.as_str()),
        };
        before = "";
        let is_dropped = option == "--tag"
            && dropped.iter().any(|key| value.split_once('=').is_some_and(|(own, _)| own == key));
        if is_dropped {
            // Where the tag is a word of its own, its option stands before it.
            cleaned.truncate(cleaned.len() - usize::from(head.is_empty()));
            continue;
        }
        cleaned.push(head.to_owned() + &value_of_option(option, value, words));
    }
    cleaned
}

/// An option that stands in one word with its value, as `--plan=FILE`, `-oDIR` or `-o=DIR`: its name, what stands before
/// the value, and the value.
fn taken_apart(word: &str) -> Option<(&str, &str, &str)> {
    if word.starts_with("--") {
        let (name, value) = word.split_once('=')?;
        return Some((name, &word[..word.len() - value.len()], value));
    }
    let rest = word.strip_prefix('-')?;
    let letter = rest.chars().next().filter(char::is_ascii_alphabetic)?;
    let value = &rest[letter.len_utf8()..];
    if value.is_empty() {
        return None;
    }
    let value = value.strip_prefix('=').unwrap_or(value);
    Some((&word[..2], &word[..word.len() - value.len()], value))
}

fn value_of_option(option: &str, value: &str, words: &mut Words) -> String {
    match option {
        "-o" | "--output" | "--plan" | "--write" => file_name(value, words),
        "-s" | "--subject" => label::label(value, Labels::Subjects, words),
        "--cmd" => measured(value, words),
        "--mount" => mounts(value, words),
        "--env" => variables(value, words),
        "--sweep" => swept(value, words),
        "--workdir" => words.path(value),
        "--predict" => prediction(value, words),
        "--set" => match value.split_once('=') {
            Some((key, value)) => format!("{key}={}", value_of_setting(key, value, words)),
            None => words.text(value),
        },
        _ => words.text(value),
    }
}

/// A file that a person named; plans that the program brings have plain names, and so may others.
fn file_name(name: &str, words: &mut Words) -> String {
    if name.contains('/') { words.path(name) } else { words.text(name) }
}

/// A value that a person chose for a key of an experiment.
pub fn value_of_setting(key: &str, value: &str, words: &mut Words) -> String {
    match key {
        "cmd" => measured(value, words),
        "mount" => mounts(value, words),
        "env" | "sweep" => variables(value, words),
        "workdir" => words.path(value),
        _ => words.text(value),
    }
}

/// A prediction as it was typed: what it says of subjects and settings.
fn prediction(text: &str, words: &mut Words) -> String {
    let Ok(mut written) = Written::parse(text) else { return words.text(text) };
    for (key, value) in &mut written.setting {
        *value = value_of_setting(key, value, words);
    }
    for subject in std::iter::once(&mut written.first).chain(written.others.iter_mut().map(|(_, one)| one)) {
        *subject = label::label(subject, Labels::Subjects, words);
    }
    written.to_string()
}

/// The words of a text as a shell would split them, each cleaned, and joined again. What cannot be split is no
/// command, and what is clean stays as it was written.
fn each_word(text: &str, clean: &mut dyn FnMut(&str) -> String) -> String {
    let Ok(words) = command::line::split(text) else { return clean(text) };
    let cleaned: Vec<String> = words.iter().map(|word| clean(word)).collect();
    if cleaned == words { text.to_owned() } else { command::line::join(&cleaned) }
}

/// A command that was measured: its program and options stay, places and values behind telling names do not.
pub fn measured(text: &str, words: &mut Words) -> String {
    let is_telling = |name: &str| {
        let name = name.to_lowercase();
        BEFORE_SECRETS.iter().any(|part| name.contains(part))
    };
    let mut value_follows = false;
    each_word(text, &mut |word| {
        if std::mem::take(&mut value_follows) && !word.starts_with('-') {
            return words.whole(Kind::Value, word);
        }
        if let Some((name, value)) = word.split_once('=')
            && !name.contains(char::is_whitespace)
        {
            let is_variable = !name.starts_with('-')
                && name.chars().all(|c| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_');
            if !value.is_empty() && (is_variable || is_telling(name)) {
                return format!("{name}={}", words.whole(Kind::Value, value));
            }
        }
        value_follows = word.starts_with("--") && !word.contains('=') && is_telling(word);
        let is_path = ["/", "./", "../", "~/"].iter().any(|start| word.starts_with(start));
        let is_one = is_path && !word.contains([':', '=', ';', '|', '&', '\n']);
        if is_one { words.path(word) } else { words.of_command(word) }
    })
}

/// Mounts as `HOST:INSIDE[:ro]`, one or several.
fn mounts(text: &str, words: &mut Words) -> String {
    each_word(text, &mut |mount| {
        let place = |part: &str, words: &mut Words| match part {
            "ro" | "rw" | "" => part.to_owned(),
            place => words.path(place),
        };
        mount.split(':').map(|part| place(part, words)).collect::<Vec<_>>().join(":")
    })
}

/// Variables as `NAME=VALUE`, one or several; numbers stay.
fn variables(text: &str, words: &mut Words) -> String {
    each_word(text, &mut |pair| match pair.split_once('=') {
        Some((name, value)) => format!("{name}={}", variable(value, words)),
        None => words.text(pair),
    })
}

fn variable(value: &str, words: &mut Words) -> String {
    match value.is_empty() || value.parse::<f64>().is_ok() {
        true => value.to_owned(),
        false => words.whole(Kind::Value, value),
    }
}

/// Values to try as they are typed, `NAME=V1,V2`.
fn swept(text: &str, words: &mut Words) -> String {
    let Some((name, values)) = text.split_once('=') else { return words.text(text) };
    let values: Vec<String> = values.split(',').map(|value| variable(value, words)).collect();
    format!("{name}={}", values.join(","))
}

#[cfg(test)]
mod tests {
    use super::super::words::tests::annas as words;
    use super::*;

    #[test]
    fn a_command_keeps_its_program_and_options_and_loses_places_and_secrets() {
        let cases = [
            ("gzip -k9 /data/file", "gzip -k9 '/…/path1'"),
            ("/usr/bin/gzip -k9 {n}", "'/…/gzip' -k9 '{n}'"),
            ("curl --token abc -v https://a.b/c", "curl --token value1 -v https://place1"),
            ("x --password=abc TOKEN=abc size=3", "x --password=value1 TOKEN=value1 size=3"),
            ("sh -c 'cat /home/anna/x | wc'", "sh -c 'cat /…/path1 | wc'"),
            ("cat '/home/anna/my files/x'", "cat '/…/path1'"),
            ("cc -I/srv/acme/include -Lacme/lib x.c", "cc '-I/…/path1' '-L/…/path2' x.c"),
            ("curl -d @/srv/acme/body https://a.b", "curl -d '@/…/path1' https://place1"),
            ("gzip data/acme/set.bin ~anna/y", "gzip '/…/path1' '/…/path2'"),
            ("sh -c 'cat $HOME/acme/x'", "sh -c 'cat $/…/path1'"),
            ("x --ratio 1/2 'a;  b'", "x --ratio 1/2 'a;  b'"),
        ];
        for (text, expected) in cases {
            let cleaned = measured(text, &mut words());
            assert_eq!(cleaned, expected, "{text}");
            assert!(command::line::split(&cleaned).is_ok());
        }
        assert_eq!(mounts("/srv/a:/in:ro", &mut words()), "'/…/path1:/…/path2:ro'");
        assert_eq!(mounts("./acme:/in", &mut words()), "'/…/path1:/…/path2'");
        assert_eq!(variables("A=secret N=10", &mut words()), "A=value1 N=10");
    }

    #[test]
    fn every_word_that_began_a_run_is_cleaned_by_its_own_form() {
        let cases = [
            ("-o /home/anna/first", "-o /…/path1"),
            ("-o/srv/acme/first", "-o/…/path1"),
            ("--tag owner=anna", "--tag owner=user1"),
            ("--cmd=cat#/a", "--cmd=cat '/…/path1'"),
            ("-smy=docker:image=\"reg.acme:5000/x\" --quick", "-smy=docker:image=image1 --quick"),
            ("-s=docker:image=\"reg.acme:5000/x\"", "-s=docker:image=image1"),
            ("-s podman:rootless=berta", "-s podman:rootless=user1"),
            ("--workdir /srv/my#files --sweep n=1,abc", "--workdir /…/path1 --sweep n=1,value1"),
            ("--set env=TOKEN=abc --set seconds=30", "--set env=TOKEN=value1 --set seconds=30"),
            (
                "--predict start.returned:#old=crun:bin=/srv/acme/crun-1.8#<#crun",
                "--predict start.returned: old=crun:bin=/…/crun-1.8 < crun",
            ),
        ];
        for (typed, expected) in cases {
            let all = format!("/x/dunnage run {typed}");
            let all: Vec<String> = all.split(' ').map(|word| word.replace('#', " ")).collect();
            let cleaned = own(&all, &mut words(), &[]);
            assert_eq!(cleaned.join(" "), format!("dunnage run {expected}"));
        }
    }

    #[test]
    fn of_a_dropped_tag_nothing_stays() {
        let typed = ["dunnage", "run", "--tag", "via=acme", "--tag=via=acme", "--tag", "commit=1", "start"];
        let cleaned = own(&typed.map(str::to_owned), &mut words(), &["via".into()]);
        assert_eq!(cleaned, ["dunnage", "run", "--tag", "commit=1", "start"]);
    }
}
