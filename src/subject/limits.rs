//! Limits on what a container may use: what keys and requests ask for, how each kind of program is asked for
//! them, and the check that they are in force. The CPU limit is the same for every subject: a quota in periods
//! of 100 ms, as engines set it.

use std::ffi::CStr;
use std::io;

use dunnage_launch::message::LIMIT_FILES;
use serde_json::{Map, Value, json};

use super::Unavailable;
use super::spec::{Spec, parse_duration, parse_size};
use crate::outcome::{Failure, FailureClass};
use crate::probe::message::Inside;
pub use crate::probe::message::Limits;
use crate::sys::cgroup::{self, CgroupPlan, CpuLimit, NoLimit};
use crate::sys::steps::StepError;
use crate::units::Nanos;

impl Limits {
    /// The limits of this subject, if it asks for any.
    pub fn of(spec: &Spec) -> Option<Limits> {
        // `none` is not a number.
        let cpus = spec.get("cpus").and_then(|value| value.parse().ok());
        let burst = spec.get("burst").and_then(parse_duration);
        let burst = burst.map(|seconds| Nanos((seconds * 1e9).round() as i64));
        let memory = spec.get("memory").and_then(parse_size);
        let all = Limits { cpus, burst, memory, pids: None };
        (all != Limits::default()).then_some(all)
    }

    /// These, and where one is missing that of `other`.
    pub(super) fn or(self, other: Limits) -> Limits {
        Limits {
            cpus: self.cpus.or(other.cpus),
            burst: self.burst.or(other.burst),
            memory: self.memory.or(other.memory),
            pids: self.pids.or(other.pids),
        }
    }

    /// Refuses what the keys of a subject limit already: its name says what is in force in all its containers.
    pub(super) fn check_next_to(&self, keys: Option<Limits>) -> Result<(), Failure> {
        let keys = keys.unwrap_or_default();
        let twice = [
            ("cpus", self.cpus.is_some() && keys.cpus.is_some()),
            ("burst", self.burst.is_some() && keys.burst.is_some()),
            ("memory", self.memory.is_some() && keys.memory.is_some()),
        ];
        let Some((key, _)) = twice.into_iter().find(|(_, is_twice)| *is_twice) else { return Ok(()) };
        let reason =
            format!("the subject's key `{key}` is a limit of all its containers: leave out one of the two");
        Err(Failure::new(FailureClass::Unsupported, reason))
    }

    /// As the kernel has them.
    pub(super) fn of_cgroup(&self) -> cgroup::Limits {
        let cpu = self.cpus.map(|cpus| CpuLimit::new(cpus, self.burst));
        cgroup::Limits { cpu, memory: self.memory, pids: self.pids }
    }

    /// As options of docker and podman, which have no bursts.
    pub(super) fn options(&self) -> impl Iterator<Item = (&'static str, String)> {
        let cpus = self.cpus.map(|cpus| ("--cpus", cpus.to_string()));
        let memory = self.memory.map(|bytes| ("--memory", bytes.to_string()));
        let pids = self.pids.map(|count| ("--pids-limit", count.to_string()));
        [cpus, memory, pids].into_iter().flatten()
    }

    /// Memory and swap together, which engines limit to twice the memory. When they change the memory of a
    /// running container, docker leaves this as it is, and refuses more memory than that.
    pub(super) fn with_swap(&self) -> Option<u64> {
        self.memory.map(|bytes| bytes.saturating_mul(2))
    }

    /// As fields of docker's API, where zero is no limit.
    pub(super) fn fields(&self) -> Map<String, Value> {
        let cpus = (self.cpus.unwrap_or(0.0) * 1e9).round() as i64;
        let always = [("NanoCpus", json!(cpus)), ("Memory", json!(self.memory.unwrap_or(0)))];
        let pids = self.pids.map(|count| ("PidsLimit", json!(count)));
        always.into_iter().chain(pids).map(|(field, limit)| (field.to_owned(), limit)).collect()
    }

    /// As `linux.resources` of a runtime's configuration, by controller.
    pub(super) fn resources(&self) -> Map<String, Value> {
        let cgroup::Limits { cpu, memory, pids } = self.of_cgroup();
        let cpu = cpu.map(|CpuLimit { quota_us, period_us, burst_us }| {
            let mut limit = json!({ "quota": quota_us, "period": period_us });
            if let Some(burst) = burst_us {
                limit["burst"] = json!(burst);
            }
            limit
        });
        let limit = |limit: u64| json!({ "limit": limit });
        let all = [("cpu", cpu), ("memory", memory.map(limit)), ("pids", pids.map(limit))];
        all.into_iter().filter_map(|(controller, limit)| Some((controller.to_owned(), limit?))).collect()
    }

    /// The limits of the cgroups that this process is in, as the host sees them.
    pub(super) fn in_force(pid: i32) -> io::Result<Limits> {
        let hierarchies = cgroup::mounted_of(pid)?;
        let first_line = |(name, _, controller): &(&str, &CStr, &str)| {
            let own = cgroup::with_controller(&hierarchies, controller)?.own.as_ref()?;
            let text = std::fs::read_to_string(own.join(name)).ok()?;
            Some(((*name).to_owned(), text.lines().next()?.to_owned()))
        };
        let limit_files = LIMIT_FILES.iter().filter_map(first_line).collect();
        Ok(Inside { limit_files, ..Inside::default() }.limits())
    }

    /// The difference from the limits of the probe's own cgroup, as the probe reads them.
    pub(super) fn fault(&self, found: &Limits) -> Option<String> {
        let told = |what: &str, asked: &dyn std::fmt::Display, found: Option<String>| {
            let found = found.unwrap_or("none".into());
            Some(format!("a {what} of {asked} was asked for and {found} is in force"))
        };
        if let Some(cpus) = self.cpus
            && found.cpus.is_none_or(|own| (own - cpus).abs() > 0.001)
        {
            let what = told("CPU limit", &cpus, found.cpus.map(|own| own.to_string()))?;
            return Some(with_remedy(what, "cpu", found.cpus.is_none()));
        }
        if let Some(burst) = self.burst
            && found.burst.is_none_or(|own| own.0.abs_diff(burst.0) >= 1000)
        {
            let what =
                told("CPU burst", &burst, found.burst.filter(|own| own.0 > 0).map(|own| own.to_string()))?;
            return Some(match found.burst {
                // The kernel has the file, so the runtime did not set it.
                Some(_) => {
                    format!(
                        "{what}: the runtime left it out; use one that sets it, such as runc 1.2 or newer (`bin=PATH`)"
                    )
                }
                None => format!("{what}: this kernel has no bursts, which need Linux 5.14"),
            });
        }
        // Memory is counted in whole pages.
        if let Some(bytes) = self.memory
            && found.memory.is_none_or(|own| own.abs_diff(bytes) >= 65536)
        {
            // Version 1 has the highest number of pages where there is no limit.
            let own = found.memory.filter(|own| *own < 1 << 62).map(|own| own.to_string());
            let is_missing = own.is_none();
            return Some(with_remedy(told("memory limit", &bytes, own)?, "memory", is_missing));
        }
        if let Some(count) = self.pids
            && found.pids != Some(count)
        {
            let what = told("process limit", &count, found.pids.map(|own| own.to_string()))?;
            return Some(with_remedy(what, "pids", found.pids.is_none()));
        }
        None
    }
}

/// Says what a limit of this controller needs, where none is in force.
fn with_remedy(fault: String, controller: &str, is_missing: bool) -> String {
    match is_missing {
        false => fault,
        true => format!(
            "{fault}: the runtime must obey `linux.resources.{controller}`; an ordinary user's needs cgroup v2 with \
             the {controller} controller delegated (`Delegate={controller}`)"
        ),
    }
}

/// The CPU limit that a subject is to set itself, if it can be set.
pub fn cpu_limit(spec: &Spec) -> Result<Option<CpuLimit>, Unavailable> {
    let limits = Limits::of(spec).unwrap_or_default();
    let Some(limit) = limits.of_cgroup().cpu else {
        return match limits.burst {
            Some(_) => Err(Unavailable::because("`burst` needs a quota to save from, and there is none")
                .with_remedy("add `cpus`, as in `cpus=0.5,burst=20ms`")),
            None => Ok(None),
        };
    };
    if let Some(burst) = limit.burst_us.filter(|burst| *burst > limit.quota_us) {
        let (burst, quota) = (Nanos(burst as i64 * 1000), Nanos(limit.quota_us as i64 * 1000));
        let reason = format!("the kernel does not allow a burst of {burst} with a quota of {quota}");
        return Err(Unavailable::because(reason).with_remedy(format!("`burst={}us` or less", limit.quota_us)));
    }
    Ok(Some(limit))
}

/// The places for cgroups with a CPU limit, or why there can be none.
pub fn cpu_cgroups() -> Result<CgroupPlan, Unavailable> {
    CgroupPlan::here()
        .map_err(|error| Unavailable::because(format!("cannot find the cgroups: {error}")))?
        .for_cpu()
        .map_err(|NoLimit { reason, remedy }| Unavailable::because(reason).with_remedy(remedy))
}

/// A limit that the kernel refused.
pub fn refused(error: &StepError) -> Failure {
    let (class, hint) = match error.errno {
        libc::EPERM | libc::EACCES | libc::EROFS => (FailureClass::Permission, "run as root"),
        libc::EINVAL | libc::ERANGE => (
            FailureClass::Unsupported,
            "the kernel does not allow this limit: lower it, at most to that of dunnage's own cgroup",
        ),
        libc::EBUSY => (FailureClass::Unsupported, "more memory is in use than that"),
        libc::ENOENT => (
            FailureClass::Unsupported,
            "the cgroup does not have this file: its controller is missing, or the kernel is older than 5.14 (for bursts)",
        ),
        _ => (FailureClass::Environment, "`dunnage doctor` says more about this machine's cgroups"),
    };
    Failure::new(class, format!("{error}; {hint}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(text: &str) -> Option<Limits> {
        Limits::of(&Spec::parse(text).unwrap())
    }

    fn fault(text: &str, found: Limits) -> Option<String> {
        asked(text).unwrap().fault(&found)
    }

    #[test]
    fn what_is_asked_for_is_read_from_the_keys() {
        assert_eq!((asked("bare"), asked("bare:cpus=none")), (None, None));
        let all =
            Limits { cpus: Some(0.5), burst: Some(Nanos(20_000_000)), memory: Some(64 << 20), pids: None };
        assert_eq!(asked("x:cpus=0.5,burst=20ms,memory=64MiB"), Some(all));
    }

    #[test]
    fn what_is_in_force_is_compared_with_what_was_asked_for() {
        let burst = |nanos| Limits { cpus: Some(0.5), burst: Some(Nanos(nanos)), ..Limits::default() };
        assert_eq!(fault("x:cpus=0.5", burst(0)), None);
        assert_eq!(fault("x:cpus=0.5,burst=20ms", burst(20_000_000)), None);
        let told = |text: &str, found| fault(text, found).unwrap();
        let none = Limits::default();
        let nothing = told("x:cpus=0.5", none);
        assert!(nothing.starts_with("a CPU limit of 0.5 was asked for and none is in force: "), "{nothing}");
        assert!(nothing.contains("`Delegate=cpu`"), "{nothing}");
        assert!(told("x:cpus=0.4", burst(0)).ends_with("0.5 is in force"));
        let left_out = told("x:cpus=0.5,burst=20ms", burst(0));
        assert!(left_out.contains("none is in force: the runtime left it out"), "{left_out}");
        let lacks = Limits { burst: None, ..burst(0) };
        assert!(told("x:cpus=0.5,burst=20ms", lacks).contains("5.14"));
        assert!(told("x:memory=64MiB", none).contains("memory limit of 67108864"));
        assert_eq!(fault("x:memory=64MiB", Limits { memory: Some(64 << 20), ..none }), None);
        let most = Limits { memory: Some(9_223_372_036_854_771_712), ..none };
        assert!(told("x:memory=64MiB", most).contains("none is in force: the runtime must obey"));
        let fifty = Limits { pids: Some(50), ..none };
        assert_eq!(fifty.fault(&fifty), None);
        let more = fifty.fault(&Limits { pids: Some(51), ..none }).unwrap();
        assert_eq!(more, "a process limit of 50 was asked for and 51 is in force");
        assert!(fifty.fault(&none).unwrap().contains("`Delegate=pids`"));
    }

    #[test]
    fn a_request_adds_to_the_keys_and_does_not_replace_them() {
        let (keys, memory) = (asked("x:cpus=0.5"), Limits { memory: Some(64 << 20), ..Limits::default() });
        assert_eq!((memory.check_next_to(keys), memory.check_next_to(None)), (Ok(()), Ok(())));
        let both = memory.or(keys.unwrap());
        assert_eq!((both.cpus, both.memory, both.pids), (Some(0.5), Some(64 << 20), None));
        let why = both.check_next_to(keys).unwrap_err();
        assert!(why.class == FailureClass::Unsupported && why.reason.contains("key `cpus`"), "{why}");
    }

    #[test]
    fn what_the_kernel_would_refuse_is_told_before() {
        let limit = |text: &str| cpu_limit(&Spec::parse(text).unwrap());
        assert_eq!(limit("x:memory=64MiB").unwrap(), None);
        assert_eq!(limit("x:cpus=0.1,burst=10ms").unwrap().unwrap().burst_us, Some(10_000));
        let why = limit("x:burst=20ms").unwrap_err();
        assert!(why.remedy.unwrap().contains("add `cpus`"));
        let why = limit("x:cpus=0.1,burst=20ms").unwrap_err();
        assert!(why.reason.contains("with a quota of 10"), "{}", why.reason);
    }

    #[test]
    fn what_the_kernel_refuses_has_a_class_and_a_remedy() {
        let of = |errno| refused(&StepError { step: "limit", path: "/c/cpu.max".into(), errno });
        for (errno, class, hint) in [
            (libc::EACCES, FailureClass::Permission, "run as root"),
            (libc::EINVAL, FailureClass::Unsupported, "lower it"),
            (libc::ENOENT, FailureClass::Unsupported, "controller"),
            (libc::EIO, FailureClass::Environment, "doctor"),
        ] {
            let failure = of(errno);
            assert_eq!(failure.class, class);
            assert!(failure.reason.contains(hint) && failure.reason.contains("`/c/cpu.max`"), "{failure}");
        }
    }
}
