//! The probe's message, parsed on the host. It came through an engine, so it is not trusted until it is
//! complete: version, every line, and the end.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use dunnage_launch::message::{LIMIT_FILES, MAGIC, NAMESPACES};
use serde::de::DeserializeOwned;
use thiserror::Error;

use super::inherited::Inherited;
use crate::outcome::{Failure, FailureClass};
use crate::units::{Nanos, Stamp};

/// Why bytes are not a message of the probe.
#[derive(Debug, Error, PartialEq, Eq)]
#[error("{0}")]
pub struct NotAMessage(String);

impl NotAMessage {
    /// An unknown or malformed line, or a required line is missing.
    fn invalid(what: &str) -> NotAMessage {
        NotAMessage(format!("the probe's message has no valid `{what}`"))
    }
}

/// The probe's message.
#[derive(Debug, Clone, PartialEq)]
pub struct Message {
    /// At the ELF entry, before libc.
    pub entry: Stamp,
    /// At `main`, after libc's start, if libc was started.
    pub main: Option<Stamp>,
    /// When the treatment had been read back, right before the message was written.
    pub ready: Stamp,
    /// What it read back about itself.
    pub inside: Inside,
    /// The answer to its order in JSON; empty if it had none.
    pub answer: String,
    /// What the host saw meanwhile of a program that the probe started.
    pub seen: Seen,
}

/// What the host saw of a program's output.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Seen {
    /// The last of what it wrote to standard error.
    pub said: String,
    /// Bytes of its standard output.
    pub written: Option<u64>,
    /// When the line came that was waited for.
    pub came: Option<Stamp>,
}

impl Message {
    /// The answer to its order. Why it was not carried out is a failure.
    pub fn answer<T: DeserializeOwned>(&self) -> Result<T, Failure> {
        let read = serde_json::from_str::<Result<T, Failure>>(&self.answer);
        read.map_err(|error| {
            let reason = format!("the probe's answer cannot be read: {error}");
            Failure::new(FailureClass::WrongOutput, reason).with_words(self.answer.as_bytes())
        })?
    }
}

/// What a process sees of its own isolation.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Inside {
    /// Effective user id.
    pub uid: u64,
    /// Effective group id.
    pub gid: u64,
    /// `PR_GET_SECCOMP`: 0 none, 2 filter.
    pub seccomp: u64,
    /// `PR_GET_NO_NEW_PRIVS`.
    pub no_new_privs: u64,
    /// Effective capabilities as a bit set.
    pub capabilities: u64,
    /// Inode numbers of the namespaces, by the names of `/proc/self/ns`.
    pub namespaces: BTreeMap<String, u64>,
    /// Lines of `/proc/self/cgroup`; only in the first cgroup namespace.
    pub cgroup_path: Vec<String>,
    /// The cgroup directory that it sees under `/sys/fs/cgroup`, if any and if it is not in the initial cgroup
    /// namespace: a controller of the hierarchy in version 1, empty for version 2, and the inode number.
    pub cgroup_seen: Option<(String, u64)>,
    /// cgroups that contained a process before it; known only for the host.
    pub cgroups_in_use: BTreeSet<CgroupInUse>,
    /// Lines of `/proc/self/uid_map`; none in the first user namespace.
    pub uid_map: Vec<String>,
    /// Names of the network interfaces.
    pub interfaces: Vec<String>,
    /// Its host name, if it could be the short id of a container.
    pub host_name: Option<String>,
    /// The lines of `/proc/self/mountinfo` for the root and, if asked for, the files that engines add.
    pub mounts: Vec<String>,
    /// Limits of its cgroup, each as a file's name and first line; only if requested.
    pub limit_files: Vec<(String, String)>,
    /// What it inherited; only if requested.
    pub inherited: Option<Inherited>,
    /// The signals that process 1 blocks, as a bit set; only if requested and readable.
    pub blocked_by_init: Option<u64>,
}

/// A cgroup that contains a process, as seen from the host.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct CgroupInUse {
    /// A controller of version 1, empty for version 2.
    pub controller: String,
    /// Its path, as in `/proc/self/cgroup`.
    pub path: String,
    /// The inode number of its directory.
    pub inode: u64,
}

/// Limits that a subject asks for, or limits of the probe's own cgroup.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Limits {
    /// CPUs.
    pub cpus: Option<f64>,
    /// CPU time that may be saved up; `None` where the kernel has no bursts.
    pub burst: Option<Nanos>,
    /// Bytes of memory.
    pub memory: Option<u64>,
    /// Processes and threads; the probe does not report them.
    pub pids: Option<u64>,
}

fn excerpt(bytes: &[u8]) -> String {
    let text: String = String::from_utf8_lossy(bytes).chars().take(60).collect();
    text.escape_debug().to_string()
}

/// The name of the socket in the directory of a channel.
pub(crate) const SOCKET: &str = "socket";

/// The last line, with the end of the previous one.
/// Why an empty output is no message.
pub const NOTHING: &str = "the probe wrote nothing to standard output";

const END: &[u8] = b"\nend\n";

/// The number of bytes of the first message in `bytes`, if it is complete.
pub(crate) fn length(bytes: &[u8]) -> Option<usize> {
    bytes.windows(END.len()).position(|window| window == END).map(|at| at + END.len())
}

/// Parses a message that must occupy all of `bytes`.
pub fn parse(bytes: &[u8]) -> Result<Message, NotAMessage> {
    let mut lines = Lines::read(bytes)?;
    let (entry, main) = (Stamp(lines.take("entry")?), lines.numbers.remove("main").map(Stamp));
    let ready = Stamp(lines.take("ready")?);
    let facts = Inside {
        uid: lines.take("uid")?,
        gid: lines.take("gid")?,
        seccomp: lines.take("seccomp")?,
        no_new_privs: lines.take("no_new_privs")?,
        capabilities: lines.take("capabilities")?,
        ..lines.inside
    };
    let is_namespace = |name: &str| NAMESPACES.iter().any(|(own, _)| *own == name);
    if let Some(unknown) = lines.numbers.keys().find(|name| !is_namespace(name)) {
        return Err(NotAMessage::invalid(&excerpt(unknown.as_bytes())));
    }
    Ok(Message {
        entry,
        main,
        ready,
        inside: Inside { namespaces: lines.numbers, ..facts },
        answer: lines.answer,
        seen: Seen::default(),
    })
}

/// The parsed lines: numbers by name, and lines with a special form.
#[derive(Default)]
struct Lines {
    numbers: BTreeMap<String, u64>,
    inside: Inside,
    answer: String,
}

impl Lines {
    fn read(bytes: &[u8]) -> Result<Lines, NotAMessage> {
        let mut lines = Lines::default();
        for line in body(bytes)?.lines() {
            let (name, rest) =
                line.split_once(' ').ok_or_else(|| NotAMessage::invalid(&excerpt(line.as_bytes())))?;
            lines.add(name, rest).ok_or_else(|| NotAMessage::invalid(name))?;
        }
        Ok(lines)
    }

    /// `None` if the line is malformed.
    fn add(&mut self, name: &str, rest: &str) -> Option<()> {
        let Lines { numbers, inside, answer } = self;
        match name {
            "answer" => *answer = rest.to_owned(),
            "cgroup_path" => inside.cgroup_path.push(rest.to_owned()),
            "uid_map" => inside.uid_map.push(rest.split_whitespace().collect::<Vec<_>>().join(" ")),
            "mounts" => inside.mounts.push(rest.to_owned()),
            "interfaces" => inside.interfaces.push(rest.to_owned()),
            "host_name" => inside.host_name = Some(rest.to_owned()),
            "init" => {
                let digits = rest.strip_prefix("SigBlk:")?.trim();
                inside.blocked_by_init = Some(u64::from_str_radix(digits, 16).ok()?);
            }
            _ if LIMIT_FILES.iter().any(|(file, ..)| *file == name) => {
                inside.limit_files.push((name.to_owned(), rest.to_owned()));
            }
            _ if is_inherited(name) => {
                inside.inherited.get_or_insert_default().add(name, rest).filter(|is_known| *is_known)?;
            }
            _ => match name.strip_prefix("cgroup_inode.") {
                Some(controller) => inside.cgroup_seen = Some((controller.to_owned(), rest.parse().ok()?)),
                None => drop(numbers.insert(name.to_owned(), rest.parse().ok()?)),
            },
        }
        Some(())
    }

    fn take(&mut self, name: &str) -> Result<u64, NotAMessage> {
        self.numbers.remove(name).ok_or_else(|| NotAMessage::invalid(name))
    }
}

/// Whether a line is about something inherited.
fn is_inherited(name: &str) -> bool {
    Inherited::default().add(name, "") != Some(false)
}

/// The lines between the first and the last.
fn body(bytes: &[u8]) -> Result<Cow<'_, str>, NotAMessage> {
    let not = |why: String| Err(NotAMessage(why));
    if bytes.is_empty() {
        return not(NOTHING.into());
    }
    let magic = format!("{MAGIC}\n");
    let Some(body) = bytes.strip_prefix(magic.as_bytes()) else {
        let begin = excerpt(bytes);
        return not(format!("standard output begins with `{begin}`, not with the probe's message"));
    };
    let Some(length) = length(body) else {
        return not(format!("the probe's message is cut off after {} bytes", bytes.len()));
    };
    let trailing = &body[length..];
    if !trailing.is_empty() {
        let begin = excerpt(trailing);
        return not(format!("standard output continues after the probe's message: `{begin}`"));
    }
    Ok(String::from_utf8_lossy(&body[..length - END.len()]))
}

impl Inside {
    /// The limits of its cgroup, from the files of either version.
    pub fn limits(&self) -> Limits {
        let file =
            |name: &str| self.limit_files.iter().find(|(own, _)| own == name).map(|(_, line)| line.as_str());
        let number = |text: &str| text.parse::<f64>().ok().filter(|number| *number > 0.0);
        let quota = file("cpu.max")
            .and_then(|line| line.split_once(' '))
            .or_else(|| Some((file("cpu.cfs_quota_us")?, file("cpu.cfs_period_us")?)));
        Limits {
            cpus: quota.and_then(|(quota, period)| Some(number(quota)? / number(period)?)),
            burst: file("cpu.max.burst")
                .or_else(|| file("cpu.cfs_burst_us"))
                .and_then(|line| Some(Nanos(line.parse::<i64>().ok()? * 1000))),
            memory: file("memory.max")
                .or_else(|| file("memory.limit_in_bytes"))
                .and_then(|line| line.parse().ok()),
            pids: file("pids.max").and_then(|line| line.parse().ok()),
        }
    }

    /// The path of its cgroup in the hierarchy with this controller, as its cgroup namespace shows it.
    pub fn path_in(&self, controller: &str) -> Option<&str> {
        self.cgroup_path.iter().find_map(|line| {
            let (controllers, path) = line.split_once(':')?.1.split_once(':')?;
            controllers.split(',').any(|one| one == controller).then_some(path)
        })
    }

    /// Whether it runs on a separate kernel, inside which clocks and identities are that kernel's. Linux
    /// numbers all its namespaces, including the initial ones, upwards from right below 0xF0000000.
    pub fn has_own_kernel(&self) -> bool {
        const LOWEST: u64 = 0xEFFF_0000;
        !self.namespaces.is_empty() && self.namespaces.values().all(|inode| *inode < LOWEST)
    }

    /// Whether the first process of the container waits for SIGTERM, if process ids are private and its state
    /// can be read.
    pub fn awaits_term(&self) -> Option<bool> {
        Some(self.blocked_by_init? & 1 << (libc::SIGTERM - 1) != 0)
    }

    /// The mount of the root: filesystem type, and all options of mount and superblock.
    pub fn root(&self) -> Option<(String, String)> {
        let line = self.mounts.iter().rfind(|line| line.split(' ').nth(4) == Some("/"))?;
        let (mount, filesystem) = line.split_once(" - ")?;
        let options = mount.split(' ').nth(5)?;
        let mut filesystem = filesystem.splitn(3, ' ');
        let kind = filesystem.next()?.to_owned();
        let more = filesystem.nth(1)?;
        Some((kind, format!("{options},{more}")))
    }

    /// The engine's id of the container: the 64 hexadecimal digits in the source of a file mounted over
    /// `/etc`, or in the cgroup's path if that is visible; otherwise the first digits, its host name.
    pub fn container_id(&self) -> Option<String> {
        let whole = self.mounts.iter().filter(|line| line.contains(" /etc/")).chain(&self.cgroup_path);
        let of = |line: &String| {
            line.split(|c: char| !c.is_ascii_hexdigit()).find(|word| word.len() == 64).map(str::to_owned)
        };
        whole.filter_map(of).next().or_else(|| self.host_name.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WHOLE: &str = "dunnage-probe 2\nentry 10\nmain 20\nuid 0\ngid 0\nseccomp 2\nno_new_privs 1\ncapabilities 7\n\
        net 4026531840\ncgroup_path 4:memory:/docker/x\nuid_map          0          0 4294967295\n\
        interfaces lo\nmounts 1 0 0:5 / / rw,relatime - overlay overlay rw,upperdir=/u,volatile\nready 30\nend\n";

    #[test]
    fn a_whole_message_is_read() {
        let message = parse(WHOLE.as_bytes()).unwrap();
        assert_eq!((message.entry, message.main, message.ready), (Stamp(10), Some(Stamp(20)), Stamp(30)));
        assert_eq!(parse(WHOLE.replace("main 20\n", "").as_bytes()).unwrap().main, None);
        assert_eq!(message.inside.namespaces["net"], 4026531840);
        assert_eq!(message.inside.interfaces, ["lo"]);
        assert_eq!(message.inside.uid_map, ["0 0 4294967295"]);
        let (kind, options) = message.inside.root().unwrap();
        assert_eq!((kind.as_str(), options.ends_with("volatile")), ("overlay", true));
    }

    #[test]
    fn a_number_without_a_known_name_is_no_namespace() {
        let unknown = WHOLE.replace("ready 30", "answers 42\nready 30");
        assert_eq!(parse(unknown.as_bytes()), Err(NotAMessage::invalid("answers")));
    }

    #[test]
    fn the_answer_to_an_order_is_read_and_what_is_none_is_a_failure() {
        let told = |line: &str| {
            let with = WHOLE.replace("ready 30", &format!("{line}\nready 30"));
            parse(with.as_bytes()).unwrap().answer::<(u32, String)>()
        };
        assert_eq!(told(r#"answer {"Ok":[3,"a b"]}"#), Ok((3, "a b".to_owned())));
        let failed = told(r#"answer {"Err":{"class":"unsupported","reason":"no clock","took":0}}"#);
        assert_eq!(failed, Err(Failure::new(FailureClass::Unsupported, "no clock")));
        for wrong in [r#"answer {"Ok":[-3,""]}"#, "answer 42", "main 20"] {
            assert_eq!(told(wrong).unwrap_err().class, FailureClass::WrongOutput, "{wrong}");
        }
    }

    #[test]
    fn every_proper_prefix_is_refused() {
        for length in 0..WHOLE.len() {
            assert!(parse(&WHOLE.as_bytes()[..length]).is_err(), "{length} bytes were accepted");
        }
    }

    #[test]
    fn what_is_not_a_message_is_named() {
        let told = |bytes: &[u8]| parse(bytes).unwrap_err().to_string();
        assert!(told(b"WARN x").contains("begins with `WARN x`, not with the probe's message"));
        assert!(
            told(b"").contains("wrote nothing") && told(&WHOLE.as_bytes()[..50]).contains("after 50 bytes")
        );
        let trailing = format!("{WHOLE}bye");
        assert!(told(trailing.as_bytes()).ends_with("after the probe's message: `bye`"));
        let without = WHOLE.replace("entry 10\n", "");
        assert_eq!(parse(without.as_bytes()), Err(NotAMessage::invalid("entry")));
        let nonsense = WHOLE.replace("main 20", "main soon");
        assert_eq!(parse(nonsense.as_bytes()), Err(NotAMessage::invalid("main")));
    }

    #[test]
    fn the_mask_of_the_first_process_is_read() {
        let with = |line: &str| parse(WHOLE.replace("ready 30", &format!("{line}\nready 30")).as_bytes());
        let waiting = with("init SigBlk:\t0000000000004000").unwrap().inside;
        assert_eq!(waiting.awaits_term(), Some(true));
        assert_eq!(with("init SigBlk:\t0000000000000000").unwrap().inside.awaits_term(), Some(false));
        assert_eq!(parse(WHOLE.as_bytes()).unwrap().inside.awaits_term(), None);
        assert_eq!(with("init SigBlk:\tmuch"), Err(NotAMessage::invalid("init")));
    }

    #[test]
    fn the_cgroup_that_is_seen_is_read() {
        let with = |line: &str| parse(WHOLE.replace("ready 30", &format!("{line}\nready 30")).as_bytes());
        let first = with("cgroup_inode.pids 77").unwrap().inside;
        assert_eq!(first.cgroup_seen, Some(("pids".into(), 77)));
        assert_eq!(with("cgroup_inode. 5").unwrap().inside.cgroup_seen, Some((String::new(), 5)));
        assert_eq!(with("cgroup_inode.pids x"), Err(NotAMessage::invalid("cgroup_inode.pids")));
        assert_eq!(parse(WHOLE.as_bytes()).unwrap().inside.cgroup_seen, None);
        assert_eq!((first.path_in("memory"), first.path_in("pids")), (Some("/docker/x"), None));
        let second = Inside { cgroup_path: vec!["0::/a:b".into()], ..Inside::default() };
        assert_eq!((second.path_in(""), second.path_in("memory")), (Some("/a:b"), None));
    }

    #[test]
    fn limits_are_read_from_either_version_of_cgroups() {
        let view = |files: &[(&str, &str)]| Inside {
            limit_files: files.iter().map(|(name, line)| ((*name).into(), (*line).into())).collect(),
            ..Inside::default()
        };
        let second = view(&[("cpu.max", "50000 100000"), ("memory.max", "67108864")]).limits();
        assert_eq!(second, Limits { cpus: Some(0.5), memory: Some(64 << 20), ..Limits::default() });
        let first =
            [("cpu.cfs_quota_us", "10000"), ("cpu.cfs_period_us", "100000"), ("cpu.cfs_burst_us", "50")];
        assert_eq!(
            view(&first).limits(),
            Limits { cpus: Some(0.1), burst: Some(Nanos(50_000)), ..Limits::default() }
        );
        assert_eq!(view(&[("cpu.max.burst", "0")]).limits().burst, Some(Nanos(0)));
        assert_eq!(
            view(&[("cpu.cfs_quota_us", "-1"), ("cpu.cfs_period_us", "100000")]).limits(),
            Limits::default()
        );
        assert_eq!(view(&[("cpu.max", "max 100000"), ("memory.max", "max")]).limits(), Limits::default());
    }

    #[test]
    fn the_container_is_known_by_the_files_that_its_engine_added_and_by_its_host_name() {
        let id = "a1".repeat(32);
        let mounts =
            vec![format!("9 1 8:1 /var/lib/docker/containers/{id}/hosts /etc/hosts rw - ext4 /dev/vda rw")];
        let named = Inside { mounts, host_name: Some("0123456789ab".into()), ..Inside::default() };
        assert_eq!(named.container_id(), Some(id));
        assert_eq!(Inside { mounts: vec![], ..named }.container_id().as_deref(), Some("0123456789ab"));
        assert_eq!(Inside::default().container_id(), None);
    }
}
