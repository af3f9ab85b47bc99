//! Limits on what a subject may use: the keys, the requested values, and the check that they are in force.
//! The CPU limit is the same for every subject: a quota in periods of 100 ms, as engines set it.

use super::Unavailable;
use super::spec::{Spec, parse_duration, parse_size};
use crate::outcome::{Failure, FailureClass};
pub use crate::probe::message::Limits;
use crate::sys::cgroup::{CgroupPlan, CpuLimit, NoLimit};
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
        let any = cpus.is_some() || burst.is_some() || memory.is_some();
        any.then_some(Limits { cpus, burst, memory })
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
            return Some(match found.cpus {
                Some(_) => what,
                None => format!(
                    "{what}: the runtime must obey `linux.resources.cpu`; an ordinary user's needs cgroup v2 with \
                     the cpu controller delegated (`Delegate=cpu`)"
                ),
            });
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
            return told("memory limit", &bytes, found.memory.map(|own| own.to_string()));
        }
        None
    }
}

/// The CPU limit that a subject is to set itself, if it can be set.
pub fn cpu_limit(spec: &Spec) -> Result<Option<CpuLimit>, Unavailable> {
    let Some(Limits { cpus, burst, .. }) = Limits::of(spec) else { return Ok(None) };
    let Some(cpus) = cpus else {
        return match burst {
            Some(_) => Err(Unavailable::because("`burst` needs a quota to save from, and there is none")
                .with_remedy("add `cpus`, as in `cpus=0.5,burst=20ms`")),
            None => Ok(None),
        };
    };
    let limit = CpuLimit::new(cpus, burst);
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
        libc::ENOENT => (
            FailureClass::Unsupported,
            "the cgroup does not have this file: its cpu controller is missing, or the kernel is older than 5.14 (for bursts)",
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
        let all = Limits { cpus: Some(0.5), burst: Some(Nanos(20_000_000)), memory: Some(64 << 20) };
        assert_eq!(asked("x:cpus=0.5,burst=20ms,memory=64MiB"), Some(all));
    }

    #[test]
    fn what_is_in_force_is_compared_with_what_was_asked_for() {
        let burst = |nanos| Limits { cpus: Some(0.5), burst: Some(Nanos(nanos)), memory: None };
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
