//! Reads or writes at random places of one file, one at a time or several in flight.
//!
//! An operation's time is from before it is submitted until its end is seen. The time of all is from before the first to
//! after the last, and after the sync where there is one; it includes two readings of the clock for each operation, and for a
//! write its mark, one cache line in 4 KiB, or with io_uring copying its bytes into the buffer of an operation that ended.

use std::cell::{Cell, RefCell};
use std::fs::{File, OpenOptions};
use std::io;
use std::num::NonZeroU64;
use std::os::fd::AsFd;
use std::path::Path;

use dunnage_orders::files::{Class, Direction, Random, Scattered};

use super::channel::Channel;
use super::content::{Aligned, Content};
use super::transfer::{content_for, numbered};
use super::watch::Watch;
use super::{Calls, failure, unsupported};
use crate::outcome::{Distribution, Failure};
use crate::stats::Rng;
use crate::sys::clock;
use crate::sys::ring::DEEPEST;
use crate::units::Stamp;

/// The most bytes in flight.
const IN_FLIGHT: u64 = 1 << 30;
/// Buffers begin at pages.
const PAGE: usize = 4096;

/// Reads or writes within the file numbered 0, which was written before.
///
/// # Errors
/// What ended it.
pub fn random(place: &Path, asked: Scattered) -> Result<Random, Failure> {
    asked.class.check(asked.size, asked.size)?;
    if asked.direction == Direction::Read && asked.class == Class::Synced {
        return Err(unsupported("a read is `direct` or `cached`".to_owned()));
    }
    if asked.depth == 0 || asked.depth > DEEPEST || u64::from(asked.depth) * asked.size > IN_FLIGHT {
        let reason =
            format!("the depth is 1 to {DEEPEST}, and at most 1 GiB is in flight: not {}", asked.depth);
        return Err(unsupported(reason));
    }
    let path = numbered(place, 0);
    let mut options = OpenOptions::new();
    options.read(true).write(asked.direction == Direction::Write);
    let file = asked.class.open(&path, &mut options);
    let file = file.map_err(|error| asked.class.failure("cannot open", &path, &error))?;
    let length = file.metadata().map_err(|error| failure("cannot read the size of", &path, &error))?.len();
    let Some(places) = NonZeroU64::new(length / asked.size) else {
        return Err(Failure::environment(format!(
            "`{}` has {length} bytes, fewer than one operation",
            path.display()
        )));
    };
    let mut channel = Channel::new(asked.io, asked.depth)?;
    let course = Course::new(&asked, places);
    let (size, stride) = (asked.size as usize, (asked.size as usize).next_multiple_of(PAGE));
    let mut memory = Aligned::random(stride * asked.depth as usize, 2);
    let mut buffers: Vec<_> =
        memory.bytes().chunks_exact_mut(stride).map(|buffer| &mut buffer[..size]).collect();
    let mut watch = Watch::default();
    let done = watch.time(|| {
        course.run(&mut channel, &file, &mut buffers)?;
        if asked.class == Class::Synced { file.sync_data() } else { Ok(()) }
    });
    let operations = course.ended.get();
    let doing =
        format!("cannot {}, after {operations} operations of {} bytes,", verb(asked.direction), asked.size);
    done.0.map_err(|error| asked.class.failure(doing, &path, &error))?;
    Ok(Random { operations, took: watch.took(), cpu: watch.cpu(), random: course.times.into_inner() })
}

fn verb(direction: Direction) -> &'static str {
    match direction {
        Direction::Read => "read",
        Direction::Write => "write",
    }
}

/// Operations that have begun and ended. The ends and the next beginnings are reported separately, so all of it is in
/// cells.
struct Course<'a> {
    asked: &'a Scattered,
    places: NonZeroU64,
    random: RefCell<Rng>,
    content: RefCell<Content>,
    first: Cell<Option<Stamp>>,
    /// When the operation in each buffer began.
    begun_at: Vec<Cell<Stamp>>,
    begun: Cell<u64>,
    ended: Cell<u64>,
    times: RefCell<Distribution>,
}

impl<'a> Course<'a> {
    fn new(asked: &'a Scattered, places: NonZeroU64) -> Course<'a> {
        Course {
            asked,
            places,
            random: RefCell::new(Rng::new(asked.seed)),
            content: RefCell::new(content_for(asked.size, u64::MAX)),
            first: Cell::new(None),
            begun_at: vec![Cell::new(Stamp(0)); asked.depth as usize],
            begun: Cell::new(0),
            ended: Cell::new(0),
            times: RefCell::new(Distribution::of_durations()),
        }
    }

    /// The place of the next operation; none if the limit is reached.
    fn next(&self) -> Option<u64> {
        let now = clock::now();
        let first = self.first.get().unwrap_or(now);
        self.first.set(Some(first));
        if self.asked.limit.is_reached(self.begun.get(), now.since(first)) {
            return None;
        }
        self.begun.update(|begun| begun + 1);
        Some(self.random.borrow_mut().below(self.places) * self.asked.size)
    }

    fn begin(&self, index: usize) {
        self.begun_at[index].set(clock::now());
    }

    fn end(&self, index: usize, length: usize) -> io::Result<()> {
        self.times.borrow_mut().record(clock::now().since(self.begun_at[index].get()).0 as u64);
        self.ended.update(|ended| ended + 1);
        match length as u64 == self.asked.size {
            true => Ok(()),
            false => Err(io::Error::other(format!("only {length} bytes were transferred"))),
        }
    }

    fn run(&self, channel: &mut Channel, file: &File, buffers: &mut [&mut [u8]]) -> io::Result<()> {
        let mut content = self.content.borrow_mut();
        if let Channel::Ring(ring) = channel {
            let next = |index, buffer: &mut [u8]| {
                let at = self.next()?;
                if self.asked.direction == Direction::Write {
                    buffer.copy_from_slice(content.block(0, at, buffer.len()));
                }
                self.begin(index);
                Some(at)
            };
            return ring.many(self.asked.direction, file.as_fd(), buffers, next, |index, length| {
                self.end(index, length)
            });
        }
        let buffer = &mut *buffers[0];
        while let Some(at) = self.next() {
            let length = match self.asked.direction {
                Direction::Read => {
                    self.begin(0);
                    channel.read_at(file, buffer, at)?
                }
                Direction::Write => {
                    let block = content.block(0, at, buffer.len());
                    self.begin(0);
                    channel.write_at(file, block, at)?
                }
            };
            self.end(0, length)?;
        }
        Ok(())
    }
}
