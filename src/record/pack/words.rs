//! What stands for a private text? The same placeholder wherever the same text stands, and another one for
//! another text, so that what was different stays different and nothing else is told.

use std::collections::{BTreeMap, BTreeSet};

use super::text::{Piece, pieces};
use crate::host::private::Private;

/// What is taken out, and why.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// A name of the machine.
    Host,
    /// The name of a person.
    User,
    /// A place on the machine.
    Path,
    /// A place on a network.
    Place,
    /// An address of a machine or an interface.
    Address,
    /// An address of a person.
    Mail,
    /// A network interface with a name of its own.
    Interface,
    /// An image that is not one of those that everybody can name.
    Image,
    /// A value that a variable of the environment has.
    Variable,
    /// A value that was given to the command in a variable or behind a name such as `--password`.
    Value,
    /// A word that the person named.
    Word,
    /// What a measured command said.
    Said,
    /// A fact or label that is left out as a whole.
    LeftOut,
}

impl Kind {
    /// All of them, in the order in which they are shown.
    pub const ALL: [Kind; 13] = [
        Kind::Host,
        Kind::User,
        Kind::Path,
        Kind::Place,
        Kind::Address,
        Kind::Mail,
        Kind::Interface,
        Kind::Image,
        Kind::Variable,
        Kind::Value,
        Kind::Word,
        Kind::Said,
        Kind::LeftOut,
    ];

    /// What it is, in the plural.
    pub const fn name(self) -> &'static str {
        match self {
            Kind::Host => "host names",
            Kind::User => "user names",
            Kind::Path => "paths",
            Kind::Place => "network places",
            Kind::Address => "addresses",
            Kind::Mail => "mail addresses",
            Kind::Interface => "network interfaces",
            Kind::Image => "images",
            Kind::Variable => "environment variables",
            Kind::Value => "values given to commands",
            Kind::Word => "words named with --private",
            Kind::Said => "output of commands",
            Kind::LeftOut => "facts and tags left out",
        }
    }

    /// What its placeholders begin with.
    const fn placeholder(self) -> &'static str {
        match self {
            Kind::Host => super::HOST,
            Kind::User => "user",
            Kind::Path => "path",
            Kind::Place => "place",
            Kind::Address => "address",
            Kind::Mail => "mail",
            Kind::Interface => "interface",
            Kind::Image => "image",
            Kind::Variable => "variable",
            Kind::Value => "value",
            Kind::Word => "word",
            Kind::Said => "said",
            Kind::LeftOut => "left out",
        }
    }
}

/// A private text and what stands for it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Replaced {
    /// What it is.
    pub kind: Kind,
    /// The text.
    pub text: String,
    /// What stands for it; empty where nothing does.
    pub placeholder: String,
    /// How often.
    pub times: usize,
}

/// A word that must not occur.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Secret {
    /// What it is.
    pub kind: Kind,
    /// The word.
    pub word: String,
    /// What it is called when it must not be shown.
    pub called: String,
}

/// A variable's value with fewer letters is a number, a version, or a word that many know.
const FEWEST_LETTERS: usize = 6;
/// What every path begins with that stands for another one.
const ELSEWHERE: &str = "/…/";
/// Paths that every machine has, or that our own advice names.
const EVERYWHERE: [&str; 14] = [
    "/bin/sh",
    "/bin/bash",
    "/usr/bin/env",
    "/dev/null",
    "/dev/zero",
    "/dev/urandom",
    "/dev/net/tun",
    "/dev/kvm",
    "/proc/self/exe",
    "/sys/fs/cgroup",
    "/etc/subuid",
    "/etc/subgid",
    "/etc/security/limits.conf",
    "/proc/sys/kernel/unprivileged_userns_clone",
];

/// The words of a run, with what stands for them.
#[derive(Debug, Clone)]
pub struct Words {
    /// What must not occur, the longest first, so that a name within a longer one does not come first.
    secrets: Vec<Secret>,
    /// What is private by its form and is said nevertheless, since the run says it anyway.
    spared: Vec<Secret>,
    /// Names of programs, which paths keep.
    programs: BTreeSet<String>,
    given: BTreeMap<(Kind, String), (String, usize)>,
    taken: BTreeSet<String>,
}

/// What a pack is made with.
#[derive(Debug, Clone, Default)]
pub struct Known {
    /// The words of this machine and of this process.
    pub machine: Private,
    /// Host names that the run itself tells.
    pub hosts: Vec<String>,
    /// Names of images of the person's own, as the run tells them.
    pub images: Vec<String>,
    /// Names of users, as the run tells them.
    pub users: Vec<String>,
    /// Words that the person named.
    pub words: Vec<String>,
    /// Names of programs.
    pub programs: BTreeSet<String>,
    /// What a pack must be able to say: the words of the format.
    pub vocabulary: String,
    /// What the run says of the machine without telling which one it is, and the tags that stay.
    pub public: String,
}

impl Words {
    /// Nothing replaced yet.
    pub fn new(known: Known) -> Words {
        let mut all: Vec<Secret> = Vec::new();
        let mut add = |kind, word: &str, called: String| {
            let is_known = word.starts_with(ELSEWHERE) || all.iter().any(|one| one.word == word);
            if word.trim().chars().count() > 1 && !is_known {
                all.push(Secret { kind, word: word.to_owned(), called });
            }
        };
        for word in &known.words {
            add(Kind::Word, word, "a word named with `--private`".into());
        }
        for name in known.hosts.iter().chain(&known.machine.hosts).filter(|name| *name != super::HOST) {
            add(Kind::Host, name, "a name of the host".into());
        }
        for name in &known.images {
            add(Kind::Image, name, "a name of an image".into());
        }
        for name in known.users.iter().chain(&known.machine.users) {
            add(Kind::User, name, "the name of a user".into());
        }
        for path in &known.machine.directories {
            add(Kind::Path, path, "a home or the working directory".into());
        }
        for (name, value) in &known.machine.variables {
            if value.chars().filter(|c| c.is_alphabetic()).count() >= FEWEST_LETTERS {
                add(Kind::Variable, value, format!("the value of `${name}`"));
            }
        }
        let is_public = |secret: &Secret| match secret.kind {
            Kind::Word => false,
            Kind::Variable => occurs(&known.public, &secret.word) || occurs(&known.vocabulary, &secret.word),
            _ => occurs(&known.vocabulary, &secret.word),
        };
        let (spared, mut secrets): (Vec<Secret>, Vec<Secret>) = all.into_iter().partition(is_public);
        secrets.sort_by_key(|secret| std::cmp::Reverse(secret.word.len()));
        // Nothing private may stand for something else either.
        let taken = secrets.iter().map(|secret| secret.word.clone()).collect();
        Words { secrets, spared, programs: known.programs, given: BTreeMap::new(), taken }
    }

    /// What must not occur.
    pub fn secrets(&self) -> &[Secret] {
        &self.secrets
    }

    /// What is private by its form and not looked for, because the run says it anyway.
    pub fn spared(&self) -> &[Secret] {
        &self.spared
    }

    /// Everything that was replaced, by kind and in the order of the texts.
    pub fn replaced(&self) -> Vec<Replaced> {
        let one = |((kind, text), (placeholder, times)): (&(Kind, String), &(String, usize))| Replaced {
            kind: *kind,
            text: text.clone(),
            placeholder: placeholder.clone(),
            times: *times,
        };
        self.given.iter().map(one).collect()
    }

    /// A text of any kind, with everything private in it replaced.
    pub fn text(&mut self, text: &str) -> String {
        let mut out = String::with_capacity(text.len());
        for piece in pieces(text) {
            match piece {
                Piece::Plain(text) => out += &self.plain(text),
                Piece::Path(path) => out += &self.path(path),
                Piece::Place("unix" | "file", path) => {
                    out += "unix://";
                    out += &self.path(path);
                }
                Piece::Place(scheme, rest) => {
                    out += &format!("{scheme}://");
                    out += &self.whole(Kind::Place, rest);
                }
                Piece::Address(address) => out += &self.whole(Kind::Address, address),
                Piece::Mail(address) => out += &self.whole(Kind::Mail, address),
            }
        }
        out
    }

    /// A word of a command: there a slash between letters makes a path too, as in `data/set.bin` and `-I/usr/include`.
    pub fn of_command(&mut self, text: &str) -> String {
        let mut out = String::with_capacity(text.len());
        for piece in pieces(text) {
            let Piece::Plain(mut rest) = piece else {
                out += &self.text(&written(piece));
                continue;
            };
            while let Some((from, to)) = place_in(rest) {
                out += &self.text(&rest[..from]);
                out += &self.path(&rest[from..to]);
                rest = &rest[to..];
            }
            out += &self.text(rest);
        }
        out
    }

    /// A text that may repeat what was replaced elsewhere by its place: a value behind `--token`, a path with blanks.
    pub fn told(&mut self, text: &str) -> String {
        const FEWEST: usize = 3;
        let known = self.given.iter().filter(|((_, own), (placeholder, _))| {
            own.chars().count() >= FEWEST && !placeholder.is_empty() && occurs(text, own)
        });
        let mut known: Vec<(String, String)> =
            known.map(|((_, own), (placeholder, _))| (own.clone(), placeholder.clone())).collect();
        known.sort_by_key(|(own, _)| std::cmp::Reverse(own.len()));
        let mut told = text.to_owned();
        for (own, placeholder) in known {
            let (mut done, mut rest) = (String::new(), told.as_str());
            while let Some(at) = find(rest.as_bytes(), own.as_bytes(), 0) {
                done += &rest[..at];
                done += &placeholder;
                rest = &rest[at + own.len()..];
            }
            told = done + rest;
        }
        self.text(&told)
    }

    /// A program's version in its own words: what looks like an address there is a number.
    pub fn version(&mut self, text: &str) -> String {
        let mut out = String::with_capacity(text.len());
        for piece in pieces(text) {
            match piece {
                Piece::Address(number) => out += number,
                Piece::Plain(text) => out += &self.plain(text),
                other => out += &self.text(written(other).as_str()),
            }
        }
        out
    }

    /// A path, which keeps its last part where that is the name of a program.
    pub fn path(&mut self, path: &str) -> String {
        let bare = if path.len() > 1 { path.trim_end_matches('/') } else { path };
        if bare == "/" || bare.starts_with("/…") || EVERYWHERE.contains(&bare) {
            return path.to_owned();
        }
        let name = bare.rsplit('/').next().unwrap_or_default();
        if !self.programs.contains(name) {
            return self.give(Kind::Path, bare, |number| format!("{ELSEWHERE}path{number}"));
        }
        let name = self.plain(name);
        self.give(Kind::Path, bare, |number| match number {
            1 => format!("{ELSEWHERE}{name}"),
            _ => format!("{ELSEWHERE}{number}/{name}"),
        })
    }

    /// A text that is private as a whole.
    pub fn whole(&mut self, kind: Kind, text: &str) -> String {
        let name = kind.placeholder();
        self.give(kind, text, |number| match number {
            1 if kind == Kind::Host => name.to_owned(),
            _ => format!("{name}{number}"),
        })
    }

    /// A text for which nothing stands.
    pub fn left_out(&mut self, kind: Kind, text: &str) {
        self.given.entry((kind, text.to_owned())).or_insert_with(|| (String::new(), 0)).1 += 1;
    }

    /// The placeholder of a text: the one that it has, or the first that no other has.
    fn give(&mut self, kind: Kind, text: &str, form: impl Fn(usize) -> String) -> String {
        if let Some((placeholder, times)) = self.given.get_mut(&(kind, text.to_owned())) {
            *times += 1;
            return placeholder.clone();
        }
        // A text that is a placeholder already comes from a pack that was unpacked.
        let is_own = (1..1000).map(&form).take_while(|_| text.len() < 24).any(|own| own == text);
        let free = |own: &String| !self.taken.contains(own);
        let placeholder = match is_own {
            true => text.to_owned(),
            false => (1..).map(form).find(free).expect("numbers do not end"),
        };
        self.taken.insert(placeholder.clone());
        if !is_own {
            self.given.insert((kind, text.to_owned()), (placeholder.clone(), 1));
        }
        placeholder
    }

    /// A text in which nothing is private by its form: only secret words are replaced.
    fn plain(&mut self, text: &str) -> String {
        let first = self.secrets.iter().enumerate().find_map(|(index, secret)| {
            find(text.as_bytes(), secret.word.as_bytes(), 0).map(|at| (index, at))
        });
        let Some((index, at)) = first else { return text.to_owned() };
        let Secret { kind, word, .. } = self.secrets[index].clone();
        let placeholder = self.whole(kind, &word);
        self.plain(&text[..at]) + &placeholder + &self.plain(&text[at + word.len()..])
    }
}

/// Where the first path stands in a text of a command in which nothing is one by its beginning.
fn place_in(text: &str) -> Option<(usize, usize)> {
    let of_path = |c: char| c.is_alphanumeric() || "._-/~+".contains(c);
    let mut at = 0;
    for run in text.split(|c| !of_path(c)) {
        let is_path = run.contains('/') && run.contains(char::is_alphabetic);
        // An option of one letter may have its value right behind it.
        let head = match run.as_bytes() {
            [b'-', letter, ..] if letter.is_ascii_alphabetic() => 2,
            _ => 0,
        };
        if is_path && run.len() > head + 1 {
            return Some((at + head, at + run.len()));
        }
        at += run.len() + text[at + run.len()..].chars().next().map_or(0, char::len_utf8);
    }
    None
}

fn written(piece: Piece<'_>) -> String {
    match piece {
        Piece::Plain(text) | Piece::Path(text) | Piece::Address(text) | Piece::Mail(text) => text.to_owned(),
        Piece::Place(scheme, rest) => format!("{scheme}://{rest}"),
    }
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
pub(super) mod tests {
    use super::*;

    /// The words of a machine on which Anna works.
    pub fn annas() -> Words {
        Words::new(Known {
            machine: Private { users: vec!["anna".into()], ..Default::default() },
            programs: ["crun-1.8".to_owned(), "gzip".to_owned()].into(),
            vocabulary: super::super::vocabulary::vocabulary(),
            ..Known::default()
        })
    }

    fn known() -> Known {
        let variable = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        Known {
            machine: Private {
                hosts: vec!["web-1".into()],
                users: vec!["anna".into(), "docker".into()],
                directories: vec!["/home/anna".into()],
                variables: vec![
                    variable("SECRET", "tulip-garden"),
                    variable("VERSION", "24.0.7~rc1"),
                    variable("COMMIT", "abcdefabcdef"),
                ],
            },
            programs: ["crun".to_owned()].into(),
            vocabulary: "docker podman".into(),
            public: "abcdefabcdef".into(),
            ..Known::default()
        }
    }

    #[test]
    fn the_same_text_has_the_same_placeholder_and_another_text_another() {
        let mut words = Words::new(known());
        assert_eq!(
            words.text("open /a/x: denied, and /a/y, and /a/x"),
            "open /…/path1: denied, and /…/path2, and /…/path1"
        );
        assert_eq!(words.text("/usr/bin/crun and /opt/crun"), "/…/crun and /…/2/crun");
        assert_eq!(
            words.text("anna on web-1 at 10.0.0.7, tulip-garden"),
            "user1 on host at address1, variable1"
        );
        let times: Vec<_> = words.replaced().iter().map(|one| (one.text.clone(), one.times)).collect();
        assert!(times.contains(&("/a/x".into(), 2)), "{times:?}");
    }

    #[test]
    fn words_within_words_and_words_of_the_format_stay() {
        let mut words = Words::new(known());
        assert_eq!(words.text("johanna annals web-12 docker"), "johanna annals web-12 docker");
        assert_eq!(words.text("24.0.7~rc1 abcdefabcdef"), "24.0.7~rc1 abcdefabcdef");
        let spared: Vec<_> = words.spared().iter().map(|one| one.word.as_str()).collect();
        assert_eq!(spared, ["docker", "abcdefabcdef"]);
        assert_eq!(words.version("crun 1.2.3.4 by anna"), "crun 1.2.3.4 by user1");
    }

    #[test]
    fn what_was_replaced_once_is_not_replaced_again() {
        let mut first = Words::new(known());
        let once = first.text("anna: /home/anna/x /usr/bin/crun unix:///run/x.sock https://a.b/c web-1");
        assert_eq!(once, "user1: /…/path1 /…/crun unix:///…/path2 https://place1 host");
        assert_eq!(Words::new(known()).text(&once), once);
    }

    #[test]
    fn a_word_behind_an_escape_is_found() {
        assert_eq!(find(br#""x\nanna""#, b"anna", 0), Some(4));
        assert_eq!(find(b"susanna anna", b"anna", 0), Some(8));
        assert_eq!(find(b"", b"anna", 0), None);
    }
}
