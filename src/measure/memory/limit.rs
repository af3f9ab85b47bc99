//! `memory-limit`: containers with a memory limit, halved until it is known with which they start, and with which the kernel leaves
//! them alone.

use dunnage_orders::network::Usage;

use super::{program, with_program};
use crate::experiment::Setting;
use crate::experiment::memory::limit::{STEP, names};
use crate::measure::{Stamps, sample_of, variables_of};
use crate::outcome::{Abort, Failure, FailureClass, Sample};
use crate::subject::limits::Limits;
use crate::subject::ramp::Ramp;
use crate::subject::{ContainerRequest, Resident, RunContext, Subject};
use crate::sys::memory::charged::Pressure;
use crate::units::Nanos;

/// A container that does not start with as much does not start because of something else.
const ENOUGH: u64 = 4 << 30;

/// How long a program of the user's is watched, once it has started or answered.
const FILLS: Nanos = Nanos::from_millis(1_000);

/// A container that ran.
#[derive(Clone, Copy)]
struct Ran {
    took: Nanos,
    pressure: Pressure,
}

/// A container that did not.
struct Fell {
    why: Failure,
    is_killed: bool,
}

/// A limit, in steps, and the container that ran with it.
type Found = (u64, Ran);

struct Tries<'a> {
    subject: &'a dyn Subject,
    setting: &'a Setting,
    run: &'a RunContext,
    made: i64,
    /// The highest limit with which none ran, and the lowest with which one did.
    fell: Option<(u64, Fell)>,
    lowest: Option<Found>,
}

impl Tries<'_> {
    /// A container with a limit of so many steps, gone again; none if it did not run.
    fn with(&mut self, steps: u64) -> Result<Option<Ran>, Abort> {
        match self.one(Some(steps * STEP))? {
            Ok(ran) => {
                if self.lowest.is_none_or(|(least, _)| steps < least) {
                    self.lowest = Some((steps, ran));
                }
                Ok(Some(ran))
            }
            Err(fell) => {
                if self.fell.as_ref().is_none_or(|(most, _)| steps > *most) {
                    self.fell = Some((steps, fell));
                }
                Ok(None)
            }
        }
    }

    fn one(&mut self, memory: Option<u64>) -> Result<Result<Ran, Fell>, Abort> {
        self.made += 1;
        let (subject, run) = (self.subject, self.run);
        let machine = subject.machine();
        let limits = Limits { memory, ..Limits::default() };
        let own = program(self.setting)?;
        let has_program = own.is_some();
        let mut ramp = match own {
            Some(own) => with_program(own, variables_of(self.setting, run)?.to_vec(), limits, (subject, run)),
            None => {
                let request =
                    ContainerRequest { limits, program: Resident::Serves, ..ContainerRequest::default() };
                Ramp::new(subject, request, (Box::new(|one| one.ready().map(drop)), run))
            }
        };
        let (killed, began) = (machine.killed(), machine.now(run));
        let mut took = Nanos(0);
        let ran = ramp.step(1).and_then(|()| {
            took = machine.now(run).since(began);
            if has_program {
                machine.rest(run, FILLS)?;
                // One that has ended does not answer.
                ramp.alive().iter_mut().try_for_each(|one| one.ask(Usage {}, Nanos(0)).map(drop))?;
            }
            Ok(())
        });
        match ran {
            Ok(()) => {
                let pressure =
                    ramp.alive().last_mut().map(|one| machine.pressure(one.first_process(), one.name()));
                let pressure = pressure.unwrap_or_else(|| Err(Failure::environment("no container runs")))?;
                ramp.step(0)?;
                // Its first process may live on without another one that it needs.
                if pressure.killed > 0 {
                    let why = Failure::new(
                        FailureClass::Crash,
                        "the kernel killed a process in it for want of memory",
                    );
                    return Ok(Err(Fell { why, is_killed: true }));
                }
                Ok(Ok(Ran { took, pressure }))
            }
            Err(Abort::Failed(why)) if is_about_memory(&why) => {
                Ok(Err(Fell { why, is_killed: machine.killed() > killed }))
            }
            Err(other) => Err(other),
        }
    }

    /// The smallest limit with which a container runs and fulfils this: more than `none`, and at most that of `all`.
    fn smallest(&mut self, mut none: u64, mut all: Found, fulfils: fn(&Ran) -> bool) -> Result<Found, Abort> {
        while all.0 - none > 1 {
            let middle = u64::midpoint(none, all.0);
            match self.with(middle)?.filter(fulfils) {
                Some(ran) => all = (middle, ran),
                None => none = middle,
            }
        }
        Ok(all)
    }
}

/// Whether a container may have failed for want of memory. One that ran without its limit says nothing.
fn is_about_memory(why: &Failure) -> bool {
    !matches!(why.class, FailureClass::Treatment | FailureClass::Permission)
}

/// Takes a sample.
pub fn measure(subject: &mut dyn Subject, setting: &Setting, run: &RunContext) -> Result<Sample, Abort> {
    let mut tries = Tries { subject: &*subject, setting, run, made: 0, fell: None, lowest: None };
    // What an engine does once is no part of any start.
    tries.one(None)?.map_err(|fell| fell.why)?;
    let free = tries.one(None)?.map_err(|fell| fell.why)?;
    let is_left_alone = |ran: &Ran| ran.pressure.hits == 0;
    let mut steps = free.pressure.peak.map_or(64, |peak| peak.unsigned_abs() / STEP + 1);
    let ample = loop {
        if let Some(ran) = tries.with(steps)?.filter(is_left_alone) {
            break (steps, ran);
        }
        if steps * STEP >= ENOUGH {
            let why = tries.fell.take().map(|(_, fell)| fell.why);
            let pressed = || Failure::environment("the kernel reclaims from a container with any limit");
            return Err(why.unwrap_or_else(pressed).into());
        }
        steps *= 2;
    };
    let none = tries.fell.as_ref().map_or(0, |(steps, _)| *steps);
    let comfortable = tries.smallest(none, ample, is_left_alone)?;
    // The same search came upon limits with which containers run and are not left alone.
    let none = tries.fell.as_ref().map_or(0, |(steps, _)| *steps);
    let lowest = tries.lowest.filter(|lowest| lowest.0 > none).unwrap_or(comfortable);
    let smallest = tries.smallest(none, lowest, |_| true)?;
    // What failed may have failed for its limit only if one without still starts: an engine that has ended refuses all.
    tries.one(None)?.map_err(|fell| fell.why)?;
    let bytes = |steps: u64| (steps * STEP) as i64;
    let mut sample = sample_of(Stamps::new(), &[]);
    sample.extend([
        (names::SMALLEST, bytes(smallest.0)),
        (names::COMFORTABLE, bytes(comfortable.0)),
        (names::TRIES, tries.made),
        (names::STARTED, free.took.0),
        (names::STARTED_SMALLEST, smallest.1.took.0),
        (names::STARTED_COMFORTABLE, comfortable.1.took.0),
    ]);
    sample.extend(free.pressure.peak.map(|peak| (names::PEAK, peak)));
    if let Some((_, Fell { why, is_killed })) = tries.fell {
        let said = run.variables.hidden(why.words.as_deref().unwrap_or(&why.reason));
        let said = said.strip_prefix("Error response from daemon: ").unwrap_or(&said);
        let what = if is_killed { "killed" } else { "refused" };
        sample.add(names::BELOW, format!("{what}: {said}"));
    }
    Ok(sample)
}
