//! When a command that is a service counts as ready, as the user writes it.

use regex_lite::Regex;

/// The value of `--ready` for a command that ends on its own.
pub const EXIT: &str = "exit";

/// When a service is ready.
#[derive(Debug, Clone)]
pub enum Ready {
    /// When a line that it writes matches.
    Log(Regex),
    /// When this TCP port of its network is open.
    Port(u16),
}

impl Ready {
    /// Reads it, or says what would be accepted.
    pub fn of(text: &str) -> Result<Ready, String> {
        match text.split_once(' ') {
            Some(("log", pattern)) => Regex::new(pattern)
                .map(Ready::Log)
                .map_err(|why| format!("`log` and a regular expression, but this is not one: {why}")),
            Some(("port", number)) => match number.parse() {
                Ok(port @ 1..) => Ok(Ready::Port(port)),
                _ => Err("`port` and a number from 1 to 65535".to_owned()),
            },
            _ => Err(format!("`log REGEX`, `port N` or, as an option, `{EXIT}`")),
        }
    }
}

/// In the form that `of` reads.
impl std::fmt::Display for Ready {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Ready::Log(pattern) => write!(out, "log {pattern}"),
            Ready::Port(port) => write!(out, "port {port}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_waited_for_is_a_line_or_a_port() {
        for text in ["log ready( to)? accept$", "log  x", "port 1", "port 65535"] {
            assert_eq!(Ready::of(text).unwrap().to_string(), text);
        }
        for text in ["port 0", "port 70000", "port x", "port", "log", "log (", "exit", "line x", ""] {
            assert!(Ready::of(text).is_err(), "{text}");
        }
        let Ok(Ready::Log(pattern)) = Ready::of("log ^ready$") else { panic!("no pattern") };
        assert!(pattern.is_match("ready") && !pattern.is_match("not ready"));
    }
}
