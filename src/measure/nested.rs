//! `nested`: an outer container in which an engine is started, and what it starts; with the same outside.

mod build;
mod store;

use std::fs;
use std::io::BufWriter;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use dunnage_orders::work::{Execute, Executed};

use super::{Stamps, sample_of};
use crate::experiment::Setting;
use crate::experiment::command::line;
use crate::experiment::nested::{DOES, INSIDE, SIBLING, names};
use crate::image::{EXECUTABLE, Image};
use crate::outcome::{Abort, Failure, FailureClass, OrEnvironment, Sample};
use crate::probe::Task;
use crate::resource::journal::Entry;
use crate::resource::{Found as Removed, Held};
use crate::subject::nested::{self, Inner, Way};
use crate::subject::{Container, ContainerRequest, Entrypoint, RunContext, Subject};
use crate::sys::process;
use crate::units::Nanos;

/// Why a start counts neither as inside nor as a sibling.
const UNPROVEN: &str = "what it started runs on this machine, but not below the outer container's first process, and the engine outside \
                        does not know it: where process ids are the host's, depth cannot be shown";
/// Starts inside, and outside.
const STARTS: usize = 3;
/// How long a daemon inside may take to answer, and everything else.
const READY: Nanos = Nanos::from_millis(20_000);
const ALLOWED: Nanos = Nanos::from_millis(30_000);
/// How long a process may take to be seen after its start has returned.
const SEEN: Nanos = Nanos::from_millis(2_000);
const LOOK: Nanos = Nanos::from_millis(20);

/// Opens for writing what belongs to the host, without writing anything, and says what could be opened. Mounts are the container's own; a
/// hierarchy of version 1 is mounted only where there is one already.
const OPENS: &str = "mkdir -p /tmp/own\n\
    { ( : >>/proc/sys/kernel/core_pattern ) || { mount -t proc none /tmp/own && ( : >>/tmp/own/sys/kernel/core_pattern ); }; } 2>/dev/null && \
    echo core_pattern\n\
    umount /tmp/own 2>/dev/null\n\
    while read name hierarchy rest; do [ $name = memory ] && [ $hierarchy != 0 ] && version=1; done </proc/cgroups\n\
    [ \"$version\" = 1 ] && mount -t cgroup -o memory none /tmp/own 2>/dev/null && {\n\
    ( : >>/tmp/own/release_agent ) 2>/dev/null && echo release_agent\n\
    umount /tmp/own; }\n\
    for disk in /dev/*; do [ -b $disk ] && ( : >>$disk ) 2>/dev/null && echo $disk && break; done\n\
    true";
/// Counts device files, and those of disks.
const DEVICES: &str = "all=0 disks=0\n\
    for own in /dev/* /dev/*/*; do [ -L $own ] && continue; [ -c $own ] && all=$((all + 1)); [ -b $own ] && all=$((all + 1)) disks=$((disks + 1)); done\n\
    echo $all $disks";
/// The end of what a daemon inside has said.
const LAST_WORDS: &str = "tail -n 3 /tmp/daemon.log";
/// Characters of a fact, and of a program's last words.
const FACT: usize = 200;
const WORDS: usize = 2000;

/// Takes a sample.
pub fn measure(subject: &mut dyn Subject, setting: &Setting, run: &RunContext) -> Result<Sample, Abort> {
    let subject = &*subject;
    let spec = subject.about().spec.clone();
    let way = nested::way(&spec, setting.get("way").unwrap_or_default())?;
    let own = setting.get("options").map(line::split).transpose();
    let own = own.map_err(|why| Failure::new(FailureClass::Unsupported, why))?.unwrap_or_default();
    let mut sample = sample_of(Stamps::new(), &[]);
    sample.add(names::OUTER, outside(subject, way, run)?);
    sample.add(names::ASKED, way.asked(&own));
    sample.add(names::INSTEAD, way.instead.to_owned());
    let bound = Bound::make(subject, (way, &own), run)?;
    match Nest::begin(subject, way, bound, run) {
        Ok(mut nest) => {
            let does = setting.get(DOES).unwrap_or("start");
            let tried = nest.tried(does, &mut sample);
            // What ended it is not what was asked, and what it did in its last moments is no answer either.
            if nest.has_ended() {
                const ENDED: &str = "the outer container ended while the engine in it was tried";
                return Err(match tried {
                    Err(Abort::Failed(why)) => {
                        Failure { class: FailureClass::Crash, reason: ENDED.to_owned(), ..why }.into()
                    }
                    Err(abort) => abort,
                    Ok(()) => Failure::new(FailureClass::Crash, ENDED).into(),
                });
            }
            match tried {
                Err(Abort::Failed(why)) => refuse(&mut sample, known(why)),
                tried => tried?,
            }
            nest.end()?;
        }
        Err(Abort::Failed(why)) => {
            let told = known(why);
            // What is wrong with the user's own options is no answer, and neither is what the engine outside cannot do any more.
            if way.is_users() && told.0.class == FailureClass::Crash {
                return Err(told.0.into());
            }
            Container::run(subject, &ContainerRequest::default(), run)?.end()?;
            refuse(&mut sample, told);
        }
        Err(abort) => return Err(abort),
    }
    Ok(sample)
}

/// A way that does not work is an answer.
fn refuse(sample: &mut Sample, (told, remedy): (Failure, Option<&'static str>)) {
    sample.add(names::REFUSED, told.in_short().replace('\n', " "));
    sample.extend(remedy.map(|remedy| (names::REMEDY, remedy.to_owned())));
}

/// A failure with what is known of its words, and what helps.
fn known(failure: Failure) -> (Failure, Option<&'static str>) {
    let said = failure.words.as_deref().filter(|words| !words.is_empty());
    let (known, remedy) = nested::explained(&failure.reason, said.unwrap_or(&failure.reason));
    let class = if known.class == FailureClass::Crash { failure.class } else { known.class };
    let words = said.and(known.words);
    (Failure { class, words, ..failure }, remedy)
}

/// What starts of the same kind take outside.
fn outside(subject: &dyn Subject, way: &Way, run: &RunContext) -> Result<Vec<i64>, Abort> {
    let request = ContainerRequest { options: way.outside(), ..ContainerRequest::default() };
    let one = |_| {
        let container = Container::run(subject, &request, run)?;
        let took = container.created().took().0;
        container.end()?;
        Ok(took)
    };
    (0..STARTS).map(one).collect()
}

/// An outer container.
struct Nest<'a> {
    subject: &'a dyn Subject,
    way: &'static Way,
    run: &'a RunContext,
    outer: Container<'a>,
    /// Its first process.
    first: i32,
    /// Bound into it.
    bound: Bound,
}

/// What is bound into an outer container, and how that is asked for.
struct Bound {
    request: ContainerRequest,
    image: String,
    _held: (Held<PathBuf>, Held<PathBuf>),
}

impl Bound {
    fn make(
        subject: &dyn Subject,
        (way, own): (&'static Way, &[String]),
        run: &RunContext,
    ) -> Result<Bound, Abort> {
        let bytes = fs::read(&run.place.executable)
            .or_environment(format_args!("cannot read `{}`", run.place.executable.display()))?;
        let image = Image::small(&bytes);
        let directory = run.empty_directory()?;
        let archive = directory.join("image.tar");
        let write = || {
            let mut file = BufWriter::new(fs::File::create(&archive)?);
            image.write_archive(&mut file, &|| !run.interrupts.pending())?;
            std::io::Write::flush(&mut file)?;
            // An ordinary user inside must be able to read it too.
            fs::set_permissions(&archive, fs::Permissions::from_mode(0o644))
        };
        match write() {
            Err(_) if run.interrupts.asked() => return Err(Abort::Interrupted),
            written => written.or_environment(format_args!("cannot write `{}`", archive.display()))?,
        }
        let (request, files) = way.outer(&subject.about().spec, &archive, own, run)?;
        Ok(Bound { request, image: image.reference, _held: (directory, files) })
    }
}

/// An inner container that the engine outside keeps goes with this.
struct Noted<'a> {
    subject: &'a dyn Subject,
    run: &'a RunContext,
    name: String,
    entry: Option<Entry>,
    /// Whether its start has ended, so that it cannot appear any more.
    is_over: bool,
}

impl Drop for Noted<'_> {
    fn drop(&mut self) {
        let Some(entry) = self.entry.take() else { return };
        match self.subject.remove(&self.name) {
            Ok(Removed::Yes) => self.run.cross_out(entry),
            Ok(Removed::No) if self.is_over => self.run.cross_out(entry),
            _ => {}
        }
    }
}

impl<'a> Nest<'a> {
    fn begin(
        subject: &'a dyn Subject,
        way: &'static Way,
        bound: Bound,
        run: &'a RunContext,
    ) -> Result<Nest<'a>, Abort> {
        let mut outer = Container::run(subject, &bound.request, run).map_err(|abort| match abort {
            // Its command is as long as what is bound into it.
            Abort::Failed(why) => {
                Failure { reason: "the outer container does not start".to_owned(), ..why }.into()
            }
            abort => abort,
        })?;
        outer.ready()?;
        let first = init_of(outer.first_process()?);
        let mut nest = Nest { subject, way, run, outer, first, bound };
        if nested::has_image(&subject.about().spec) {
            let engine = nest.script("the image has no engine", nested::ENGINE, ALLOWED)?;
            nest.way = way.with_engine_of(engine.output.trim());
        }
        Ok(nest)
    }

    /// Does this inside.
    fn execute(&mut self, step: &str, words: Vec<String>, allowed: Nanos) -> Result<Executed, Abort> {
        let spec = &self.subject.about().spec;
        let (inherits, variables) = (self.way.inherits(spec), self.way.variables(spec));
        let silence = self.way.silence(&words);
        let done = self.outer.ask(Execute { inherits, variables, words, allowed }, allowed)?.done;
        if done.timed_out {
            let silence = silence.filter(|_| said(&done).is_empty());
            let silence = silence.map(|why| format!(", with {why}")).unwrap_or_default();
            let reason = format!("{step}: no end in {allowed}{silence}");
            return Err(Failure::new(FailureClass::Timeout, reason).with_words(said(&done)).into());
        }
        match done.code {
            Some(0) => Ok(done),
            _ => Err(Failure::new(FailureClass::Crash, step).with_words(said(&done)).into()),
        }
    }

    fn script(&mut self, step: &str, script: &str, allowed: Nanos) -> Result<Executed, Abort> {
        self.execute(step, ["/bin/sh", "-c", script].map(str::to_owned).to_vec(), allowed)
    }

    /// Starts an engine and containers inside, and adds what is found out to the sample.
    fn tried(&mut self, does: &str, sample: &mut Sample) -> Result<(), Abort> {
        let first = self.first;
        confine(first, sample)?;
        if self.way.is_users() {
            sample.extend(bound_writable(first).map(|bound| (names::BOUND, bound)));
        }
        let opens = self.script("nothing can be opened", OPENS, ALLOWED)?;
        sample.add(names::OPENS, fact(&opens.output.split_whitespace().collect::<Vec<_>>().join(", ")));
        let begun = match self.script("the inner engine does not start", &self.way.begin(), READY) {
            Err(Abort::Failed(why)) if why.class == FailureClass::Timeout => {
                let last = self.script("it has said nothing", LAST_WORDS, ALLOWED);
                let last = last.map(|last| last.output).unwrap_or_default();
                return Err(why.with_words(last.as_bytes()).into());
            }
            begun => begun?,
        };
        sample.add(names::READY, begun.ended.since(begun.began).0);
        let devices = self.script("devices cannot be listed", DEVICES, ALLOWED)?;
        let counts: Vec<i64> = devices.output.split_whitespace().filter_map(|own| own.parse().ok()).collect();
        // An image of the user's may have a shell that says anything.
        if let [all, disks] = counts[..]
            && (0..=all).contains(&disks)
        {
            sample.extend([(names::DEVICES, all), (names::DISKS, disks)]);
        }
        if let Some(words) = self.way.load() {
            let loaded = self.execute("the inner engine loads no image", words, ALLOWED)?;
            sample.add(names::LOADED, loaded.ended.since(loaded.began).0);
        }
        let mut took = Vec::new();
        let mut last = None;
        for start in 1..=STARTS {
            let (nanos, found) = self.started(first, (start == STARTS).then_some(&mut *sample))?;
            took.push(nanos);
            last = Some(found);
        }
        let place = last.as_ref().map_or(INSIDE, |last| last.place);
        let driver = self.execute("the inner engine says nothing of itself", self.way.driver(), ALLOWED)?;
        if let Some(found) = last {
            sample.add(names::DEPTH, found.depth);
            sample.add(names::PLACE, found.place.to_owned());
            sample.add(names::CGROUP, found.cgroup.to_owned());
        }
        sample.add(names::DRIVER, fact(driver.output.trim()));
        sample.add(names::INNER, took);
        if does != "start" {
            match self.built(does, place, first) {
                Ok(()) => sample.add(names::BUILT, "yes".to_owned()),
                Err(Abort::Failed(why)) => {
                    let (why, remedy) = known(why);
                    let remedy = remedy.map(|remedy| format!(" – {remedy}")).unwrap_or_default();
                    sample.add(names::BUILT, format!("no: {}{remedy}", fact(&why.in_short())));
                }
                Err(abort) => return Err(abort),
            }
        }
        Ok(())
    }

    /// How long a start inside takes, once it is proven that it is one; in the last one, files are written for the sample.
    fn started(&mut self, first: i32, sample: Option<&mut Sample>) -> Result<(i64, Found), Abort> {
        let name = self.run.next_name();
        let order = Entrypoint::Task(Task::Stay).words(None);
        let words = self.way.start(&name, &self.bound.image, &order, self.run);
        let entry = self.way.note(&self.subject.about().spec, &name, self.run)?;
        let (subject, run) = (self.subject, self.run);
        let mut noted = Noted { subject, run, name: name.clone(), entry, is_over: false };
        let done = self.execute("the inner start failed", words, ALLOWED);
        // A start that has ended makes nothing any more, whether it succeeded or not.
        noted.is_over = !matches!(&done, Err(Abort::Failed(why)) if why.class == FailureClass::Timeout);
        let done = done?;
        let found = self.found(&name, first)?;
        if let Some(sample) = sample {
            match self.stores(&name, &found, sample) {
                Err(Abort::Failed(why)) => sample.add(names::UNWRITTEN, fact(&why.in_short())),
                done => done?,
            }
        }
        self.execute("the inner container is not removed", self.way.remove(&name), ALLOWED)?;
        Ok((done.ended.since(done.began).0, found))
    }

    /// Finds the innermost process on the host.
    fn found(&self, name: &str, first: i32) -> Result<Found, Abort> {
        let mut left = SEEN.0;
        loop {
            if let Some(found) = Found::of(name, first, self.run) {
                // A way of the user's may share the host's process ids: only what the engine outside knows is its own.
                let is_known = || self.way.inner == Inner::Socket || self.subject.knows(name);
                return match found.place {
                    SIBLING if !is_known() => Err(Failure::new(FailureClass::Unsupported, UNPROVEN).into()),
                    _ => Ok(found),
                };
            }
            if left <= 0 {
                let reason =
                    "the inner start says that it succeeded, and no process of it is on this machine";
                return Err(Failure::new(FailureClass::WrongOutput, reason).into());
            }
            self.subject.machine().rest(self.run, LOOK)?;
            left -= LOOK.0;
        }
    }

    /// Whether the outer container has ended, or its first process is about to.
    fn has_ended(&self) -> bool {
        process::is_ending(self.first)
    }

    fn end(self) -> Result<(), Abort> {
        self.outer.end().map(drop)
    }
}

/// The end of what a program said that failed: its standard error, or what there is.
fn said(done: &Executed) -> &[u8] {
    let all = if done.errors.trim().is_empty() { done.output.as_bytes() } else { done.errors.as_bytes() };
    &all[all.len().saturating_sub(WORDS)..]
}

/// What a program inside said as a fact: one line that is not too long.
fn fact(text: &str) -> String {
    let all: Vec<char> = text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    // An engine's sentence ends with the cause.
    let end = all.len().saturating_sub(FACT * 2 / 3);
    let (head, tail) = if all.len() > FACT { (&all[..FACT / 3], &all[end..]) } else { (&all[..], &[][..]) };
    head.iter().chain(if tail.is_empty() { &[][..] } else { &[' ', '…', ' '] }).chain(tail).collect()
}

/// The numbers that a process has, from the outermost namespace to its own.
fn ids(pid: i32) -> Vec<i32> {
    let all = status(pid, "NSpid").unwrap_or_default();
    all.split_whitespace().filter_map(|own| own.parse().ok()).collect()
}

/// The first process of the process id namespace in which this one is, as far as it is above it: an engine may put one before the
/// program.
fn init_of(pid: i32) -> i32 {
    let all = process::parents(pid);
    let is_init = |one: &i32| ids(*one).len() == ids(pid).len() && ids(*one).last() == Some(&1) && *one != 1;
    if is_init(&pid) { pid } else { all.into_iter().find(is_init).unwrap_or(pid) }
}

/// A field of a process's status.
fn status(pid: i32, field: &str) -> Option<String> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix(field)?.strip_prefix(':'))?;
    Some(line.trim().to_owned())
}

/// Adds its effective capabilities as a hexadecimal number, its seccomp mode, its AppArmor profile where the kernel has any, and how
/// many paths of /proc are covered or read-only.
fn confine(pid: i32, sample: &mut Sample) -> Result<(), Failure> {
    let read = || {
        Some((
            status(pid, "CapEff")?,
            status(pid, "Seccomp")?,
            fs::read_to_string(format!("/proc/{pid}/mountinfo")).ok()?,
        ))
    };
    let none = || Failure::environment(format!("process {pid} has no status"));
    let (capabilities, filter, mounts) = read().ok_or_else(none)?;
    sample.extend([(names::CAPABILITIES, capabilities), (names::FILTER, filter)]);
    // Without such a module, there is no such file, or it cannot be read.
    let profile = fs::read_to_string(format!("/proc/{pid}/attr/apparmor/current"));
    sample.extend(profile.ok().map(|profile| (names::PROFILE, fact(profile.trim()))));
    let masked =
        mounts.lines().filter(|line| line.split(' ').nth(4).is_some_and(|place| place.starts_with("/proc/")));
    sample.add(names::MASKED, masked.count() as i64);
    Ok(())
}

/// Directories and disks of the host that a container may write to, in one line; none if there are none. Engines bind files of their
/// own into every container, and keep volumes in their own stores.
fn bound_writable(pid: i32) -> Option<String> {
    let mounts = fs::read_to_string(format!("/proc/{pid}/mountinfo")).ok()?;
    let is_of_host = |line: &&str| {
        let (head, tail) = line.split_once(" - ").unwrap_or((line, ""));
        let words: Vec<&str> = head.split(' ').collect();
        let [_, _, _, root, place, options, ..] = words[..] else { return false };
        let kind = tail.split(' ').next().unwrap_or_default();
        let is_written = options.split(',').any(|own| own == "rw");
        let is_disk = ["ext4", "xfs", "btrfs", "zfs", "f2fs", "ext3", "ext2"].contains(&kind);
        let is_engines = place == "/"
            || ["/volumes/", "/containers/", "-containers/", "/netns/"].iter().any(|own| root.contains(own));
        is_written && is_disk && !is_engines
    };
    let places = mounts.lines().filter(is_of_host).filter_map(|line| line.split(' ').nth(4));
    let all = places.collect::<Vec<_>>().join(", ");
    (!all.is_empty()).then(|| fact(&all))
}

/// Where an innermost process is.
struct Found {
    pid: i32,
    /// In how many namespaces it has a process id.
    depth: i64,
    place: &'static str,
    cgroup: &'static str,
}

impl Found {
    /// Of the process that has this name in its environment.
    fn of(name: &str, outer: i32, run: &RunContext) -> Option<Found> {
        let marked = format!("{}={name}", nested::NONCE);
        let is_marked = |pid: i32| {
            let environment = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
            environment.split(|byte| *byte == 0).any(|own| own == marked.as_bytes())
        };
        // Its program is the probe: a runtime's own process may have the name until that is executed.
        let length = |path: &Path| fs::metadata(path).map(|facts| facts.len()).ok();
        let is_probe = |pid: i32| {
            let running = PathBuf::from(format!("/proc/{pid}/exe"));
            // A filesystem in user space shows its files only to those in its user namespace; the name is the kernel's.
            let has_name = || {
                fs::read_link(&running)
                    .is_ok_and(|path| path.file_name() == Path::new(EXECUTABLE).file_name())
            };
            length(&running).map_or_else(has_name, |own| Some(own) == length(&run.place.executable))
        };
        let is_below = |pid: i32| process::parents(pid).contains(&outer);
        // Outside, any user could have given a process the name.
        let counts = |pid: i32| is_below(pid) || process::user_of(pid) == Some(0);
        let marked =
            process::all().map(|one| one.pid).filter(|pid| is_marked(*pid) && is_probe(*pid) && counts(*pid));
        let innermost = marked.max_by_key(|pid| (is_below(*pid), ids(*pid).len()))?;
        let depth = ids(innermost).len() as i64;
        let is_inside = is_below(innermost) && depth > ids(outer).len() as i64;
        let place = if is_inside { INSIDE } else { SIBLING };
        let [own, around] = [innermost, outer].map(cgroup);
        let (own, around) = (own?, around?);
        let below = own.strip_prefix(&around);
        let cgroup = match below {
            Some("") => "the outer's own",
            Some(rest) if rest.starts_with('/') || around == "/" => "below the outer's",
            _ => "not the outer's",
        };
        Some(Found { pid: innermost, depth, place, cgroup })
    }
}

/// Its cgroup: that of the memory controller, or of version 2.
fn cgroup(pid: i32) -> Option<String> {
    let all = fs::read_to_string(format!("/proc/{pid}/cgroup")).ok()?;
    let of = |controller: &str| {
        all.lines().find_map(|line| {
            let (names, path) = line.split_once(':')?.1.split_once(':')?;
            names.split(',').any(|own| own == controller).then(|| path.to_owned())
        })
    };
    of("memory").or_else(|| of(""))
}
