//! Words that identify this machine and its users: their names, where they work, and the environment. Read when a run is
//! packed, so that none of them ends up in the pack.

use std::collections::BTreeSet;

/// Words that identify this machine and its users.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Private {
    /// Names of the machine and of users, with home and working directories.
    pub names: BTreeSet<String>,
    /// Variables of the environment, with their values.
    pub variables: Vec<(String, String)>,
}

/// The first user id of ordinary users (`UID_MIN` of login.defs(5)), and that of `nobody`.
const FIRST_PERSON: u32 = 1000;
const NOBODY: u32 = 65534;
/// Variables that contain a user's name or home.
const NAMES: [&str; 5] = ["SUDO_USER", "USER", "LOGNAME", "DOAS_USER", "HOME"];
/// The one name that is on every machine.
const ROOT: &str = "root";

impl Private {
    /// The words of this machine and this process.
    pub fn gather() -> Private {
        let read = |path| std::fs::read_to_string(path).unwrap_or_default();
        let variables = std::env::vars_os();
        let shown = |text: std::ffi::OsString| text.to_string_lossy().into_owned();
        let variables = variables.map(|(name, value)| (shown(name), shown(value))).collect();
        let working = std::env::current_dir().map(|path| path.display().to_string()).ok();
        Private::of(&read("/proc/sys/kernel/hostname"), &read("/etc/passwd"), working, variables)
    }

    fn of(host: &str, accounts: &str, working: Option<String>, variables: Vec<(String, String)>) -> Private {
        let host = host.trim();
        let short = host.split('.').next().unwrap_or_default();
        let mut names: BTreeSet<String> = [host.to_owned(), short.to_owned()].into();
        let telling = |(name, _): &&(String, String)| NAMES.contains(&name.as_str());
        names.extend(variables.iter().filter(telling).map(|(_, value)| value.clone()));
        names.extend(accounts.lines().filter_map(person).flatten().map(str::to_owned));
        names.extend(working);
        names.retain(|name| !["", "/", ROOT].contains(&name.as_str()));
        Private { names, variables }
    }
}

/// Name and home of an ordinary user, from a line of passwd(5).
fn person(line: &str) -> Option<[&str; 2]> {
    let fields: Vec<&str> = line.split(':').collect();
    let [name, _, number, _, _, home, ..] = fields[..] else { return None };
    let number: u32 = number.parse().ok()?;
    (number >= FIRST_PERSON && number != NOBODY).then_some([name, home])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn people_are_told_from_services() {
        let accounts = "root:x:0:0:root:/root:/bin/bash\ndaemon:x:1:1::/usr/sbin:/bin/false\n\
            anna:x:1000:1000:Anna:/home/anna:/bin/bash\nnobody:x:65534:65534::/nonexistent:/bin/false\nbroken\n";
        let variable = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        let variables =
            vec![variable("HOME", "/root"), variable("SUDO_USER", "berta"), variable("USER", "root")];
        let found = Private::of("web-1.example.org\n", accounts, Some("/".into()), variables.clone());
        let names = ["/home/anna", "/root", "anna", "berta", "web-1", "web-1.example.org"];
        assert_eq!(found.names, names.map(String::from).into());
        assert_eq!(found.variables, variables);
    }
}
