//! Planted event streams with results worked out by hand.

use proptest::prelude::*;

use super::super::Tree;
use super::*;

const US: i32 = 10;
const CLIENT: i32 = 100;

/// A planted stream; times follow the order of the calls, 10 ns apart unless stated.
#[derive(Default)]
struct Stream {
    events: Vec<Event>,
    time: u64,
}

impl Stream {
    fn at(&mut self, cpu: usize, kind: Kind) -> &mut Self {
        self.time += 10;
        self.events.push(Event { time: self.time, cpu, kind });
        self
    }

    fn fork(&mut self, by_pid: i32, pid: i32) -> &mut Self {
        self.at(0, Kind::Fork { pid, tid: pid, by_pid, by_tid: by_pid })
    }

    fn thread(&mut self, pid: i32, tid: i32) -> &mut Self {
        self.at(0, Kind::Fork { pid, tid, by_pid: pid, by_tid: pid })
    }

    fn exec(&mut self, pid: i32) -> &mut Self {
        self.at(0, Kind::Exec { pid })
    }

    /// `tid` of `pid` runs for `nanos` on `cpu`.
    fn run(&mut self, cpu: usize, pid: i32, tid: i32, nanos: u64) -> &mut Self {
        self.at(cpu, Kind::On { pid, tid });
        self.time += nanos - 10;
        self.at(cpu, Kind::Off { pid, tid, next: 0 })
    }

    /// `tid` runs for `nanos`, and is released before it leaves the CPU.
    fn run_and_exit(&mut self, cpu: usize, pid: i32, tid: i32, nanos: u64) -> &mut Self {
        self.at(cpu, Kind::On { pid, tid });
        self.time += nanos - 10;
        self.at(cpu, Kind::Off { pid: RELEASED, tid: RELEASED, next: 0 })
    }

    fn sum(&mut self, daemons: &[i32]) -> Result<LaunchCpu> {
        self.sum_of(Client::Child(CLIENT), &[], daemons)
    }

    fn sum_of(&mut self, client: Client, own: &[i32], daemons: &[i32]) -> Result<LaunchCpu> {
        let end = Stamp(self.time + 10);
        sum(&mut self.events.clone(), Stamp(0), end, Roots { launcher: US, client, daemons, own })
    }
}

fn total(tree: &Tree) -> i64 {
    tree.cpu().0
}

#[test]
fn a_client_alone() {
    let mut stream = Stream::default();
    stream.fork(US, CLIENT).exec(CLIENT).run(0, CLIENT, CLIENT, 500).run_and_exit(1, CLIENT, CLIENT, 300);
    let sums = stream.sum(&[]).unwrap();
    let client = &sums.client.processes[0];
    assert_eq!((client.pid, client.cpu, client.images.len()), (CLIENT, Nanos(800), 1));
    assert_eq!((sums.client.processes.len(), sums.daemons.processes.len()), (1, 0));
}

#[test]
fn a_double_forked_grandchild_belongs_to_the_client_after_its_parent_is_gone() {
    let mut stream = Stream::default();
    stream.fork(US, CLIENT).fork(CLIENT, 101).fork(101, 102);
    stream.run_and_exit(0, 101, 101, 100).run_and_exit(0, CLIENT, CLIENT, 100);
    stream.fork(102, 103).run(1, 103, 103, 1000).run(1, 102, 102, 50);
    let sums = stream.sum(&[]).unwrap();
    assert_eq!(total(&sums.client), 1250);
}

#[test]
fn threads_count_for_their_process() {
    let mut stream = Stream::default();
    stream.fork(US, CLIENT).thread(CLIENT, 101).thread(CLIENT, 102);
    stream.run(1, CLIENT, 101, 100).run_and_exit(0, CLIENT, CLIENT, 40).run_and_exit(1, CLIENT, 101, 60);
    stream.run_and_exit(1, CLIENT, 102, 70);
    let sums = stream.sum(&[]).unwrap();
    assert_eq!((total(&sums.client), sums.client.processes.len()), (270, 1));
}

#[test]
fn the_first_mapping_after_an_exec_names_the_program() {
    let mut stream = Stream::default();
    stream.fork(US, CLIENT).thread(CLIENT, 101);
    stream.exec(CLIENT);
    stream.at(0, Kind::Map { pid: CLIENT, device: 0, inode: 0, path: "[vdso]".into() });
    stream.at(0, Kind::Map { pid: CLIENT, device: 9, inode: 77, path: "/usr/sbin/runc".into() });
    stream.at(0, Kind::Map { pid: CLIENT, device: 9, inode: 78, path: "/lib/libc.so".into() });
    stream.run_and_exit(0, CLIENT, CLIENT, 40);
    let sums = stream.sum(&[]).unwrap();
    let runc = Image { path: Some("/usr/sbin/runc".into()), device: 9, inode: 77 };
    assert_eq!(sums.client.processes[0].images, [runc]);
}

#[test]
fn a_pid_used_twice_is_two_processes() {
    let mut stream = Stream::default();
    stream.fork(US, CLIENT).fork(CLIENT, 101).run_and_exit(0, 101, 101, 100);
    // The same id again, for a process that does not belong to the client.
    stream.fork(7, 101).run(0, 101, 101, 5000).run_and_exit(0, CLIENT, CLIENT, 40);
    // The client's id again, after it has been reaped.
    stream.fork(7, CLIENT).run(0, CLIENT, CLIENT, 7000);
    let sums = stream.sum(&[]).unwrap();
    assert_eq!((total(&sums.client), sums.client.processes.len()), (140, 2));
}

#[test]
fn daemons_count_with_what_they_fork_and_with_all_their_threads() {
    let mut stream = Stream::default();
    stream.fork(US, CLIENT).run(0, CLIENT, CLIENT, 30);
    stream.run(1, 50, 50, 100).run(1, 50, 51, 200).thread(50, 52).run(1, 50, 52, 300);
    stream.fork(60, 61).exec(61).fork(61, 62).run_and_exit(0, 61, 61, 1000).run(0, 62, 62, 10_000);
    stream.run(1, 60, 60, 50).run(1, 3, 3, 900);
    let sums = stream.sum(&[50, 60]).unwrap();
    assert_eq!((total(&sums.client), total(&sums.daemons)), (30, 11_650));
    let pids: Vec<i32> = sums.daemons.processes.iter().map(|process| process.pid).collect();
    assert_eq!(pids, [50, 60, 61, 62]);
}

/// Two containers of one daemon at the same moment, each with a shim, a runtime and a first process, and a program that the
/// daemon starts for both.
#[test]
fn overlapping_launches_have_clients_and_shims_of_their_own_and_share_the_daemon() {
    let mut stream = Stream::default();
    let by = |stream: &mut Stream, thread, pid| {
        stream.at(0, Kind::Fork { pid, tid: pid, by_pid: US, by_tid: thread });
    };
    by(&mut stream, 11, 100);
    by(&mut stream, 12, 200);
    stream.run(0, 50, 50, 4000).fork(50, 110).fork(50, 210).fork(50, 300);
    // The runtime is forked by the shim, and the first process by the runtime.
    stream.fork(110, 111).fork(210, 211).fork(111, 112).fork(211, 212);
    for (pid, nanos) in [(100, 20), (110, 30), (111, 40), (112, 50), (300, 900)] {
        stream.run(0, pid, pid, nanos);
    }
    for (pid, nanos) in [(200, 200), (210, 300), (211, 400), (212, 500)] {
        stream.run(1, pid, pid, nanos);
    }
    let totals = |sums: &LaunchCpu| (total(&sums.client), total(&sums.own), total(&sums.daemons));
    let first = stream.sum_of(Client::Children(11), &[112], &[50]).unwrap();
    let second = stream.sum_of(Client::Children(12), &[212], &[50]).unwrap();
    // What is not known to be its own is the daemon's, the other container's shim included.
    assert_eq!(totals(&first), (20, 120, 4000 + 900 + 1200));
    assert_eq!(totals(&second), (200, 1200, 4000 + 900 + 120));
    let both = stream.sum_of(Client::Launcher, &[112, 212], &[50]).unwrap();
    assert_eq!(totals(&both), (0, 1320, 4900));
}

#[test]
fn a_process_of_the_container_that_is_older_than_the_window_is_a_root_of_its_own() {
    let mut stream = Stream::default();
    // The shim of a running container starts a second process in it; the monitor of another one descends from the client.
    stream.fork(US, CLIENT).fork(CLIENT, 101).fork(70, 71).run(0, 70, 70, 100).run(0, 71, 71, 50);
    stream.run(0, 101, 101, 7).run(0, 72, 72, 1000);
    let sums = stream.sum_of(Client::Child(CLIENT), &[70, 101, 999], &[50]).unwrap();
    assert_eq!((total(&sums.client), total(&sums.own), total(&sums.daemons)), (7, 150, 0));
}

#[test]
fn the_launcher_and_the_idle_task_are_nobodys_cost() {
    let mut stream = Stream::default();
    stream.fork(US, CLIENT).run(0, US, US, 400).run(0, 0, 0, 9000).run(0, CLIENT, CLIENT, 20);
    let sums = stream.sum(&[]).unwrap();
    assert_eq!((total(&sums.client), total(&sums.daemons)), (20, 0));
}

#[test]
fn who_runs_at_either_end_of_the_window_counts_for_the_part_inside() {
    let mut stream = Stream { time: 990, ..Stream::default() };
    // 50 was on CPU 1 when the window began at 900; CLIENT is still on CPU 0 when it ends.
    stream
        .at(1, Kind::Off { pid: 50, tid: 50, next: 0 })
        .fork(US, CLIENT)
        .at(0, Kind::On { pid: CLIENT, tid: CLIENT });
    let end = Stamp(stream.time + 123);
    let roots = Roots { launcher: US, client: Client::Child(CLIENT), daemons: &[50], own: &[] };
    let sums = sum(&mut stream.events, Stamp(900), end, roots).unwrap();
    assert_eq!((total(&sums.daemons), total(&sums.client)), (100, 123));
}

#[test]
fn a_switch_is_charged_to_the_one_that_comes_unless_the_cpu_was_idle() {
    let mut stream = Stream::default();
    stream.fork(US, CLIENT).run(0, CLIENT, CLIENT, 100).run(0, CLIENT, CLIENT, 100);
    stream.at(0, Kind::On { pid: 7, tid: 7 }).at(0, Kind::Off { pid: 7, tid: 7, next: CLIENT });
    stream.run(0, CLIENT, CLIENT, 100);
    let sums = stream.sum(&[]).unwrap();
    assert_eq!(total(&sums.client), 310);
}

#[test]
fn a_released_task_that_runs_again_is_not_guessed_at() {
    let mut stream = Stream::default();
    stream.fork(US, CLIENT).run_and_exit(0, CLIENT, CLIENT, 100).run(0, RELEASED, RELEASED, 30);
    let sums = stream.sum(&[]).unwrap();
    assert_eq!(total(&sums.client), 100);
}

#[test]
fn lost_records_give_no_sum() {
    let mut stream = Stream::default();
    stream.fork(US, CLIENT).at(0, Kind::Lost { count: 3 }).run(0, CLIENT, CLIENT, 100);
    assert_eq!(stream.sum(&[]).unwrap_err().to_string(), "3 records were lost on CPU 0");
}

#[test]
fn a_loss_before_the_window_is_no_loss() {
    let mut stream = Stream::default();
    stream.at(0, Kind::Lost { count: 3 }).fork(US, CLIENT).run(0, CLIENT, CLIENT, 100);
    assert_eq!(total(&stream.sum(&[]).unwrap().client), 100);
}

#[test]
fn a_client_that_was_never_seen_gives_no_sum() {
    let mut stream = Stream::default();
    stream.fork(7, CLIENT).run(0, CLIENT, CLIENT, 100);
    assert_eq!(stream.sum(&[]).unwrap_err().to_string(), "the start of process 100 was not recorded");
}

proptest! {
    /// In every case, each time on a CPU is in exactly one account.
    #[test]
    fn no_time_is_lost_or_counted_twice(
        stays in proptest::collection::vec((0usize..3, 0usize..6, 20u64..1000), 1..80),
        parents in proptest::collection::vec(0usize..6, 5),
    ) {
        let pids = [CLIENT, 101, 102, 103, 104, 105];
        let mut stream = Stream::default();
        stream.fork(US, CLIENT);
        for (index, parent) in parents.iter().enumerate() {
            // A parent is older than its child, or is a daemon.
            let parent = if *parent <= index { pids[*parent] } else { 50 };
            stream.fork(parent, pids[index + 1]);
        }
        let mut expected = 0;
        for &(cpu, who, nanos) in &stays {
            stream.run(cpu, pids[who], pids[who], nanos);
            expected += nanos as i64;
        }
        let sums = stream.sum(&[50]).unwrap();
        prop_assert_eq!(total(&sums.client) + total(&sums.daemons), expected);
        let sums = stream.sum_of(Client::Child(CLIENT), &[pids[5]], &[50]).unwrap();
        prop_assert_eq!(total(&sums.client) + total(&sums.own) + total(&sums.daemons), expected);
    }
}
