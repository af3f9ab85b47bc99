//! Who the users inside a container are outside.

/// How users inside must be mapped to users outside.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum UserMap {
    /// With this line of ids inside, ids outside, and their number.
    Has(String),
    /// Root inside is not root outside.
    Moved,
    /// In any way.
    Any,
}

impl UserMap {
    /// What is wrong with the mapping that the probe found.
    pub(super) fn fault(&self, found: &[String]) -> Option<String> {
        let outside = |line: &String| {
            line.strip_prefix("0 ").and_then(|line| line.split(' ').next()).map(str::to_owned)
        };
        match self {
            UserMap::Has(line) => (!found.contains(line))
                .then(|| format!("its user mapping is {found:?} and must have the line `{line}`")),
            UserMap::Moved => found.iter().find_map(outside).is_none_or(|root| root == "0").then(|| {
                format!("its user mapping is {found:?}, in which root inside is not another user outside")
            }),
            UserMap::Any => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn users_are_mapped_as_asked() {
        let fault = |asked: &UserMap, lines: &[&str]| {
            asked.fault(&lines.iter().map(|line| (*line).to_owned()).collect::<Vec<_>>())
        };
        let keeps = UserMap::Has("1000 0 1".to_owned());
        assert_eq!(fault(&keeps, &["0 1 1000", "1000 0 1"]), None);
        assert!(fault(&keeps, &["0 1000 1"]).unwrap().contains("must have the line `1000 0 1`"));
        assert_eq!(fault(&UserMap::Moved, &["0 100000 65536"]), None);
        for lines in [&["0 0 4294967295"][..], &["1000 0 1"], &[]] {
            assert!(fault(&UserMap::Moved, lines).unwrap().contains("root inside is not another user"));
        }
        assert_eq!(fault(&UserMap::Any, &["0 0 4294967295"]), None);
    }
}
