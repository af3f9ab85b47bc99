//! Decides which texts may be shared. Words and numbers written by the program are kept; words of the user or of another program
//! are kept if nothing in them looks private; everything else is replaced as a whole. Equal texts get the same placeholder and
//! different texts different ones, so that differences remain visible.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, SocketAddr};

use crate::host::private::Private;

/// The kinds of removed texts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// A name of the machine.
    Host,
    /// The user's name for a subject.
    Label,
    /// A path on the machine.
    Path,
    /// A value chosen by the user, for a key or in a command.
    Value,
    /// A tag of the run.
    Tag,
    /// A text that contains something private.
    Text,
    /// Output of a command or an engine.
    Said,
    /// A text that is left out as a whole.
    LeftOut,
}

impl Kind {
    /// The kind's name, in the plural.
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

/// A private text and its placeholder, which is empty if the text is left out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Replaced {
    /// The kind.
    pub kind: Kind,
    /// The text.
    pub text: String,
    /// The placeholder.
    pub placeholder: String,
}

/// A word that must not be in the pack.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Secret {
    /// The word.
    pub word: String,
    /// A description for messages, where the word itself must not be shown.
    pub called: String,
}

/// The value of a variable with fewer letters is a number, a version or a common word.
const FEWEST_LETTERS: usize = 6;
/// The prefix of every placeholder for a path.
const ELSEWHERE: &str = "/…/";

/// The words of a run with their placeholders.
#[derive(Debug)]
pub struct Words {
    /// Words that must not be in the pack.
    pub secrets: Vec<Secret>,
    /// Words that would be private, but are not searched for, because the run itself uses them.
    pub spared: Vec<Secret>,
    replaced: BTreeMap<(Kind, String), String>,
    taken: BTreeSet<String>,
}

impl Words {
    /// Starts without replacements. `machine` has the words of this machine and process, with the names of hosts, users and images
    /// from the run, and `named` those given by the user. Words in `vocabulary`, the words of the program, and in `public`, harmless
    /// facts about the machine and the kept tags, stay usable.
    pub fn new(machine: &Private, named: &[String], vocabulary: &str, public: &str) -> Words {
        let mut words = Words {
            secrets: Vec::new(),
            spared: Vec::new(),
            replaced: BTreeMap::new(),
            taken: BTreeSet::new(),
        };
        for word in named {
            words.add(word, "a word given with `--private`".into(), false);
        }
        for name in machine.names.iter().filter(|name| *name != super::HOST) {
            let called = "the name or a directory of the host, a user or an image".into();
            words.add(name, called, occurs(vocabulary, name));
        }
        for (name, value) in &machine.variables {
            if value.chars().filter(|c| c.is_alphabetic()).count() >= FEWEST_LETTERS {
                let is_public = occurs(public, value) || occurs(vocabulary, value);
                words.add(value, format!("the value of `${name}`"), is_public);
            }
        }
        // A secret must not become a placeholder either.
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

    /// Ends with the names that the format itself has in the files of the run. They are not searched for, unless the user named
    /// them, although texts with them were replaced.
    pub fn spare(&mut self, names: &[String], named: &[String]) {
        let is_name =
            |one: &mut Secret| !named.contains(&one.word) && names.iter().any(|name| occurs(name, &one.word));
        self.spared.extend(self.secrets.extract_if(.., is_name));
    }

    /// All replacements, ordered by kind and text.
    pub fn replaced(&self) -> Vec<Replaced> {
        let one = |((kind, text), placeholder): (&(Kind, String), &String)| Replaced {
            kind: *kind,
            text: text.clone(),
            placeholder: placeholder.clone(),
        };
        self.replaced.iter().map(one).collect()
    }

    /// Records a text that is left out.
    pub fn left_out(&mut self, text: &str) {
        self.replaced.insert((Kind::LeftOut, text.to_owned()), String::new());
    }

    /// The placeholder for a text: a name and a number.
    pub fn given(&mut self, kind: Kind, name: &str, text: &str) -> String {
        if let Some(placeholder) = self.replaced.get(&(kind, text.to_owned())) {
            return placeholder.clone();
        }
        // A text that already is a placeholder comes from an unpacked pack.
        let is_own = text.strip_prefix(name).is_some_and(|number| number.parse::<u16>().is_ok());
        let placeholder = match is_own && self.is_open(text) {
            true => text.to_owned(),
            false => (1..)
                .map(|number| format!("{name}{number}"))
                .find(|own| !self.taken.contains(own))
                .expect("there is always another number"),
        };
        self.taken.insert(placeholder.clone());
        if placeholder != text {
            self.replaced.insert((kind, text.to_owned()), placeholder.clone());
        }
        placeholder
    }

    /// A user's text, or its placeholder if something in it looks private.
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

    /// A text of the program, the kernel or an engine, or its placeholder if something in it looks private.
    pub fn told(&mut self, text: &str) -> String {
        let is_path = text.starts_with('/') && !text.contains(char::is_whitespace);
        if is_path { self.path(text) } else { self.kept(Kind::Text, "text", text) }
    }

    /// A text that may quote a word that is private only elsewhere, such as a value in a command.
    pub fn quoting(&mut self, text: &str) -> String {
        const FEWEST: usize = 3;
        let repeats = |own: &String| own.chars().count() >= FEWEST && occurs(text, own);
        if self.replaced.keys().any(|(_, own)| repeats(own)) {
            return self.given(Kind::Text, "text", text);
        }
        self.told(text)
    }

    /// The placeholder for a path.
    pub fn path(&mut self, path: &str) -> String {
        match path == "/" || path.is_empty() || path.starts_with(ELSEWHERE) && self.is_open(path) {
            true => path.to_owned(),
            false => self.given(Kind::Path, "/…/path", path),
        }
    }

    /// The placeholder for a program's path, which keeps the program's name.
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

    /// Whether nothing in a text looks private: no secret, path, URL or address.
    pub fn is_open(&self, text: &str) -> bool {
        !text.split(' ').any(looks_private) && !self.secrets.iter().any(|secret| occurs(text, &secret.word))
    }
}

/// Whether a word is or contains a path, a URL or an address.
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

/// Whether a text contains a word.
fn occurs(text: &str, word: &str) -> bool {
    find(text.as_bytes(), word.as_bytes(), 0).is_some()
}

/// The position of a word in a text from `from` on, not inside a longer word.
pub fn find(text: &[u8], word: &[u8], from: usize) -> Option<usize> {
    let last = text.len().checked_sub(word.len())?;
    (from..=last).find(|&at| text[at] == word[0] && stands_at(text, word, at))
}

/// Whether a word is at this position of a text. After a backslash, a letter is the name of a control character in JSON, and not
/// part of the following word.
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

    /// On anna's machine, which is called `web-1`.
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
