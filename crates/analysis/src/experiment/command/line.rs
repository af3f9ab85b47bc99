//! A command as the user wrote it: words as a shell would split them, without any of a shell's expansions;
//! variables, mounts, and names in braces that stand for swept values.

use std::path::{Path, PathBuf};

use crate::subject::{Access, Mount};

/// The words of a text: separated by blanks, grouped by quotes, a backslash escaping the next character; a
/// `#` at the beginning of a word starts a comment. Nothing is expanded.
pub fn split(text: &str) -> Result<Vec<String>, String> {
    let words = shlex::split(text).ok_or("a quote is not closed, or nothing follows the last backslash")?;
    match words.iter().any(|word| word.contains('\0')) {
        true => Err("a word contains a zero byte".to_owned()),
        false => Ok(words),
    }
}

/// A text that splits into these words.
pub fn join(words: &[String]) -> String {
    // As people write them: characters that are special only at the beginning of a line need no quotes.
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./=:,@%+".contains(c);
    let quoted = |word: &String| match !word.is_empty() && word.chars().all(plain) {
        true => word.clone(),
        false => format!("'{}'", word.replace('\'', r"'\''")),
    };
    words.iter().map(quoted).collect::<Vec<_>>().join(" ")
}

/// A mount as `HOST:INSIDE` or `HOST:INSIDE:ro`, both absolute.
pub fn mount(text: &str) -> Result<Mount, String> {
    const FORM: &str = "HOST:INSIDE or HOST:INSIDE:ro, two absolute paths";
    let (paths, access) = match text.strip_suffix(":ro") {
        Some(paths) => (paths, Access::ReadOnly),
        None => (text.strip_suffix(":rw").unwrap_or(text), Access::ReadWrite),
    };
    let (host, inside) = paths.split_once(':').ok_or(FORM)?;
    let plain = |path: &str| Path::new(path).is_absolute() && !path.contains([',', ':', '"', '\n']);
    if !plain(host) || !plain(inside) || inside == "/" {
        return Err(FORM.to_owned());
    }
    Ok(Mount { host: PathBuf::from(host), inside: PathBuf::from(inside), access })
}

/// A variable as `NAME=VALUE`, or `NAME` for one of dunnage's own.
pub fn variable(text: &str) -> Result<(), String> {
    match text.is_empty() || text.starts_with('=') || text.contains('\0') {
        true => Err("NAME=VALUE or NAME".to_owned()),
        false => Ok(()),
    }
}

/// Names with their values, as `NAME=VALUE` joined by blanks.
pub fn swept(text: &str) -> Result<Vec<(String, String)>, String> {
    let pair = |word: String| {
        let (name, value) = word.split_once('=').ok_or("NAME=VALUE")?;
        let is_name = !name.is_empty() && name.chars().all(|c| c.is_alphanumeric() || "-_".contains(c));
        if is_name { Ok((name.to_owned(), value.to_owned())) } else { Err("NAME=VALUE".to_owned()) }
    };
    let all: Vec<(String, String)> = split(text)?.into_iter().map(pair).collect::<Result<_, _>>()?;
    match all.iter().enumerate().any(|(at, (name, _))| all[..at].iter().any(|(other, _)| other == name)) {
        true => Err("NAME=VALUE, each name once".to_owned()),
        false => Ok(all),
    }
}

/// The text with `{NAME}` replaced by its value, for every name. Values are not expanded again.
pub fn filled_in(text: &str, values: &[(String, String)]) -> String {
    let (mut filled, mut rest) = (String::new(), text);
    while let Some((before, after)) = rest.split_once('{') {
        filled.push_str(before);
        let named = values
            .iter()
            .find_map(|(name, value)| Some((value, after.strip_prefix(name.as_str())?.strip_prefix('}')?)));
        filled.push_str(named.map_or("{", |(value, _)| value));
        rest = named.map_or(after, |(_, after)| after);
    }
    filled + rest
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn words_are_split_as_a_shell_splits_them_and_no_more() {
        let cases: [(&str, &[&str]); 7] = [
            ("", &[]),
            ("  a\tb\n", &["a", "b"]),
            (r#"sh -c "echo \"$HOME\" 'x'""#, &["sh", "-c", r#"echo "$HOME" 'x'"#]),
            (r"a\ b '\' ''", &["a b", "\\", ""]),
            (r#"a"b"'c'd"#, &["abcd"]),
            ("ls * | wc ; x > y", &["ls", "*", "|", "wc", ";", "x", ">", "y"]),
            ("\"a\\nb\"", &["a\\nb"]),
        ];
        for (text, expected) in cases {
            assert_eq!(split(text).unwrap(), expected, "{text}");
        }
        for text in ["'a", "\"a", "a\\", "\"a\\"] {
            assert!(split(text).is_err(), "{text}");
        }
    }

    #[test]
    fn mounts_have_two_absolute_paths() {
        let both = |text| mount(text).map(|one| (one.host, one.inside, one.access));
        assert_eq!(both("/a:/b"), Ok(("/a".into(), "/b".into(), Access::ReadWrite)));
        assert_eq!(both("/a:/b:ro"), Ok(("/a".into(), "/b".into(), Access::ReadOnly)));
        for text in ["/a", "a:/b", "/a:b", "/a:/", "/a:/b:xx", "/a,x:/b"] {
            assert!(mount(text).is_err(), "{text}");
        }
    }

    #[test]
    fn names_in_braces_stand_for_values() {
        let values = swept("n=10 'size=a b'").unwrap();
        assert_eq!(filled_in("x {n} {size} {m} n", &values), "x 10 a b {m} n");
        assert_eq!(filled_in("{{n}} {n {size}{", &values), "{10} {n a b{");
        let values = swept("n={m} m=1").unwrap();
        assert_eq!(filled_in("{n} {m}", &values), "{m} 1");
        assert!(swept("a=1 a=2").is_err());
        assert!(swept("10").is_err() && swept("=1").is_err());
        assert!(variable("A=").is_ok() && variable("A").is_ok() && variable("=A").is_err());
    }

    proptest! {
        #[test]
        fn what_is_joined_splits_again(words in proptest::collection::vec("\\PC{0,8}", 0..5)) {
            prop_assert_eq!(split(&join(&words)), Ok(words));
        }
    }
}
