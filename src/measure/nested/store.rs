//! A small write and a read of it, in the innermost container and in the outer one, and how much of it came to the device.

use std::path::Path;

use dunnage_orders::Ask;
use dunnage_orders::files::{Class, Files, How, Io, Moved, Read, Write};

use super::{ALLOWED, Found, Nest};
use crate::experiment::nested::{INSIDE, STORED, names};
use crate::outcome::{Abort, Failure, FailureClass, Sample};
use crate::probe::message;
use crate::subject::{Entrypoint, Work};
use crate::units::Nanos;

/// How long the device is watched before: about as long as the write takes.
const QUIET: Nanos = Nanos::from_millis(20);
/// Others that write this part of it meanwhile leave nothing to be known.
const FOREIGN: u64 = 20;
/// Bytes of a call.
const BLOCK: u64 = 1 << 20;

fn how(class: Class) -> How {
    How { class, io: Io::Plain, block: BLOCK }
}

/// What is written and synced, and what is read from the page cache again.
fn orders(root: &str) -> (Write, Read) {
    let path = Path::new(root).join("dunnage-files");
    let files = Files { count: 1, bytes: STORED };
    let write = Write { path: path.clone(), files, how: how(Class::Synced) };
    (write, Read { path, count: 1, how: how(Class::Cached) })
}

impl Nest<'_> {
    /// Adds what files cost, in the inner container of this name that runs, and outside. An inner container whose root cannot be
    /// written has none.
    pub(super) fn stores(&mut self, name: &str, found: &Found, sample: &mut Sample) -> Result<(), Abort> {
        let machine = self.subject.machine();
        // What mounted the innermost root sees other paths than the host.
        let behind = match found.place {
            INSIDE => machine.behind(self.outer.first_process().ok(), Path::new(self.way.store())),
            _ => machine.behind(Some(found.pid), Path::new("/")),
        };
        let device = behind.and_then(|behind| behind.device);
        let (write, read) = orders(self.way.writable());
        let written = self.outer.ask(write, ALLOWED)?.done;
        let read_again = self.outer.ask(read, ALLOWED)?.done;
        let (write, read) = orders("/");
        sample.extend([(names::WROTE_OUTSIDE, written.took.0), (names::READ_OUTSIDE, read_again.took.0)]);
        // What is older than the write is not counted with it, nor is anything where others write as well.
        machine.settle_all();
        let first = device.and_then(|own| machine.device(own));
        machine.rest(self.run, QUIET)?;
        let before = device.and_then(|own| machine.device(own));
        let others = before.zip(first).and_then(|(before, first)| before.since(first));
        let is_quiet = others.is_some_and(|others| others.bytes_written < STORED / FOREIGN);
        let inside = self.entered(name, write)?;
        let after = device.and_then(|own| machine.device(own));
        let reached = after.zip(before).and_then(|(after, before)| after.since(before));
        let read_inside = self.entered(name, read)?;
        sample.extend([(names::WROTE, inside.took.0), (names::READ, read_inside.took.0)]);
        sample.extend(
            reached.filter(|_| is_quiet).map(|reached| (names::REACHED, reached.bytes_written as i64)),
        );
        Ok(())
    }

    /// What the probe says that carried out an order in an inner container.
    fn entered<O: Ask<Answer = Moved>>(&mut self, name: &str, order: O) -> Result<Moved, Abort> {
        let work = Work::new(order, ALLOWED);
        let words = self.way.enter(name, &Entrypoint::Work(&work).words(None));
        let done = self.execute("the inner engine enters no container", words, ALLOWED)?;
        let message = message::parse(done.output.as_bytes()).map_err(|why| {
            Failure::new(FailureClass::WrongOutput, why.to_string()).with_words(done.output.as_bytes())
        })?;
        let moved: Moved = message.answer()?;
        if moved.wrong > 0 || moved.bytes != STORED {
            let reason = format!("{} bytes were moved inside, {} of them wrong", moved.bytes, moved.wrong);
            return Err(Failure::new(FailureClass::WrongOutput, reason).into());
        }
        Ok(moved)
    }
}
