//! The user of a login, and what a login gives them, as the machine's databases and programs say.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::Login;
use crate::subject::component::Client;
use crate::subject::{Unavailable, on_path};
use crate::sys::identity::{Identity, Limit, limits_in};
use crate::sys::raw;

/// A line of the user database.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Account {
    name: String,
    user: u32,
    group: u32,
    home: PathBuf,
    shell: String,
}

impl Account {
    fn parse(line: &str) -> Option<Account> {
        let fields: Vec<_> = line.trim_end().split(':').collect();
        let [name, _, user, group, _, home, shell] = fields[..] else { return None };
        Some(Account {
            name: name.to_owned(),
            user: user.parse().ok()?,
            group: group.parse().ok()?,
            home: home.into(),
            shell: if shell.is_empty() { "/bin/sh" } else { shell }.to_owned(),
        })
    }

    /// Asks the databases that the machine uses; without `getent`, `/etc/passwd`.
    fn find(name: &str) -> Option<Account> {
        let text = match on_path("getent") {
            Some(getent) => Client::of(getent).ask(&["passwd", name]).unwrap_or_default(),
            None => std::fs::read_to_string("/etc/passwd").unwrap_or_default(),
        };
        text.lines().filter_map(Account::parse).find(|account| account.name == name)
    }

    /// Why podman cannot work as this user.
    fn check(&self) -> Result<(), Unavailable> {
        let (name, home) = (&self.name, self.home.display());
        if self.user == 0 {
            return Err(Unavailable::because(format!("`{name}` is root, and `rootless` needs another user"))
                .with_remedy("leave `rootless` out: plain `podman` runs as root"));
        }
        let owner = self.home.metadata().ok().filter(|home| home.is_dir()).map(|home| home.uid());
        let make = format!(
            "name another user, or make the home directory: `install --directory --mode 700 --owner {name} --group {} {home}`",
            self.group
        );
        match owner {
            None => Err(Unavailable::because(format!(
                "the user `{name}` has no home directory for podman's images (`{home}` does not exist)"
            ))
            .with_remedy(make)),
            Some(owner) if owner != self.user => Err(Unavailable::because(format!(
                "the home directory `{home}` of the user `{name}` belongs to another user ({owner})"
            ))
            .with_remedy("name a user who owns their home directory")),
            Some(_) => Ok(()),
        }
    }

    fn groups(&self) -> Vec<u32> {
        let listed =
            on_path("id").and_then(|id| Client::of(id).ask(&["-G", &self.name]).ok()).unwrap_or_default();
        let mut groups: Vec<u32> = listed.split_whitespace().filter_map(|group| group.parse().ok()).collect();
        if !groups.contains(&self.group) {
            groups.push(self.group);
        }
        groups
    }

    fn environment(&self) -> Vec<String> {
        let mut all = vec![
            format!("HOME={}", self.home.display()),
            format!("USER={}", self.name),
            format!("LOGNAME={}", self.name),
            format!("SHELL={}", self.shell),
            search_path(&std::fs::read_to_string("/etc/login.defs").unwrap_or_default()),
        ];
        // If a login has its own runtime directory, podman keeps its state there, else in /tmp.
        let runtime = PathBuf::from(format!("/run/user/{}", self.user));
        if runtime.metadata().is_ok_and(|facts| facts.uid() == self.user) {
            all.push(format!("XDG_RUNTIME_DIR={}", runtime.display()));
            let bus = runtime.join("bus");
            if bus.exists() {
                all.push(format!("DBUS_SESSION_BUS_ADDRESS=unix:path={}", bus.display()));
            }
        }
        all
    }
}

/// The search path of ordinary users in the text of `login.defs`, as `PATH=…`.
fn search_path(definitions: &str) -> String {
    const USUAL: &str = "PATH=/usr/local/bin:/usr/bin:/bin";
    let value = |line: &str| {
        let mut words = line.split_whitespace();
        (words.next() == Some("ENV_PATH"))
            .then(|| words.next())?
            .map(|path| format!("PATH={}", path.trim_start_matches("PATH=")))
    };
    definitions.lines().find_map(value).unwrap_or_else(|| USUAL.to_owned())
}

impl Login {
    /// Whether this user exists on the machine.
    pub fn exists(name: &str) -> bool {
        Account::find(name).is_some()
    }

    /// The ids of this user and of the user's group.
    pub fn ids(name: &str) -> Option<(u32, u32)> {
        Account::find(name).map(|account| (account.user, account.group))
    }

    /// Whether there is such a user, other than root, as whom no one can log in.
    pub fn is_closed(name: &str) -> bool {
        const CLOSED: [&str; 2] = ["nologin", "false"];
        let shell = |account: &Account| account.shell.rsplit('/').next().unwrap_or_default().to_owned();
        Account::find(name).is_some_and(|one| one.user != 0 && CLOSED.contains(&shell(&one).as_str()))
    }

    /// The user with this name, and what a login gives them. `None` if dunnage already runs as that user and
    /// nothing has to change.
    pub fn of(name: &str) -> Result<Option<Login>, Unavailable> {
        let account = Account::find(name).ok_or_else(|| {
            Unavailable::because(format!("the user `{name}` does not exist"))
                .with_remedy(format!("name another user, or create this one: `useradd --create-home {name}`"))
        })?;
        let own = raw::user_and_group().0;
        if own == account.user as usize && own != 0 {
            return Ok(None);
        }
        if own != 0 {
            return Err(Unavailable::because(format!(
                "permission: only root may start programs as `{name}`"
            ))
            .with_remedy("run dunnage as root; or as that user, with plain `podman`"));
        }
        account.check()?;
        let (limits, mask, source) = match asked_of_a_login(name) {
            Ok((limits, mask)) => (limits, mask, "of a login, as `runuser` gives them".to_owned()),
            Err(why) => {
                (Vec::new(), 0o022, format!("dunnage's own, since those of a login are not known: {why}"))
            }
        };
        Ok(Some(Login {
            environment: account.environment(),
            identity: Arc::new(Identity {
                user: account.user,
                group: account.group,
                groups: account.groups(),
                limits,
                directory: account.home.clone(),
                mask,
            }),
            name: account.name,
            limits: source,
        }))
    }

    /// Whether this user can read a file at this path.
    pub fn may_read(&self, path: &Path) -> bool {
        let Some(test) = on_path("test") else { return true };
        Client { login: Some(self.clone()), ..Client::of(test) }.ask(&["-r", &path.to_string_lossy()]).is_ok()
    }
}

/// The limits and the umask that PAM sets at a login, read by a program started in one.
fn asked_of_a_login(name: &str) -> Result<(Vec<Limit>, u32), String> {
    let runuser = on_path("runuser").ok_or("`runuser` is not installed")?;
    let arguments = ["-u", name, "--", "cat", "/proc/self/limits", "/proc/self/status"];
    let said = Client::of(runuser).ask(&arguments).map_err(|why| why.reason)?;
    let limits = limits_in(&said).ok_or("cannot parse `/proc/self/limits`")?;
    let mask = said.lines().find_map(|line| line.strip_prefix("Umask:"));
    let mask = mask.and_then(|mask| u32::from_str_radix(mask.trim(), 8).ok()).unwrap_or(0o022);
    Ok((limits, mask))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_of_the_user_database_is_read() {
        let account = Account::parse("ann:x:1001:100:Ann,,,:/home/ann:").unwrap();
        assert_eq!((account.user, account.group, account.shell.as_str()), (1001, 100, "/bin/sh"));
        assert_eq!(account.home, Path::new("/home/ann"));
        for line in ["", "ann", "ann:x:one:100::/:/bin/sh", "ann:x:1:1:/:/bin/sh"] {
            assert_eq!(Account::parse(line), None, "{line}");
        }
    }

    #[test]
    fn root_and_users_without_a_home_of_their_own_are_refused() {
        let account = |line: &str| Account::parse(line).unwrap().check().unwrap_err();
        assert!(account("toor:x:0:0::/:/bin/sh").reason.contains("is root"));
        let why = account("ann:x:64321:64321::/nonexistent/ann:/bin/sh");
        assert!(why.reason.contains("no home directory"), "{why:?}");
        assert!(why.remedy.unwrap().contains("/nonexistent/ann"));
        assert!(account("ann:x:64321:64321::/:/bin/sh").reason.contains("belongs to another user"));
    }

    #[test]
    fn the_search_path_is_that_of_ordinary_users() {
        let definitions = "# ENV_PATH x\nENV_SUPATH\tPATH=/sbin\nENV_PATH  \tPATH=/a:/b\n";
        assert_eq!(search_path(definitions), "PATH=/a:/b");
        assert_eq!(search_path("ENV_PATH /c"), "PATH=/c");
        assert_eq!(search_path(""), "PATH=/usr/local/bin:/usr/bin:/bin");
    }
}
