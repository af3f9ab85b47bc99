//! What in a text is a path, an address, or the place of something on a network? Told by form alone, as a
//! scanner reads it from left to right; what it means is decided in `words`.

/// A piece of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Piece<'a> {
    /// Nothing special.
    Plain(&'a str),
    /// A path: absolute, or beginning with `./`, `../` or `~/`.
    Path(&'a str),
    /// What follows `://`, with the scheme before it.
    Place(&'a str, &'a str),
    /// An address of a machine or of an interface.
    Address(&'a str),
    /// An address of a person.
    Mail(&'a str),
}

/// The pieces of a text, in their order; together they are the text.
pub fn pieces(text: &str) -> Vec<Piece<'_>> {
    let mut pieces = Vec::new();
    let (mut plain_from, mut at) = (0, 0);
    while at < text.len() {
        let rest = &text[at..];
        let found = if begins_word(&text[..at]) { special(rest) } else { None };
        match found {
            Some((piece, length)) => {
                if plain_from < at {
                    pieces.push(Piece::Plain(&text[plain_from..at]));
                }
                pieces.push(piece);
                at += length;
                plain_from = at;
            }
            None => at += rest.chars().next().map_or(1, char::len_utf8),
        }
    }
    if plain_from < text.len() {
        pieces.push(Piece::Plain(&text[plain_from..]));
    }
    pieces
}

/// Whether something can begin behind this text.
fn begins_word(before: &str) -> bool {
    before.chars().next_back().is_none_or(|c| !c.is_alphanumeric() && !"._-/~@%+".contains(c))
}

fn special(rest: &str) -> Option<(Piece<'_>, usize)> {
    place(rest).or_else(|| path(rest)).or_else(|| mail(rest)).or_else(|| address(rest))
}

/// What a path and what follows a scheme cannot hold when it stands in a text.
fn ends(c: char) -> bool {
    c.is_whitespace() || c.is_control() || "\"'`,;()<>[]{}|&*?\\!".contains(c)
}

/// The length up to the first character of these, and without the punctuation of a sentence at its end.
fn length(text: &str, ends: impl Fn(char) -> bool) -> usize {
    let end = text.find(ends).unwrap_or(text.len());
    text[..end].trim_end_matches(['.', ':']).len()
}

fn place(rest: &str) -> Option<(Piece<'_>, usize)> {
    let colon = rest.find(|c: char| !c.is_ascii_alphanumeric() && !"+.-".contains(c))?;
    let after = rest[colon..].strip_prefix("://")?;
    let length = length(after, ends);
    let is_scheme = rest.starts_with(|c: char| c.is_ascii_alphabetic());
    (is_scheme && length > 0).then(|| (Piece::Place(&rest[..colon], &after[..length]), colon + 3 + length))
}

fn path(rest: &str) -> Option<(Piece<'_>, usize)> {
    let start = ["/", "./", "../", "~/"].into_iter().find(|start| rest.starts_with(start))?;
    let length = length(rest, |c| ends(c) || c == ':' || c == '=');
    // A lone slash is the root, or a sign of division.
    (length > start.len()).then(|| (Piece::Path(&rest[..length]), length))
}

fn mail(rest: &str) -> Option<(Piece<'_>, usize)> {
    let of_name = |c: char| c.is_alphanumeric() || "._%+-".contains(c);
    let at = rest.find(|c| !of_name(c)).filter(|at| *at > 0)?;
    let after = rest[at..].strip_prefix('@')?;
    let domain = length(after, |c| !c.is_alphanumeric() && !".-".contains(c));
    (after[..domain].contains('.')).then(|| (Piece::Mail(&rest[..at + 1 + domain]), at + 1 + domain))
}

fn address(rest: &str) -> Option<(Piece<'_>, usize)> {
    let of_address = |c: char| c.is_ascii_hexdigit() || c == '.' || c == ':';
    let end = rest.find(|c| !of_address(c)).unwrap_or(rest.len());
    let follows_word = rest[end..].starts_with(|c: char| c.is_alphanumeric() || "_-~+".contains(c));
    let whole = rest[..end].trim_end_matches(['.', ':']);
    // A port may follow an address of four numbers.
    let dotted = whole.split(':').next().unwrap_or_default();
    if !follows_word
        && dotted.parse::<std::net::Ipv4Addr>().is_ok_and(|one| !one.is_loopback() && !one.is_unspecified())
    {
        return Some((Piece::Address(dotted), dotted.len()));
    }
    let groups: Vec<&str> = whole.split(':').collect();
    let is_of_interface = groups.len() == 6 && groups.iter().all(|group| group.len() == 2);
    let is_sixth_version =
        groups.len() > 3 && whole.parse::<std::net::Ipv6Addr>().is_ok_and(|one| !one.is_loopback());
    let is_short = whole.contains("::") && whole.len() > 3 && whole.parse::<std::net::Ipv6Addr>().is_ok();
    let is_one = !follows_word && (is_of_interface || is_sixth_version || is_short);
    is_one.then_some((Piece::Address(whole), whole.len()))
}

#[cfg(test)]
mod tests {
    use super::Piece::{Address, Mail, Path, Place, Plain};
    use super::*;
    use proptest::prelude::*;

    fn specials(text: &str) -> Vec<Piece<'_>> {
        pieces(text).into_iter().filter(|piece| !matches!(piece, Plain(_))).collect()
    }

    #[test]
    fn paths_are_found_where_they_begin_and_end() {
        assert_eq!(specials("open /a/b.sock: denied"), [Path("/a/b.sock")]);
        assert_eq!(specials("see `~/x`, ./y and ../z."), [Path("~/x"), Path("./y"), Path("../z")]);
        assert_eq!(specials("lowerdir=/a:/b,upperdir=/c)"), [Path("/a"), Path("/b"), Path("/c")]);
        for nothing in
            ["GNU/Linux", "and/or", "a / b", "application/json", "5/7", "ctr github.com/x/y 1.6~ds1"]
        {
            assert_eq!(specials(nothing), [], "{nothing}");
        }
    }

    #[test]
    fn places_addresses_and_people_are_found() {
        assert_eq!(specials("get https://a.b:5/c?d=e, then"), [Place("https", "a.b:5/c")]);
        assert_eq!(specials("unix:///run/docker.sock"), [Place("unix", "/run/docker.sock")]);
        assert_eq!(specials("dial tcp 10.1.2.3:443: refused"), [Address("10.1.2.3")]);
        assert_eq!(specials("at fe80::1ff:fe23:4567:890a now"), [Address("fe80::1ff:fe23:4567:890a")]);
        assert_eq!(specials("link 02:42:ac:11:00:02 up"), [Address("02:42:ac:11:00:02")]);
        assert_eq!(specials("mail to anna@example.org."), [Mail("anna@example.org")]);
        for nothing in [
            "127.0.0.1",
            "crun 1.8.1",
            "v1.2.3.4",
            "1.2.3.4-rc1",
            "12:34:56",
            "std::fs",
            "x@sha256:0abc",
            "::1",
        ] {
            assert_eq!(specials(nothing), [], "{nothing}");
        }
    }

    proptest! {
        #[test]
        fn pieces_are_the_text(text in "(\\PC|/|:|@|\\.|[0-9a-f]){0,40}") {
            let whole: String = pieces(&text).into_iter().map(|piece| match piece {
                Plain(text) | Path(text) | Address(text) | Mail(text) => text.to_owned(),
                Place(scheme, rest) => format!("{scheme}://{rest}"),
            }).collect();
            prop_assert_eq!(whole, text);
        }
    }
}
