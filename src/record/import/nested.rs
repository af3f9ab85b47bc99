//! A published table of attempts at containers in containers: `runtime,approach,result,time_seconds,error_msg`, where the last field has
//! blanks and commas without quotes.

use anyhow::{Context, Result, ensure};

use super::foreign::{Arm, Foreign, issue};
use super::hyperfine::UNKNOWN;
use crate::experiment::{Setting, command};
use crate::outcome::{Failure, Outcome, Sample};
use crate::subject::nested::explained;
use crate::subject::{Spec, kind_of};
use crate::units::Nanos;

/// Its first line.
pub const HEADER: &str = "runtime,approach,result,time_seconds,error_msg";

/// An attempt.
struct Attempt<'a> {
    label: String,
    runtime: &'a str,
    seconds: f64,
    succeeded: bool,
    words: &'a str,
}

/// Reads one.
///
/// # Errors
/// If a line is unlike the first one, or there is none.
pub fn read(text: &str) -> Result<Foreign> {
    let mut found: Vec<Attempt<'_>> = Vec::new();
    for (number, line) in (1..).zip(text.lines().map(str::trim)).skip(1).filter(|(_, line)| !line.is_empty())
    {
        let unlike = || format!("line {number}: `{line}` does not have the format of the first line");
        let fields: Vec<&str> = line.splitn(5, ',').map(str::trim).collect();
        let [runtime, approach, result, seconds, ref words @ ..] = fields[..] else {
            return Err(anyhow::anyhow!(unlike()));
        };
        let seconds: f64 =
            seconds.parse().ok().filter(|one: &f64| *one > 0.0 && one.is_finite()).with_context(unlike)?;
        ensure!(["success", "error"].contains(&result), unlike());
        let words = words.first().copied().unwrap_or_default();
        let (label, succeeded) = (format!("{runtime} {approach}"), result == "success");
        found.push(Attempt { label, runtime, seconds, succeeded, words });
    }
    ensure!(!found.is_empty(), "it has no line after the first one");
    let is_beside = |one: &&Attempt<'_>| one.succeeded && one.label.contains("socket");
    let beside: Vec<&str> = found.iter().filter(is_beside).map(|one| one.label.as_str()).collect();
    let sibling = (!beside.is_empty()).then(|| {
        issue(
            "a sibling, not inside",
            &beside,
            format!("{} counts as nested", beside.join(", ")),
            "a client inside that talks to the daemon outside starts containers next to its own, not in it",
        )
    });
    Ok(Foreign {
        format: "a table of attempts at containers in containers",
        experiment: command::NAME,
        setting: Setting::default(),
        arms: found.iter().map(arm).collect(),
        started: None,
        notes: vec![
            "the file has no information on machine, kernel, programs, order, or where a container really was".to_owned(),
            "each figure is of a single attempt (n = 1), and of the outer container, an engine in it and an image that it may have pulled together: \
             no start inside can be told from it, as `nested` measures it"
                .to_owned(),
            "how long an attempt took that failed is no start, and not imported as one".to_owned(),
        ],
        issues: sibling.into_iter().collect(),
    })
}

fn arm(one: &Attempt<'_>) -> Arm {
    let named = Spec::parse(one.runtime).ok().filter(|spec| kind_of(spec).is_ok());
    let outcome = if one.succeeded {
        Outcome::Measured(Sample::imported([("returned", one.seconds)]))
    } else {
        let (failure, remedy) = explained("the file has an error", one.words);
        let reason = remedy.map_or(failure.reason.clone(), |remedy| format!("{}; {remedy}", failure.reason));
        Outcome::Failed(Failure { took: Nanos::from_seconds(one.seconds), reason, ..failure })
    };
    Arm {
        label: one.label.clone(),
        subject: named.unwrap_or_else(|| Spec::plain(UNKNOWN)),
        notes: Vec::new(),
        outcomes: vec![(outcome, None)],
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::outcome::FailureClass;

    #[test]
    fn published_failures_get_their_cause_and_what_helps() {
        let text = format!(
            "{HEADER}\ndocker,dind_privileged,error,30.57,Terminated failed to connect to the docker API at tcp://docker:2375: lookup docker\n\
             docker,socket_mount,success,2.90, \npodman,pinp_basic,error,2.44,Trying to pull, Error: crun: mount `proc` to `proc`: Operation not permitted\n"
        );
        let made = read(&text).unwrap();
        let failed = |index: usize| match &made.arms[index].outcomes[0].0 {
            Outcome::Failed(failure) => (failure.class, failure.reason.clone()),
            _ => panic!("{index} succeeded"),
        };
        assert_eq!(failed(0).0, FailureClass::Environment);
        assert!(failed(0).1.contains("unset DOCKER_HOST"));
        assert!(failed(2).0 == FailureClass::Permission && failed(2).1.contains("/proc:/proc"));
        assert_eq!(made.arms[1].label, "docker socket_mount");
        let [sibling] = &made.issues[..] else { panic!("{:?}", made.issues) };
        assert_eq!(sibling.labels, ["docker socket_mount"]);
        assert!(read(&format!("{HEADER}\ndocker,a,maybe,1,\n")).is_err());
        assert!(read(&format!("{HEADER}\ndocker,a,error\n")).is_err());
    }
}
