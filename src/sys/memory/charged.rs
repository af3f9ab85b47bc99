//! The memory that is charged to cgroups, each without those below it. What a cgroup's `memory.stat` says is exact once the kernel has
//! collected it, every two seconds; `memory.current` is not, since each CPU holds up to 64 pages that are charged and not in use.
//!
//! A cgroup that was removed while something is still charged to it is counted with the one above it.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use dunnage_analysis::subject::instruments::Figures;

use super::super::cgroup::{Hierarchy, Version, mounted, with_controller};

/// What is charged to a cgroup.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Charged {
    /// Memory of processes without a file.
    pub anon: i64,
    /// Shared memory, and files in memory.
    pub shmem: i64,
    /// Page cache of other files.
    pub file: i64,
    /// Kernel memory.
    pub kernel: i64,
    /// All together as charged, with what is not in use.
    pub charged: i64,
}

impl Charged {
    fn each(self, other: Charged, of: impl Fn(i64, i64) -> i64) -> Charged {
        Charged {
            anon: of(self.anon, other.anon),
            shmem: of(self.shmem, other.shmem),
            file: of(self.file, other.file),
            kernel: of(self.kernel, other.kernel),
            charged: of(self.charged, other.charged),
        }
    }

    /// What is in use and not the page cache of a file.
    pub fn own(self) -> i64 {
        self.anon + self.shmem + self.kernel
    }

    /// Whether each field but the last is the same within so many bytes.
    pub fn is_near(self, other: Charged, within: i64) -> bool {
        let apart = self.each(other, |one, other| (one - other).abs());
        [apart.anon, apart.shmem, apart.file, apart.kernel].into_iter().all(|apart| apart <= within)
    }
}

impl std::ops::AddAssign for Charged {
    fn add_assign(&mut self, more: Charged) {
        *self = self.each(more, |one, other| one + other);
    }
}

impl std::ops::Sub for Charged {
    type Output = Charged;

    fn sub(self, less: Charged) -> Charged {
        self.each(less, |one, other| one - other)
    }
}

/// Parts of what is charged to a cgroup, which version 1 does not tell apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Parts {
    /// What the kernel can take back without writing anything: clean page cache, and slabs that say so.
    pub reclaimable: i64,
    /// Stacks of threads in the kernel.
    pub stacks: i64,
    /// Page tables.
    pub page_tables: i64,
    /// Memory of which each CPU has its own.
    pub per_cpu: i64,
    /// Slabs.
    pub slab: i64,
}

impl std::ops::AddAssign for Parts {
    fn add_assign(&mut self, more: Parts) {
        self.reclaimable += more.reclaimable;
        self.stacks += more.stacks;
        self.page_tables += more.page_tables;
        self.per_cpu += more.per_cpu;
        self.slab += more.slab;
    }
}

/// How the limit of a cgroup has worked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Pressure {
    /// How often something was to be charged above the limit, so that the kernel reclaimed or killed.
    pub hits: i64,
    /// How many processes the kernel has killed for that.
    pub killed: i64,
    /// The most that was charged at once. From Linux 5.19 on where cgroups have version 2.
    pub peak: Option<i64>,
}

/// The hierarchy that charges memory.
#[derive(Debug, Clone)]
pub struct Charging {
    root: PathBuf,
    own: PathBuf,
    version: Version,
}

impl Charging {
    /// The one that is mounted here.
    ///
    /// # Errors
    /// If there is none, or this process's place in it is not visible.
    pub fn here() -> io::Result<Charging> {
        let hierarchies = mounted()?;
        let found = with_controller(&hierarchies, "memory");
        let Some(Hierarchy { version, mount, own: Some(own) }) = found.cloned() else {
            return Err(io::Error::other("no cgroup hierarchy with the memory controller is visible"));
        };
        let charging = Charging { root: mount, own, version };
        // The root of version 2 has the file too, and says all that is charged anywhere.
        charging.kernel_anywhere()?;
        Ok(charging)
    }

    /// Where it is mounted.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// The cgroup of this process.
    pub fn own(&self) -> &Path {
        &self.own
    }

    /// Its version.
    pub fn version(&self) -> &Version {
        &self.version
    }

    /// The cgroup of a process.
    ///
    /// # Errors
    /// If it cannot be read or is not visible here.
    pub fn of(&self, pid: i32) -> io::Result<PathBuf> {
        let all = super::super::cgroup::mounted_of(pid)?;
        let own = with_controller(&all, "memory").and_then(|hierarchy| hierarchy.own.clone());
        own.ok_or_else(|| io::Error::other(format!("the memory cgroup of process {pid} is not visible")))
    }

    /// Kernel memory charged to any cgroup: the root itself is charged none.
    ///
    /// # Errors
    /// If the kernel does not say it.
    pub fn kernel_anywhere(&self) -> io::Result<i64> {
        Ok(self.with_those_below(&self.root)?.kernel)
    }

    /// What is charged to a cgroup and all below it.
    ///
    /// # Errors
    /// If it is gone, or its files lack a field.
    pub fn with_those_below(&self, directory: &Path) -> io::Result<Charged> {
        let text = |name: &str| fs::read_to_string(directory.join(name));
        let number = |name: &str| text(name)?.trim().parse::<i64>().map_err(io::Error::other);
        let stat = text("memory.stat")?;
        let lacks =
            |key: &str| io::Error::other(format!("`{}/memory.stat` has no `{key}`", directory.display()));
        let field = |key: &str| value(&stat, key).ok_or_else(|| lacks(key));
        if self.version == Version::V2 {
            let shmem = field("shmem")?;
            let kernel = match value(&stat, "kernel") {
                Some(kernel) => kernel + value(&stat, "sock").unwrap_or(0),
                // Before Linux 5.18; the sum lacks what has no field of its own.
                None => ["kernel_stack", "pagetables", "percpu", "slab", "sock"]
                    .iter()
                    .filter_map(|key| value(&stat, key))
                    .sum(),
            };
            let charged = number("memory.current").unwrap_or(0);
            return Ok(Charged {
                anon: field("anon")?,
                shmem,
                file: field("file")? - shmem,
                kernel,
                charged,
            });
        }
        let shmem = field("total_shmem")?;
        Ok(Charged {
            anon: field("total_rss")?,
            shmem,
            file: field("total_cache")? - shmem,
            kernel: number("memory.kmem.usage_in_bytes")?,
            charged: number("memory.usage_in_bytes")?,
        })
    }

    /// The same, with figures of which tools make theirs.
    ///
    /// # Errors
    /// As for [`Charging::with_those_below`].
    pub fn figures(&self, directory: &Path) -> io::Result<(Charged, Figures)> {
        let all = self.with_those_below(directory)?;
        let stat = fs::read_to_string(directory.join("memory.stat"))?;
        let total = if self.version == Version::V2 { "" } else { "total_" };
        let field = |key: &str| {
            let lacks = || io::Error::other(format!("`{}/memory.stat` has no `{key}`", directory.display()));
            value(&stat, &format!("{total}{key}")).ok_or_else(lacks)
        };
        let figures = Figures {
            charged: all.charged,
            inactive_file: field("inactive_file")?,
            cache: all.file + all.shmem,
            anon: all.anon,
            lists: field("inactive_anon")? + field("active_anon")?,
        };
        Ok((all, figures))
    }

    /// Parts of what is charged to a cgroup and all below it, if the kernel says them.
    pub fn parts(&self, directory: &Path) -> Option<Parts> {
        if self.version != Version::V2 {
            return None;
        }
        let stat = fs::read_to_string(directory.join("memory.stat")).ok()?;
        let field = |key: &str| value(&stat, key);
        let clean =
            field("active_file")? + field("inactive_file")? - field("file_dirty")? - field("file_writeback")?;
        Some(Parts {
            reclaimable: clean + field("slab_reclaimable")?,
            stacks: field("kernel_stack")?,
            page_tables: field("pagetables")?,
            per_cpu: field("percpu")?,
            slab: field("slab")?,
        })
    }

    /// How a cgroup's limit has worked so far.
    ///
    /// # Errors
    /// If the cgroup is gone.
    pub fn pressure(&self, directory: &Path) -> io::Result<Pressure> {
        let text = |name: &str| fs::read_to_string(directory.join(name));
        let number = |name: &str| text(name)?.trim().parse::<i64>().map_err(io::Error::other);
        if self.version == Version::V2 {
            let events = text("memory.events")?;
            let lacks = || io::Error::other(format!("`{}/memory.events` has no `max`", directory.display()));
            let hits = value(&events, "max").ok_or_else(lacks)?;
            let killed = value(&events, "oom_kill").unwrap_or(0);
            return Ok(Pressure { hits, killed, peak: number("memory.peak").ok() });
        }
        Ok(Pressure {
            hits: number("memory.failcnt")?,
            // From Linux 4.13 on.
            killed: value(&text("memory.oom_control")?, "oom_kill").unwrap_or(0),
            peak: Some(number("memory.max_usage_in_bytes")?),
        })
    }

    /// What is charged to every cgroup but the root, each without those below it.
    pub fn all(&self) -> BTreeMap<PathBuf, Charged> {
        let mut found = BTreeMap::new();
        for directory in below(&self.root) {
            self.apart(&directory, &mut found);
        }
        found
    }

    /// Adds those from this directory on, and returns what they are charged together.
    fn apart(&self, directory: &Path, found: &mut BTreeMap<PathBuf, Charged>) -> Charged {
        let mut children = Charged::default();
        for child in below(directory) {
            children += self.apart(&child, found);
        }
        // One that goes away meanwhile is counted above it.
        match self.with_those_below(directory) {
            Ok(all) => {
                found.insert(directory.to_owned(), all - children);
                all
            }
            Err(_) => children,
        }
    }

    /// How many memory cgroups there are that have been removed and are still charged for something.
    pub fn dying(&self) -> Option<i64> {
        if self.version == Version::V2 {
            return value(&fs::read_to_string(self.root.join("cgroup.stat")).ok()?, "nr_dying_descendants");
        }
        let all = fs::read_to_string("/proc/cgroups").ok()?;
        let line = all.lines().find_map(|line| line.strip_prefix("memory"))?;
        let count: i64 = line.split_whitespace().nth(1)?.parse().ok()?;
        Some(count - self.all().len() as i64 - 1)
    }
}

/// The value of a line `key value`.
fn value(text: &str, key: &str) -> Option<i64> {
    let own = text.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(' '))?;
    own.trim().parse().ok()
}

/// The directories right below one.
fn below(directory: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    entries.filter(|one| one.file_type().is_ok_and(|kind| kind.is_dir())).map(|one| one.path()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_told_by_version_2_alone() {
        let stat = "kernel_stack 16\npagetables 8\npercpu 4\nfile_dirty 1\nfile_writeback 2\ninactive_file 100\nactive_file 50\n\
            slab_reclaimable 30\nslab_unreclaimable 10\nslab 40\n";
        let (root, second) = planted(Version::V2, &[("memory.stat", stat)]);
        let parts = Parts { reclaimable: 177, stacks: 16, page_tables: 8, per_cpu: 4, slab: 40 };
        assert_eq!(second.parts(root.path()), Some(parts));
        let first = Charging { version: Version::V1("memory".into()), ..second };
        assert_eq!(first.parts(root.path()), None);
    }

    #[test]
    fn how_a_limit_has_worked_is_read() {
        let found = |(root, charging): &(tempfile::TempDir, Charging)| charging.pressure(root.path());
        let second = planted(Version::V2, &[("memory.events", "low 0\nhigh 0\nmax 12\noom 1\noom_kill 2\n")]);
        assert_eq!(found(&second).unwrap(), Pressure { hits: 12, killed: 2, peak: None });
        fs::write(second.0.path().join("memory.peak"), "4096\n").unwrap();
        assert_eq!(found(&second).unwrap(), Pressure { hits: 12, killed: 2, peak: Some(4096) });
        let files = [
            ("memory.failcnt", "3\n"),
            ("memory.max_usage_in_bytes", "8192\n"),
            ("memory.oom_control", "under_oom 0\noom_kill 1\n"),
        ];
        let first = planted(Version::V1("memory".into()), &files);
        assert_eq!(found(&first).unwrap(), Pressure { hits: 3, killed: 1, peak: Some(8192) });
        fs::remove_file(first.0.path().join("memory.failcnt")).unwrap();
        assert!(found(&first).is_err());
    }

    fn planted(version: Version, files: &[(&str, &str)]) -> (tempfile::TempDir, Charging) {
        let root = tempfile::tempdir().unwrap();
        for (path, content) in files {
            let path = root.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, content).unwrap();
        }
        let charging = Charging { root: root.path().to_owned(), own: root.path().to_owned(), version };
        (root, charging)
    }

    #[test]
    fn each_cgroup_is_charged_without_those_below_it() {
        let stat = |anon: i64, file: i64, shmem: i64, kernel: i64| {
            format!("anon {anon}\nfile {file}\nkernel {kernel}\nshmem {shmem}\nsock 1\n")
        };
        let (outer, inner) = (stat(1000, 500, 200, 80), stat(600, 300, 200, 50));
        let (root, charging) = planted(
            Version::V2,
            &[
                ("memory.stat", &stat(5000, 0, 0, 900)),
                ("docker/memory.stat", &outer),
                ("docker/memory.current", "2000\n"),
                ("docker/one/memory.stat", &inner),
                ("docker/one/memory.current", "1200\n"),
            ],
        );
        let all = charging.all();
        let of = |path: &str| all[&root.path().join(path)];
        assert_eq!(of("docker/one"), Charged { anon: 600, shmem: 200, file: 100, kernel: 51, charged: 1200 });
        assert_eq!(of("docker"), Charged { anon: 400, shmem: 0, file: 200, kernel: 30, charged: 800 });
        assert_eq!(charging.kernel_anywhere().unwrap(), 901);
        assert!(of("docker").is_near(Charged { anon: 410, ..of("docker") }, 10));
        assert!(!of("docker").is_near(Charged { kernel: 41, ..of("docker") }, 10));
    }

    #[test]
    fn version_1_counts_page_cache_without_shared_memory() {
        let stat = "cache 1\nrss 1\nshmem 1\ntotal_cache 700\ntotal_rss 300\ntotal_shmem 200\n";
        let (root, charging) = planted(
            Version::V1("memory".into()),
            &[
                ("one/memory.stat", stat),
                ("one/memory.kmem.usage_in_bytes", "40\n"),
                ("one/memory.usage_in_bytes", "1100\n"),
            ],
        );
        let wanted = Charged { anon: 300, shmem: 200, file: 500, kernel: 40, charged: 1100 };
        assert_eq!(charging.all()[&root.path().join("one")], wanted);
        fs::remove_file(root.path().join("one/memory.kmem.usage_in_bytes")).unwrap();
        assert!(charging.all().is_empty());
    }
}
