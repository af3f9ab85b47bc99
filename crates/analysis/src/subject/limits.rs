//! Limits of a process as users write them and as the kernel numbers them: `ulimit`, in docker's form, and
//! `cpuset`. Deliberately absent: how a subject sets them, and what was found inside.

/// The kernel's resources in the order of its numbers, by the names that docker's `--ulimit` gives them.
pub const RESOURCES: [&str; 16] = [
    "cpu",
    "fsize",
    "data",
    "stack",
    "core",
    "rss",
    "nproc",
    "nofile",
    "memlock",
    "as",
    "locks",
    "sigpending",
    "msgqueue",
    "nice",
    "rtprio",
    "rttime",
];

/// The resource of a number without a name.
const FILES: &str = "nofile";
/// Docker's word for no limit.
const NONE: &str = "-1";

/// The highest CPU number for which Linux can be built.
const MOST_CPUS: usize = 8192;

/// A resource limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Ulimit {
    /// The resource's number in the kernel.
    pub resource: usize,
    /// The soft limit, which is in force; `u64::MAX` for none.
    pub soft: u64,
    /// The hard limit, up to which the process itself may raise the soft one.
    pub hard: u64,
}

impl Ulimit {
    /// Its resource, as docker calls it.
    pub fn name(&self) -> &'static str {
        RESOURCES.get(self.resource).copied().unwrap_or("unknown")
    }

    /// Its value in docker's form, `SOFT:HARD` or one number for both.
    pub fn value(&self) -> String {
        let shown = |limit: u64| if limit == u64::MAX { NONE.to_owned() } else { limit.to_string() };
        if self.soft == self.hard {
            shown(self.soft)
        } else {
            format!("{}:{}", shown(self.soft), shown(self.hard))
        }
    }

    fn parse(text: &str) -> Option<Ulimit> {
        let (name, value) = text.split_once('=').unwrap_or((FILES, text));
        let resource = RESOURCES.iter().position(|known| *known == name)?;
        let number = |text: &str| match text {
            NONE => Some(u64::MAX),
            _ if text.starts_with('+') => None,
            _ => text.parse().ok(),
        };
        let (soft, hard) = value.split_once(':').unwrap_or((value, value));
        let (soft, hard) = (number(soft)?, number(hard)?);
        (soft <= hard).then_some(Ulimit { resource, soft, hard })
    }
}

/// Resource limits, such as `1024` (open files) or `nofile=1024:2048,core=0`; each resource once.
pub fn parse_ulimits(text: &str) -> Option<Vec<Ulimit>> {
    let mut all = text.split(',').map(Ulimit::parse).collect::<Option<Vec<_>>>()?;
    all.sort();
    let is_distinct = all.windows(2).all(|pair| pair[0].resource != pair[1].resource);
    is_distinct.then_some(all)
}

/// The shortest text for these limits.
pub fn ulimits_text(all: &[Ulimit]) -> String {
    if let [only] = all
        && only.name() == FILES
    {
        return only.value();
    }
    all.iter().map(|one| format!("{}={}", one.name(), one.value())).collect::<Vec<_>>().join(",")
}

/// CPUs by the kernel's numbers, such as `0-2,4`, lowest first and each once.
pub fn parse_cpus(text: &str) -> Option<Vec<usize>> {
    let number =
        |text: &str| text.parse().ok().filter(|cpu: &usize| *cpu < MOST_CPUS && !text.starts_with('+'));
    let mut all = Vec::new();
    for part in text.split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (first, last) = (number(first)?, number(last)?);
        if first > last {
            return None;
        }
        all.extend(first..=last);
    }
    all.sort_unstable();
    all.dedup();
    Some(all)
}

/// The shortest text for these CPUs, which are in order.
pub fn cpus_text(all: &[usize]) -> String {
    let runs = all.chunk_by(|one, next| one + 1 == *next).map(|run| match run {
        [first, .., last] => format!("{first}-{last}"),
        _ => run.iter().map(usize::to_string).collect(),
    });
    runs.collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_are_read_in_dockers_form_and_a_number_alone_is_open_files() {
        let of = |text: &str| parse_ulimits(text).map(|all| ulimits_text(&all));
        for (text, shortest) in [
            ("1024", "1024"),
            ("nofile=1024", "1024"),
            ("nofile=1024:2048", "1024:2048"),
            ("core=0,nofile=5", "core=0,nofile=5"),
            ("nofile=5,core=0", "core=0,nofile=5"),
            ("memlock=-1", "memlock=-1"),
            ("nofile=8:-1", "8:-1"),
        ] {
            assert_eq!(of(text).as_deref(), Some(shortest), "{text}");
        }
        for wrong in
            ["", "many", "files=1", "2048:1024", "-1:5", "nofile=1,nofile=2", "1,", "+1", "-2", "nofile="]
        {
            assert_eq!(of(wrong), None, "{wrong}");
        }
        assert_eq!(parse_ulimits("nofile=1:2").unwrap(), [Ulimit { resource: 7, soft: 1, hard: 2 }]);
    }

    #[test]
    fn lists_of_cpus_are_read_and_written_in_the_kernels_form() {
        let of = |text: &str| parse_cpus(text).map(|all| cpus_text(&all));
        for (text, shortest) in
            [("0", "0"), ("1,0", "0-1"), ("0-2,4", "0-2,4"), ("3,1,1", "1,3"), ("0,1,2", "0-2")]
        {
            assert_eq!(of(text).as_deref(), Some(shortest), "{text}");
        }
        for wrong in ["", "all", "2-1", "0-", "-1", "0,,1", "8192", "+1"] {
            assert_eq!(of(wrong), None, "{wrong}");
        }
    }
}
