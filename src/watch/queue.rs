//! How long the tasks of a cgroup were ready to run but had no CPU, because their usage does not show what other load kept
//! them from. Sums the scheduler's count of each task that exists (`/proc/PID/task/TID/schedstat`).
//!
//! This includes waiting for a limit. Deliberately absent: tasks that start and end between two readings.

use std::collections::HashMap;
use std::fs;
use std::path::Path;

use crate::units::Nanos;

/// The waiting time of each task so far, by task id.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Queue {
    waited: HashMap<i32, Nanos>,
}

impl Queue {
    /// Of all tasks in the cgroup of this directory and below it. `None` if the kernel does not count it.
    pub fn of(directory: &Path) -> Option<Queue> {
        let mut queue = Queue::default();
        let mut open = vec![directory.to_owned()];
        while let Some(directory) = open.pop() {
            let processes = fs::read_to_string(directory.join("cgroup.procs")).unwrap_or_default();
            for pid in processes.lines() {
                let tasks = fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
                for task in tasks {
                    let text = fs::read_to_string(task.path().join("schedstat")).unwrap_or_default();
                    let id = task.file_name().to_str().and_then(|name| name.parse().ok());
                    queue.waited.extend(id.zip(waited(&text)));
                }
            }
            let below = fs::read_dir(&directory).into_iter().flatten().flatten();
            open.extend(
                below
                    .filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()))
                    .map(|entry| entry.path()),
            );
        }
        (!queue.waited.is_empty()).then_some(queue)
    }

    /// The waiting time since an earlier reading; for new tasks, all of it.
    pub fn since(&self, earlier: &Queue) -> Nanos {
        let before = |id| earlier.waited.get(id).copied().unwrap_or_default();
        // An id reused by another task counts as zero, not as negative.
        self.waited.iter().map(|(id, now)| Nanos((now.0 - before(id).0).max(0))).sum()
    }
}

/// The second of three numbers: run time, waiting time, timeslices. A kernel without the count shows only zeroes.
fn waited(schedstat: &str) -> Option<Nanos> {
    let mut fields = schedstat.split_whitespace().map(str::parse::<i64>);
    let (ran, waited) = (fields.next()?.ok()?, fields.next()?.ok()?);
    (ran > 0).then_some(Nanos(waited))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waiting_is_the_difference_of_what_each_task_shows() {
        let queue = |tasks: &[(i32, i64)]| Queue {
            waited: tasks.iter().map(|&(id, nanos)| (id, Nanos(nanos))).collect(),
        };
        let (before, after) = (queue(&[(1, 100), (2, 50), (4, 90)]), queue(&[(1, 130), (3, 7), (4, 20)]));
        assert_eq!(after.since(&before), Nanos(37));
        assert_eq!((waited("123 45 6\n"), waited("0 0 0\n"), waited("")), (Some(Nanos(45)), None, None));
    }
}
