//! What the probe inherited, parsed on the host, and as it is recorded. Of the environment only names are
//! recorded, and a number for each value: within a run, equal numbers are equal values.

use std::collections::BTreeMap;

use dunnage_analysis::subject::limits::{Ulimit, cpus_text};

/// What a process inherited from the one that started it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Inherited {
    /// Its resource limits, in the order of the kernel's numbers.
    pub limits: Vec<Ulimit>,
    /// The CPUs that it may use.
    pub cpus: Vec<usize>,
    /// Its file mode creation mask.
    pub umask: u64,
    /// 20 less its niceness, as the kernel gives it.
    pub nice: u64,
    /// By how many nanoseconds its timers may be late.
    pub timer_slack: u64,
    /// How soon the kernel kills it when memory is short, if that can be read.
    pub oom_score_adj: Option<i64>,
    /// Its variables by name, each with the hash of its value.
    pub variables: BTreeMap<String, u64>,
    /// How many more there are, and the hash of all of them.
    pub others: Option<(u64, u64)>,
}

/// The variable that names the container, whose value is always another.
const HOST_NAME: &str = "HOSTNAME";

/// The values of variables seen in a run, each by the number that stands for it.
pub type Values = BTreeMap<String, Vec<u64>>;

impl Inherited {
    /// Takes over a line of the message; `None` if it is malformed, `Some(false)` if it is about something else.
    pub(super) fn add(&mut self, name: &str, rest: &str) -> Option<bool> {
        let mut numbers = rest.split_whitespace().map_while(|word| word.parse::<u64>().ok());
        match name {
            "ulimit" => {
                let [resource, soft, hard] = [numbers.next()?, numbers.next()?, numbers.next()?];
                self.limits.push(Ulimit { resource: usize::try_from(resource).ok()?, soft, hard });
            }
            "cpus_allowed" => {
                let words: Vec<u64> = numbers.collect();
                let has = |cpu: &usize| words[cpu / 64] >> (cpu % 64) & 1 == 1;
                self.cpus = (0..64 * words.len()).filter(has).collect();
            }
            "umask" => self.umask = numbers.next()?,
            "nice" => self.nice = numbers.next()?,
            "timer_slack" => self.timer_slack = numbers.next()?,
            "oom_score_adj" => self.oom_score_adj = Some(rest.trim().parse().ok()?),
            "variable" => {
                let (hash, name) = rest.split_once(' ')?;
                self.variables.insert(name.to_owned(), hash.parse().ok()?);
            }
            "variables" => {
                self.others = Some((numbers.next()?, numbers.next()?)).map(|(hash, count)| (count, hash))
            }
            _ => return Some(false),
        }
        Some(true)
    }

    /// The limit of a resource.
    pub fn limit(&self, resource: usize) -> Option<Ulimit> {
        self.limits.iter().find(|one| one.resource == resource).copied()
    }

    /// The facts as they are recorded; `values` are those of the run so far.
    pub fn facts(&self, values: &mut Values) -> BTreeMap<String, String> {
        let mut numbered = |name: &str, hash: u64| {
            let known = values.entry(name.to_owned()).or_default();
            let at = known.iter().position(|own| *own == hash).unwrap_or_else(|| {
                known.push(hash);
                known.len() - 1
            });
            at + 1
        };
        let variable = |(name, hash): (&String, &u64)| match name.as_str() {
            HOST_NAME => name.clone(),
            _ => format!("{name}={}", numbered(name, *hash)),
        };
        let mut environment: Vec<String> = self.variables.iter().map(variable).collect();
        environment.extend(self.others.map(|(count, hash)| format!("({count} more)={}", numbered("", hash))));
        let limits = self.limits.iter().map(|one| (format!("ulimit {}", one.name()), one.value()));
        let others = [
            ("cpus allowed", cpus_text(&self.cpus)),
            ("umask", format!("{:04o}", self.umask)),
            ("nice", (20 - self.nice as i64).to_string()),
            ("timer slack", format!("{} ns", self.timer_slack)),
            ("environment", environment.join(" ")),
        ];
        let score = self.oom_score_adj.map(|score| ("oom score adj".to_owned(), score.to_string()));
        let others = others.map(|(name, value)| (name.to_owned(), value));
        limits.chain(others).chain(score).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(lines: &[(&str, &str)]) -> Option<Inherited> {
        let mut all = Inherited::default();
        lines.iter().all(|(name, rest)| all.add(name, rest) == Some(true)).then_some(all)
    }

    #[test]
    fn lines_become_facts() {
        let lines = [
            ("ulimit", "7 1024 18446744073709551615"),
            ("cpus_allowed", "5 1"),
            ("umask", "18"),
            ("nice", "25"),
            ("timer_slack", "50000"),
            ("oom_score_adj", "-500"),
            ("variable", "77 PATH"),
            ("variable", "1 HOSTNAME"),
            ("variables", "9 3"),
        ];
        let facts = read(&lines).unwrap().facts(&mut Values::new());
        let told: Vec<String> = facts.iter().map(|(name, value)| format!("{name}: {value}")).collect();
        assert_eq!(
            told,
            [
                "cpus allowed: 0,2,64",
                "environment: HOSTNAME PATH=1 (3 more)=1",
                "nice: -5",
                "oom score adj: -500",
                "timer slack: 50000 ns",
                "ulimit nofile: 1024:-1",
                "umask: 0022",
            ]
        );
        for (name, rest) in
            [("ulimit", "7 1024"), ("umask", "x"), ("variable", "PATH"), ("oom_score_adj", "")]
        {
            assert_eq!(Inherited::default().add(name, rest), None, "{name}");
        }
        assert_eq!(Inherited::default().add("uid", "0"), Some(false));
    }

    #[test]
    fn equal_values_of_a_variable_have_one_number_in_a_run_and_no_value_is_recorded() {
        let of = |hash: &str| read(&[("variable", hash)]).unwrap();
        let mut values = Values::new();
        let mut told = |hash: &str| of(hash).facts(&mut values)["environment"].clone();
        let all = ["811 TOKEN", "922 TOKEN", "811 TOKEN", "811 OTHER"].map(&mut told);
        assert_eq!(all, ["TOKEN=1", "TOKEN=2", "TOKEN=1", "OTHER=1"]);
    }
}
