//! Limits of a container's cgroup, and the steps that write them. For CPU time: the hierarchies that a limit
//! needs, and whether it can be set on this host. The kernel grants a cgroup a quota of CPU time in each period
//! and throttles its processes for the rest of the period once it is used up; a burst lets the cgroup save up
//! unused quota.
//!
//! As everywhere, nothing outside dunnage's own directory is written. So if a version 2 hierarchy does not
//! delegate its cpu controller, the user has to change that.

use std::io;

use thiserror::Error;

use super::super::steps::{Step, StepError, run_all};
use super::plan::{CgroupPlan, Place, remove};
use super::{Hierarchy, Version};
use crate::units::Nanos;

/// The steps that write a limit, by controller.
const STEPS: [(&str, &str); 3] =
    [("cpu", "limit CPU time by"), ("memory", "limit memory by"), ("pids", "limit processes by")];
/// The period that engines set, which is the kernel's default.
const PERIOD_US: u64 = 100_000;

/// This much CPU time in each period, in microseconds as the kernel expects it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CpuLimit {
    /// CPU time in each period.
    pub quota_us: u64,
    /// The period.
    pub period_us: u64,
    /// The most unused quota that may be saved up, if asked for.
    pub burst_us: Option<u64>,
}

impl CpuLimit {
    /// The limit for this many CPUs, in periods of 100 ms as engines set it.
    pub fn new(cpus: f64, burst: Option<Nanos>) -> CpuLimit {
        CpuLimit {
            quota_us: (cpus * PERIOD_US as f64).round() as u64,
            period_us: PERIOD_US,
            burst_us: burst.map(|burst| (burst.0 / 1000) as u64),
        }
    }
}

/// What the cgroup of one container may use.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Limits {
    /// CPU time.
    pub cpu: Option<CpuLimit>,
    /// Bytes of memory.
    pub memory: Option<u64>,
    /// Processes and threads.
    pub pids: Option<u64>,
}

impl Limits {
    /// The files with the limits of this controller, in a version of cgroups, each with its content.
    fn files(&self, controller: &str, version: &Version) -> Vec<(&'static str, String)> {
        let is_second = *version == Version::V2;
        let bytes =
            |bytes: u64| (if is_second { "memory.max" } else { "memory.limit_in_bytes" }, bytes.to_string());
        match (controller, self.cpu) {
            ("memory", _) => self.memory.map(bytes).into_iter().collect(),
            ("pids", _) => self.pids.map(|count| ("pids.max", count.to_string())).into_iter().collect(),
            (_, None) => Vec::new(),
            (_, Some(CpuLimit { quota_us, period_us, burst_us })) => {
                let (mut files, burst) = match is_second {
                    true => (vec![("cpu.max", format!("{quota_us} {period_us}"))], "cpu.max.burst"),
                    false => {
                        let period = ("cpu.cfs_period_us", period_us.to_string());
                        (vec![period, ("cpu.cfs_quota_us", quota_us.to_string())], "cpu.cfs_burst_us")
                    }
                };
                files.extend(burst_us.map(|micros| (burst, micros.to_string())));
                files
            }
        }
    }
}

/// Why no limit can be set on this host.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{reason}")]
pub struct NoLimit {
    /// The reason.
    pub reason: String,
    /// What would change that.
    pub remedy: String,
}

impl CgroupPlan {
    /// The part of the plan that limits and counts CPU time: the version 1 hierarchies of cpu and cpuacct if
    /// they are mounted, else version 2.
    pub fn for_cpu(&self) -> Result<CgroupPlan, NoLimit> {
        let all = || self.places.iter().map(|place| &place.hierarchy).chain(&self.refused);
        let first = all().any(|hierarchy| hierarchy.has("cpu"));
        let concerned = |hierarchy: &Hierarchy| match first {
            true => hierarchy.has("cpu") || hierarchy.has("cpuacct"),
            false => hierarchy.version == Version::V2,
        };
        if let Some(refused) = self.refused.iter().find(|hierarchy| concerned(hierarchy)) {
            return Err(NoLimit {
                reason: format!("cannot make a cgroup in `{}`: it is not writable", refused.mount.display()),
                remedy: "run as root, or in a cgroup that was delegated to you: \
                         `systemd-run --user --scope -p Delegate=yes dunnage …`"
                    .into(),
            });
        }
        let places: Vec<Place> =
            self.places.iter().filter(|place| concerned(&place.hierarchy)).cloned().collect();
        match &places[..] {
            [] => return Err(no_controller()),
            [place] if !first => handed_down(place)?,
            _ => {}
        }
        Ok(CgroupPlan { places, ..CgroupPlan::default() })
    }

    /// The steps that write limits into the cgroups of one container, which already exist: each where its
    /// controller is, which may be in version 1.
    pub fn limiting(&self, name: &str, limits: &Limits) -> Vec<Step> {
        let mut steps = Vec::new();
        for (controller, step) in STEPS {
            let first = self.places.iter().find(|place| place.hierarchy.has(controller));
            let second = || self.places.iter().find(|place| place.hierarchy.version == Version::V2);
            let Some(place) = first.or_else(second) else { continue };
            for (file, content) in limits.files(controller, &place.hierarchy.version) {
                let path = place.parent.join(name).join(file);
                steps.push(Step::open(step, &path, libc::O_WRONLY));
                steps.extend([Step::write(step, &path, &content), Step::close()]);
            }
        }
        steps
    }

    /// Makes the cgroups of one container with this limit; leaves nothing after an error.
    pub fn make_limited(&self, name: &str, limit: &CpuLimit) -> Result<(), StepError> {
        let limits = Limits { cpu: Some(*limit), ..Limits::default() };
        let steps: Vec<Step> = self.creation(name).into_iter().chain(self.limiting(name, &limits)).collect();
        run_all(&steps).1.map(drop).inspect_err(|_| {
            let _ = self.remove(name);
        })
    }

    /// Removes the cgroups of one container and kills what still runs in them; a missing cgroup is not an
    /// error.
    pub fn remove(&self, name: &str) -> Result<(), StepError> {
        let all: Vec<_> = self.removal(name).iter().map(remove).collect();
        all.into_iter().collect()
    }
}

impl StepError {
    /// Whether the limit itself was refused, rather than its cgroup.
    pub fn is_of_a_limit(&self) -> bool {
        STEPS.iter().any(|(_, step)| *step == self.step)
    }
}

fn no_controller() -> NoLimit {
    NoLimit {
        reason: "no cgroup hierarchy with the cpu controller is mounted here".into(),
        remedy: "mount cgroup v2, and leave `cgroup_disable=cpu` out of the kernel's command line".into(),
    }
}

/// Whether the cpu controller of version 2 reaches dunnage's directory. That is one level below, so its
/// parent must delegate the controller.
fn handed_down(place: &Place) -> Result<(), NoLimit> {
    let above = place.parent.parent().unwrap_or(&place.hierarchy.mount);
    let has = |file: &str| -> io::Result<bool> {
        Ok(std::fs::read_to_string(above.join(file))?.split_whitespace().any(|one| one == "cpu"))
    };
    let told = |file: &str| has(file).unwrap_or(false);
    match (told("cgroup.controllers"), told("cgroup.subtree_control")) {
        (true, true) => Ok(()),
        (true, false) => Err(NoLimit {
            reason: format!("`{}` does not delegate its cpu controller", above.display()),
            remedy: format!("`echo +cpu > {}/cgroup.subtree_control`, as root", above.display()),
        }),
        (false, _) if above == place.hierarchy.mount => Err(no_controller()),
        (false, _) => Err(NoLimit {
            reason: format!("`{}` does not have the cpu controller", above.display()),
            remedy: "run as root, or delegate the controller: `Delegate=cpu` in your systemd unit".into(),
        }),
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    fn place(version: Version, mount: &Path) -> Place {
        let hierarchy = Hierarchy { version, mount: mount.to_owned(), own: None };
        Place { hierarchy, parent: mount.join(super::super::LABEL) }
    }

    fn first(options: &str) -> Place {
        place(Version::V1(options.into()), &Path::new("/c").join(options))
    }

    fn plan(places: &[Place]) -> CgroupPlan {
        CgroupPlan { places: places.to_vec(), ..CgroupPlan::default() }
    }

    fn written(plan: &CgroupPlan, limit: &CpuLimit) -> Vec<String> {
        let steps = plan.limiting("a", &Limits { cpu: Some(*limit), ..Limits::default() });
        let opened = steps.iter().filter(|step| step.opens());
        opened.map(|step| step.path().display().to_string()).collect()
    }

    #[test]
    fn cpus_are_a_share_of_each_period() {
        let limit = CpuLimit::new(0.29, Some(Nanos::from_millis(20)));
        assert_eq!(limit, CpuLimit { quota_us: 29_000, period_us: 100_000, burst_us: Some(20_000) });
        assert_eq!(CpuLimit::new(2.5, None).quota_us, 250_000);
    }

    #[test]
    fn version_1_is_limited_in_the_hierarchy_of_cpu_and_counted_in_that_of_cpuacct() {
        let second = place(Version::V2, Path::new("/c/unified"));
        let all = plan(&[first("memory"), first("cpuacct"), first("cpu"), second]);
        let own = all.for_cpu().unwrap();
        let names: Vec<_> = own.places.iter().map(|place| place.parent.display().to_string()).collect();
        assert_eq!(names, ["/c/cpuacct/dunnage", "/c/cpu/dunnage"]);
        let limit = CpuLimit::new(0.5, None);
        let files = ["/c/cpu/dunnage/a/cpu.cfs_period_us", "/c/cpu/dunnage/a/cpu.cfs_quota_us"];
        assert_eq!(written(&own, &limit), files);
        assert_eq!(written(&all, &limit), files, "in the plan of a whole container too");
        let burst = CpuLimit { burst_us: Some(1), ..limit };
        assert!(written(&own, &burst)[2].ends_with("/cpu.cfs_burst_us"));
        assert_eq!(plan(&[first("cpu,cpuacct")]).for_cpu().unwrap().places.len(), 1);
    }

    #[test]
    fn each_limit_is_written_where_its_controller_is() {
        let second = place(Version::V2, Path::new("/c/unified"));
        let limits = Limits { memory: Some(64 << 20), pids: Some(50), ..Limits::default() };
        let opened = |places: &[Place]| -> Vec<_> {
            let steps = plan(places).limiting("a", &limits);
            let opened = steps.iter().filter(|step| step.opens());
            opened.map(|step| step.path().display().to_string()).collect()
        };
        let hybrid = [first("cpu"), first("memory"), second.clone()];
        let [memory, pids] = ["/c/memory/dunnage/a/memory.limit_in_bytes", "/c/unified/dunnage/a/pids.max"];
        assert_eq!(opened(&hybrid), [memory, pids]);
        assert_eq!(opened(&[second]), ["/c/unified/dunnage/a/memory.max", pids]);
        assert_eq!(opened(&[first("cpu"), first("pids")]), ["/c/pids/dunnage/a/pids.max"]);
    }

    #[test]
    fn version_2_must_hand_the_controller_down() {
        let mount = tempfile::tempdir().unwrap();
        let second = place(Version::V2, mount.path());
        let all = plan(&[first("memory"), second]);
        let says = |controllers: &str, handed: &str| {
            std::fs::write(mount.path().join("cgroup.controllers"), controllers).unwrap();
            std::fs::write(mount.path().join("cgroup.subtree_control"), handed).unwrap();
            all.for_cpu().map(|plan| written(&plan, &CpuLimit::new(0.5, Some(Nanos(5000)))))
        };
        let directory = mount.path().join("dunnage/a");
        let files = ["cpu.max", "cpu.max.burst"].map(|file| directory.join(file).display().to_string());
        assert_eq!(says("cpuset cpu io\n", "cpu\n").unwrap(), files);
        let why = says("cpu\n", "memory\n").unwrap_err();
        assert!(why.reason.contains("does not delegate"), "{why}");
        assert!(why.remedy.contains("/cgroup.subtree_control"), "{why:?}");
        assert!(says("memory\n", "memory\n").unwrap_err().reason.contains("is mounted here"));
        assert_eq!(plan(&[]).for_cpu(), Err(no_controller()));
    }

    #[test]
    fn what_may_not_be_written_is_told_with_a_remedy() {
        let refused = CgroupPlan {
            places: vec![first("memory")],
            refused: vec![first("cpu").hierarchy],
            ..CgroupPlan::default()
        };
        let why = refused.for_cpu().unwrap_err();
        assert!(why.reason.contains("`/c/cpu`") && why.remedy.contains("root"), "{why:?}");
        let nowhere = plan(&[place(Version::V2, Path::new("/proc/1/nowhere"))]);
        let error = nowhere.make_limited("a", &CpuLimit::new(1.0, None)).unwrap_err();
        assert!(!error.is_of_a_limit(), "{error}");
    }
}
