//! What is a subject called in a pack? What it is stays, and what a person chose for it is replaced by its kind.

use super::command;
use super::words::{Kind, Words};
use crate::subject::{KINDS, Spec};

/// What labels are made of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Labels {
    /// Of subjects in their grammar, as every run of ours has them.
    Subjects,
    /// Of command lines that others measured, as an import has them.
    Commands,
}

/// A subject's label or specification.
pub fn label(text: &str, labels: Labels, words: &mut Words) -> String {
    const TWIN: &str = " (twin)";
    let (own, twin) = text.strip_suffix(TWIN).map_or((text, ""), |own| (own, TWIN));
    let parsed = Spec::parse(own).ok().filter(|_| labels == Labels::Subjects);
    let Some(parsed) = parsed else { return command::measured(own, words) + twin };
    let name = parsed.label.as_ref().map(|name| format!("{}=", words.text(name))).unwrap_or_default();
    format!("{name}{}{twin}", spec(parsed, words))
}

/// A specification in which values that a person chose are replaced by their kind.
pub fn spec(spec: Spec, words: &mut Words) -> Spec {
    let keys = spec.keys.into_iter().map(|(key, value)| {
        let value = key_value(&key, &value, words);
        (key, value)
    });
    let is_kind = KINDS.iter().any(|kind| kind.name == spec.name);
    Spec {
        keys: keys.collect(),
        name: if is_kind { spec.name } else { words.text(&spec.name) },
        runtime: spec.runtime.map(|runtime| words.text(&runtime)),
        label: None,
    }
}

/// What a person chose for a key of a subject.
pub fn key_value(key: &str, value: &str, words: &mut Words) -> String {
    match key {
        "image" => image(value, words),
        "rootless" => words.whole(Kind::User, value),
        _ if value.contains('/') && !value.contains("://") => words.path(value),
        _ => words.text(value),
    }
}

/// An image keeps its name where that is one word, as those have that everybody can pull.
fn image(name: &str, words: &mut Words) -> String {
    if name.contains('/') { words.whole(Kind::Image, name) } else { words.text(name) }
}

/// The ways in which engines speak of an image that is not everybody's: whole, without tag or digest, without its
/// registry, and the registry by itself.
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
        // One word could be anything.
        let inner = &repository[first.len() + 1..];
        all.extend(inner.contains('/').then_some(inner));
        all.extend(rest.contains('/').then_some(rest));
    }
    all.into_iter().map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::super::words::Known;
    use super::*;

    fn words() -> Words {
        let programs = ["crun-1.8".to_owned(), "gzip".to_owned()].into();
        Words::new(Known { programs, vocabulary: super::super::vocabulary::vocabulary(), ..Known::default() })
    }

    #[test]
    fn subjects_keep_what_they_are() {
        let cases = [
            ("docker+crun:net=none", "docker+crun:net=none"),
            ("old=crun:bin=./crun-1.8", "old=crun:bin=/…/crun-1.8"),
            ("docker:image=\"registry.a:5000/x\" (twin)", "docker:image=image1 (twin)"),
            ("podman:rootless=berta", "podman:rootless=user1"),
            ("docker:image=\"alpine:3\"", "docker:image=\"alpine:3\""),
        ];
        for (text, expected) in cases {
            assert_eq!(label(text, Labels::Subjects, &mut words()), expected);
        }
    }

    #[test]
    fn what_others_measured_is_called_by_a_command() {
        let cases = [
            ("gzip -k9 'x y'", "gzip -k9 'x y'"),
            ("curl --token abc", "curl --token value1"),
            ("TOKEN=abc", "TOKEN=value1"),
            ("gzip /srv/acme/x (2)", "gzip '/…/path1' '(2)'"),
        ];
        for (text, expected) in cases {
            assert_eq!(label(text, Labels::Commands, &mut words()), expected);
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
