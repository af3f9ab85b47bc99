//! Makes the release archive: the stripped static executable, manual pages, completions and licences, with a file of checksums
//! next to it. The same executable gives the same bytes: names are sorted, and owners, modes and times are fixed.
//!
//! Deliberately absent: a reproducible executable, which depends on the compiler (same checkout, same path, same toolchain).

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};

use anyhow::{Context, Result, ensure};

use crate::cargo::cargo;

const NAME: &str = concat!("dunnage-", env!("CARGO_PKG_VERSION"), "-x86_64-linux");
/// Shells with the file names that they expect for completions.
const COMPLETIONS: [(&str, &str); 3] =
    [("bash", "dunnage.bash"), ("zsh", "_dunnage"), ("fish", "dunnage.fish")];
const TEXTS: [&str; 5] = ["README.md", "METHODOLOGY.md", "CHANGELOG.md", "LICENSE-APACHE", "LICENSE-MIT"];

/// Builds the executable as a user would, checks it, and makes the archive.
pub fn run() -> Result<ExitCode> {
    let place = root().join("target/dist");
    let built = install().args(["--force", "--no-track", "--root"]).arg(&place).status();
    ensure!(built.context("cannot run `cargo install`")?.success(), "`cargo install` failed");
    let executable = place.join("bin/dunnage");
    check(&executable)?;
    let archive = make(&executable, &place, &epoch())?;
    println!("{}", archive.display());
    Ok(ExitCode::SUCCESS)
}

/// The documented command.
fn install() -> Command {
    let mut command = cargo();
    command.args(["install", "--path", ".", "--locked"]).current_dir(root());
    command
}

/// An error unless the executable needs no loader, and is of this version.
fn check(executable: &Path) -> Result<()> {
    ensure!(is_static(executable)?, "`{}` is not a static executable", executable.display());
    let version = output(Command::new(executable).arg("--version"))?;
    let expected = concat!("dunnage ", env!("CARGO_PKG_VERSION"), "\n");
    ensure!(version == expected.as_bytes(), "`{}` is not {expected}", executable.display());
    Ok(())
}

fn is_static(executable: &Path) -> Result<bool> {
    let segments = output(Command::new("readelf").args(["--program-headers", "--wide"]).arg(executable))?;
    let segments = String::from_utf8_lossy(&segments);
    Ok(segments.contains("LOAD") && !segments.contains("INTERP"))
}

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the workspace")
}

/// The time of all files in the archive, in seconds since 1970: `SOURCE_DATE_EPOCH`, or that of the last commit.
fn epoch() -> String {
    let commit = || output(Command::new("git").args(["log", "-1", "--format=%ct"]).current_dir(root()));
    let asked = std::env::var("SOURCE_DATE_EPOCH").ok();
    let text = asked.or_else(|| String::from_utf8(commit().ok()?).ok()).unwrap_or_default();
    if text.trim().is_empty() { "0".to_owned() } else { text.trim().to_owned() }
}

/// Makes the archive of this executable, and the checksums next to it.
fn make(executable: &Path, place: &Path, epoch: &str) -> Result<PathBuf> {
    let stage = place.join(NAME);
    let _ = fs::remove_dir_all(&stage);
    fill(executable, &stage)?;
    let archive = place.join(format!("{NAME}.tar.gz"));
    let tar = output(
        Command::new("tar")
            .args(["--create", "--format=ustar", "--sort=name", "--owner=0", "--group=0", "--numeric-owner"])
            .args(["--mode=u=rwX,go=rX", &format!("--mtime=@{epoch}"), "--directory"])
            .arg(place)
            .arg(NAME),
    )?;
    let plain = archive.with_extension("");
    fs::write(&plain, tar).context("cannot write the archive")?;
    fs::write(&archive, output(Command::new("gzip").args(["-9", "--no-name", "--stdout"]).arg(&plain))?)?;
    fs::remove_file(&plain)?;
    let name = archive.file_name().context("a name")?;
    fs::write(place.join("SHA256SUMS"), output(Command::new("sha256sum").arg(name).current_dir(place))?)?;
    Ok(archive)
}

fn fill(executable: &Path, stage: &Path) -> Result<()> {
    let [man, completions] = ["share/man/man1", "share/completions"].map(|name| stage.join(name));
    for directory in [&man, &completions] {
        fs::create_dir_all(directory).with_context(|| format!("cannot create `{}`", directory.display()))?;
    }
    let own = stage.join("dunnage");
    fs::copy(executable, &own).with_context(|| format!("cannot copy `{}`", executable.display()))?;
    output(Command::new("strip").arg("--strip-all").arg(&own))?;
    fs::set_permissions(&own, fs::Permissions::from_mode(0o755))?;
    for (shell, name) in COMPLETIONS {
        fs::write(completions.join(name), output(Command::new(&own).args(["completions", shell]))?)?;
    }
    for page in fs::read_dir(root().join("docs/man")).context("no manual pages")? {
        let page = page?;
        fs::copy(page.path(), man.join(page.file_name()))?;
    }
    for text in TEXTS {
        fs::copy(root().join(text), stage.join(text)).with_context(|| format!("no `{text}`"))?;
    }
    Ok(())
}

/// The standard output of a command, which must succeed.
fn output(command: &mut Command) -> Result<Vec<u8>> {
    let program = command.get_program().to_string_lossy().into_owned();
    let done = command.env("LC_ALL", "C").stdin(Stdio::null()).stderr(Stdio::inherit()).output();
    let done = done.with_context(|| format!("cannot run `{program}`"))?;
    ensure!(done.status.success(), "`{program}`: {}", done.status);
    Ok(done.stdout)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fresh(name: &str) -> PathBuf {
        let place = std::env::temp_dir().join(format!("dunnage-{name}-{}", std::process::id()));
        fs::create_dir_all(&place).unwrap();
        place
    }

    /// `cargo install` would compile the same as a plain build, and link it statically. Nothing is compiled: a wrapper writes
    /// the command lines of rustc to a file and fails.
    #[test]
    fn cargo_installs_the_static_executable_of_a_plain_build() {
        let place = fresh("install");
        let wrapper = place.join("wrapper");
        let script = "#!/bin/sh\ncase \"$*\" in *'--crate-name ___ '* | *' -vV'*) exec \"$@\" ;; esac\n\
                      echo \"$*\" >>\"$RECORD\"\nexit 1\n";
        fs::write(&wrapper, script).unwrap();
        fs::set_permissions(&wrapper, fs::Permissions::from_mode(0o755)).unwrap();
        let compiled = |name: &str, command: &mut Command| {
            let record = place.join(name);
            command
                .args(["--offline", "--keep-going", "--jobs", "1", "--target-dir"])
                .arg(place.join("target"));
            command.env("RUSTC_WRAPPER", &wrapper).env("RECORD", &record);
            command.env_remove("RUSTFLAGS").env_remove("CARGO_ENCODED_RUSTFLAGS");
            let done = command.output().unwrap();
            let told = String::from_utf8_lossy(&done.stderr).into_owned();
            let mut lines: Vec<String> =
                fs::read_to_string(record).expect(&told).lines().map(str::to_owned).collect();
            lines.sort();
            lines
        };
        let installed = compiled("install", install().arg("--root").arg(&place));
        let mut plain = cargo();
        plain.args(["build", "--release", "--locked"]).current_dir(root());
        assert_eq!(installed, compiled("build", &mut plain));
        // Build scripts and procedural macros run on the machine that compiles, and have no target.
        let mut targets = installed.iter().filter(|line| line.contains(" --target x86_64-")).peekable();
        let flags = "-C target-feature=+crt-static -C relocation-model=static";
        assert!(targets.peek().is_some());
        assert_eq!(targets.find(|line| !line.ends_with(flags)), None);
        fs::remove_dir_all(&place).unwrap();
    }

    #[test]
    fn static_executables_are_recognised() {
        let own = std::env::current_exe().unwrap();
        assert!(is_static(&own).unwrap() && !is_static(Path::new("/bin/sh")).unwrap());
        assert!(check(Path::new("/bin/sh")).is_err());
    }

    /// Works with any executable that accepts `completions`.
    #[test]
    fn one_executable_gives_one_archive_whenever_it_is_made() {
        let place = fresh("dist");
        let made =
            [("one", "/bin/echo"), ("two", "/bin/echo"), ("other", "/bin/true")].map(|(name, executable)| {
                let place = place.join(name);
                fs::create_dir_all(&place).unwrap();
                let archive = make(Path::new(executable), &place, "1700000000").unwrap();
                let sums = fs::read_to_string(place.join("SHA256SUMS")).unwrap();
                assert!(sums.ends_with(&format!("  {NAME}.tar.gz\n")), "{sums}");
                if name == "one" {
                    // So that the next one has another time.
                    std::thread::sleep(std::time::Duration::from_millis(1100));
                }
                (fs::read(&archive).unwrap(), archive)
            });
        let [one, two, other] = &made;
        assert!(one.0 == two.0 && one.0 != other.0);
        let listed = output(Command::new("tar").arg("--list").arg("--file").arg(&one.1)).unwrap();
        let listed = String::from_utf8(listed).unwrap();
        for name in ["dunnage", "share/man/man1/dunnage-run.1", "share/completions/_dunnage", "LICENSE-MIT"] {
            assert!(listed.lines().any(|line| line == format!("{NAME}/{name}")), "{name}: {listed}");
        }
        fs::remove_dir_all(&place).unwrap();
    }
}
