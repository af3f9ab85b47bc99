//! What may be given away of a text? What the program writes by itself, and numbers, are; what a person or another
//! program chose is, where nothing in it looks private; everything else is replaced as a whole. The same text always has
//! the same placeholder and another text another one, so that what was different stays different.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, SocketAddr};

use crate::host::private::Private;

/// What is taken out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// A name of the machine.
    Host,
    /// What a person calls a subject.
    Label,
    /// A place on the machine.
    Path,
    /// What a person chose: for a key, or a word of a command.
    Value,
    /// A label of the run.
    Tag,
    /// A text with something private in it.
    Text,
    /// What a command or an engine said.
    Said,
    /// What is left out as a whole.
    LeftOut,
}

impl Kind {
    /// What they are, in the plural.
    pub fn name(self) -> &'static str {
        match self {
            Kind::Host => "host names",
            Kind::Label => "labels",
            Kind::Path => "paths",
            Kind::Value => "values",
            Kind::Tag => "tags",
            Kind::Text => "texts with something private in them",
            Kind::Said => "output of commands and engines",
            Kind::LeftOut => "facts and tags left out",
        }
    }
}

/// A private text and what stands for it; nothing does where it is left out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Replaced {
    /// What it is.
    pub kind: Kind,
    /// The text.
    pub text: String,
    /// What stands for it.
    pub placeholder: String,
}

/// A word that must not occur.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Secret {
    /// The word.
    pub word: String,
    /// What it is called when it must not be shown.
    pub called: String,
}

/// A variable's value with fewer letters is a number, a version, or a word that many know.
const FEWEST_LETTERS: usize = 6;
/// What every path begins with that stands for another one.
const ELSEWHERE: &str = "/…/";

/// The words of a run, with what stands for them.
#[derive(Debug)]
pub struct Words {
    /// What must not occur.
    pub secrets: Vec<Secret>,
    /// What is private by its form and not looked for, because the run says it anyway.
    pub spared: Vec<Secret>,
    replaced: BTreeMap<(Kind, String), String>,
    taken: BTreeSet<String>,
}

impl Words {
    /// Nothing replaced yet. `machine` holds the words of this machine and of this process, with the names of hosts, users and
    /// images that the run tells, and `named` those that the person named. A pack must be able to say the words of the format
    /// (`vocabulary`), and `public`, what the run says of the machine without telling which one it is, and the tags that stay.
    pub fn new(machine: &Private, named: &[String], vocabulary: &str, public: &str) -> Words {
        let mut words = Words {
            secrets: Vec::new(),
            spared: Vec::new(),
            replaced: BTreeMap::new(),
            taken: BTreeSet::new(),
        };
        for word in named {
            words.add(word, "a word named with `--private`".into(), false);
        }
        for name in machine.names.iter().filter(|name| *name != super::HOST) {
            let called = "a name of the host, a user or an image, or a directory of theirs".into();
            words.add(name, called, occurs(vocabulary, name));
        }
        for (name, value) in &machine.variables {
            if value.chars().filter(|c| c.is_alphabetic()).count() >= FEWEST_LETTERS {
                let is_public = occurs(public, value) || occurs(vocabulary, value);
                words.add(value, format!("the value of `${name}`"), is_public);
            }
        }
        // Nothing private may stand for something else either.
        words.taken = words.secrets.iter().map(|secret| secret.word.clone()).collect();
        words
    }

    fn add(&mut self, word: &str, called: String, is_public: bool) {
        let mut known = self.secrets.iter().chain(&self.spared);
        if word.trim().chars().count() < 2 || word.starts_with(ELSEWHERE) || known.any(|one| one.word == word)
        {
            return;
        }
        let secret = Secret { word: word.to_owned(), called };
        if is_public { self.spared.push(secret) } else { self.secrets.push(secret) }
    }

    /// Everything that was replaced, by kind and in the order of the texts.
    pub fn replaced(&self) -> Vec<Replaced> {
        let one = |((kind, text), placeholder): (&(Kind, String), &String)| Replaced {
            kind: *kind,
            text: text.clone(),
            placeholder: placeholder.clone(),
        };
        self.replaced.iter().map(one).collect()
    }

    /// A text for which nothing stands.
    pub fn left_out(&mut self, text: &str) {
        self.replaced.insert((Kind::LeftOut, text.to_owned()), String::new());
    }

    /// What stands for a text: a name and a number.
    pub fn given(&mut self, kind: Kind, name: &str, text: &str) -> String {
        if let Some(placeholder) = self.replaced.get(&(kind, text.to_owned())) {
            return placeholder.clone();
        }
        // A text that is a placeholder already comes from a pack that was unpacked.
        let is_own = text.strip_prefix(name).is_some_and(|number| number.parse::<u16>().is_ok());
        let placeholder = match is_own && self.is_open(text) {
            true => text.to_owned(),
            false => (1..)
                .map(|number| format!("{name}{number}"))
                .find(|own| !self.taken.contains(own))
                .expect("numbers do not end"),
        };
        self.taken.insert(placeholder.clone());
        if placeholder != text {
            self.replaced.insert((kind, text.to_owned()), placeholder.clone());
        }
        placeholder
    }

    /// A text that a person chose to be seen, where nothing in it looks private.
    pub fn kept(&mut self, kind: Kind, name: &str, text: &str) -> String {
        if self.is_open(text) { text.to_owned() } else { self.given(kind, name, text) }
    }

    /// The host's name.
    pub fn host(&mut self, name: &str) -> String {
        if !name.is_empty() && name != super::HOST {
            self.replaced.insert((Kind::Host, name.to_owned()), super::HOST.to_owned());
        }
        if name.is_empty() { String::new() } else { super::HOST.to_owned() }
    }

    /// A text of the program, the kernel or an engine: nothing of it where something in it looks private.
    pub fn told(&mut self, text: &str) -> String {
        let is_path = text.starts_with('/') && !text.contains(char::is_whitespace);
        if is_path { self.path(text) } else { self.kept(Kind::Text, "text", text) }
    }

    /// A text that may repeat what is private by its place elsewhere only: a value of a command.
    pub fn quoting(&mut self, text: &str) -> String {
        const FEWEST: usize = 3;
        let repeats = |own: &String| own.chars().count() >= FEWEST && occurs(text, own);
        if self.replaced.keys().any(|(_, own)| repeats(own)) {
            return self.given(Kind::Text, "text", text);
        }
        self.told(text)
    }

    /// A path.
    pub fn path(&mut self, path: &str) -> String {
        match path == "/" || path.is_empty() || path.starts_with(ELSEWHERE) && self.is_open(path) {
            true => path.to_owned(),
            false => self.given(Kind::Path, "/…/path", path),
        }
    }

    /// The path of a program, which keeps its name.
    pub fn program(&mut self, path: &str) -> String {
        let name = path.rsplit('/').next().unwrap_or_default();
        if path.is_empty() || !self.is_open(name) || name.is_empty() {
            return self.path(path);
        }
        let shown = format!("{ELSEWHERE}{name}");
        if shown != path {
            self.replaced.insert((Kind::Path, path.to_owned()), shown.clone());
        }
        shown
    }

    /// Whether nothing in a text looks private: no secret, path, place on a network or address.
    pub fn is_open(&self, text: &str) -> bool {
        !text.split(' ').any(looks_private) && !self.secrets.iter().any(|secret| occurs(text, &secret.word))
    }
}

/// Whether a word is a path, a place on a network, or an address, or has one in it.
fn looks_private(word: &str) -> bool {
    let bare = word.trim_matches(|c: char| !c.is_alphanumeric());
    let is_address = bare.parse::<IpAddr>().is_ok() || bare.parse::<SocketAddr>().is_ok();
    let is_hardware = bare.split(':').count() == 6 && bare.split(':').all(|group| group.len() == 2);
    let delimits = |c: char| c.is_whitespace() || "\"'`,;()<>[]{}|&*?!=:$#^".contains(c);
    is_address || is_hardware || word.split(delimits).any(is_place)
}

fn is_place(part: &str) -> bool {
    let is_path =
        ["/", "~", "./", "../"].iter().any(|start| part.starts_with(start) && part.len() > start.len());
    let is_mail = part.split_once('@').is_some_and(|(name, domain)| !name.is_empty() && domain.contains('.'));
    is_path && !part.starts_with("/…") || is_mail || part.contains('\\')
}

/// Whether a text holds a word.
fn occurs(text: &str, word: &str) -> bool {
    find(text.as_bytes(), word.as_bytes(), 0).is_some()
}

/// Where a word stands in a text, from a place on: not as a part of a longer word.
pub fn find(text: &[u8], word: &[u8], from: usize) -> Option<usize> {
    let last = text.len().checked_sub(word.len())?;
    (from..=last).find(|&at| text[at] == word[0] && stands_at(text, word, at))
}

/// Whether a word stands at this place of a text. Behind a backslash a letter is the name of a control
/// character in JSON, and no part of the word that follows.
pub fn stands_at(text: &[u8], word: &[u8], at: usize) -> bool {
    let in_word = |at: Option<usize>| at.and_then(|at| text.get(at)).is_some_and(u8::is_ascii_alphanumeric);
    let is_escape = at > 1 && text[at - 2] == b'\\';
    let begins = !word[0].is_ascii_alphanumeric() || is_escape || !in_word(at.checked_sub(1));
    let ends = !word[word.len() - 1].is_ascii_alphanumeric() || !in_word(Some(at + word.len()));
    begins && ends && text[at..].starts_with(word)
}

#[cfg(test)]
pub mod tests {
    use super::*;

    /// On the machine of anna, called `web-1`.
    pub fn annas() -> Words {
        let machine = Private {
            names: ["web-1", "anna", "docker", "/home/anna", "team/payroll"].map(String::from).into(),
            variables: vec![("SECRET".into(), "tulip-garden".into()), ("SHA".into(), "abcdefabcdef".into())],
        };
        Words::new(&machine, &[], "docker podman", "abcdefabcdef")
    }

    #[test]
    fn what_looks_private_is_told_by_its_form_and_by_secrets() {
        let words = annas();
        for private in [
            "/a/x",
            "x=/a",
            "~/x",
            "../x",
            "https://a.b/c",
            "10.0.0.7:443",
            "fe80::1",
            "aa:bb:cc:dd:ee:ff",
            "(a@b.c)",
            "by anna.",
            "web-1",
            "a tulip-garden",
            "x:team/payroll:2",
        ] {
            assert!(!words.is_open(private), "{private}");
        }
        for open in [
            "",
            "/",
            "1/2",
            "johanna annals web-12 docker",
            "24.0.7~rc1 abcdefabcdef",
            "usercopy/swapgs barriers",
            "/…/crun",
            "PREEMPT_DYNAMIC @0",
            "10:20:30",
            "-k9",
        ] {
            assert!(words.is_open(open), "{open}");
        }
        let spared: Vec<_> = words.spared.iter().map(|one| one.word.as_str()).collect();
        assert_eq!(spared, ["docker", "abcdefabcdef"]);
    }

    #[test]
    fn the_same_text_has_the_same_placeholder_and_another_text_another() {
        let mut words = annas();
        assert_eq!(words.path("/a/x"), "/…/path1");
        assert_eq!(words.path("/a/y"), "/…/path2");
        assert_eq!(words.path("/a/x"), "/…/path1");
        assert_eq!(words.program("/opt/crun"), "/…/crun");
        assert_eq!(words.kept(Kind::Tag, "tag", "anna's"), "tag1");
        assert_eq!(words.kept(Kind::Tag, "tag", "c1"), "c1");
        assert_eq!(words.told("open /a/x: denied to anna"), "text1");
        assert_eq!(words.quoting("it says anna's"), "text2");
    }

    #[test]
    fn what_was_replaced_once_is_not_replaced_again() {
        let mut words = annas();
        for own in ["/…/path3", "/…/crun", "text7"] {
            assert_eq!(words.told(own), own);
        }
        assert_eq!(words.given(Kind::Tag, "tag", "tag2"), "tag2");
        assert_eq!(words.given(Kind::Tag, "tag", "x"), "tag1");
        assert_eq!(words.replaced().len(), 1);
    }

    #[test]
    fn a_word_behind_an_escape_is_found() {
        assert_eq!(find(br#""x\nanna""#, b"anna", 0), Some(4));
        assert_eq!(find(b"susanna anna", b"anna", 0), Some(8));
        assert_eq!(find(b"", b"anna", 0), None);
    }
}
