//! A scripted subject: its times come from a seeded generator, and nothing is started. It tests the whole
//! pipeline exactly and without a clock. Hidden from users.

mod files;
mod machine;
mod memory;
mod network;
mod work;

use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use dunnage_orders::{Order, Reply};

use self::files::Files;
use self::network::{End, Served};
use self::work::Clock;
use super::draft::{Draft, Entered, Published, Span, Verbs};
use super::machine::Machine;
use super::resources::{self, Object, ObjectKind, ObjectSpec};
use super::spec::parse_duration;
use super::treatment::Expected;
use super::{
    Access, ContainerRequest, Cpu, Description, Entrypoint, Facts, Kind, Launch, Need, Observed, Place, Port,
    RunContext, Spec, Subject, Unavailable, kinds,
};
use crate::outcome::{Abort, Failure, FailureClass, OrEnvironment};
use crate::probe::message::{Inside, Message, Seen};
use crate::resource::{Found, Held};
use crate::stats::Rng;
use crate::sys::block_device::{Counters, Number};
use crate::sys::memory::charged::Pressure;
use crate::units::{Nanos, Stamp};

/// Its name on the command line.
pub const NAME: &str = "fake";

/// The time that passes after each scripted event.
const PAUSE: Nanos = Nanos::from_millis(1);

/// The kind `fake`.
pub static KIND: Kind =
    Kind { declared: &kinds::FAKE, as_installed: &[], equalised: &[], build, sweep: super::leaves_nothing };

struct Fake {
    time: f64,
    ports: u16,
    noise: f64,
    settles: u64,
    drift: f64,
    spike: u64,
    fail: u64,
    hang: u64,
    wrong: bool,
    label: String,
    about: Description,
    script: Mutex<Script>,
}

/// The position in its script, and what it has made.
#[derive(Default)]
struct Script {
    launches: u64,
    rng: Option<Rng>,
    images: BTreeMap<String, Image>,
    /// Directories that stand for filesystems in memory.
    memory: Vec<PathBuf>,
    device: Counters,
    served: Served,
    /// How the limit of the last container has worked.
    pressure: Pressure,
    /// Files that were made on the filesystem of images.
    made: u64,
}

/// A scripted image.
#[derive(Clone, Default)]
struct Image {
    layers: usize,
    files: BTreeMap<PathBuf, u64>,
    /// Whether it had a container.
    is_used: bool,
}

/// What the first container on an image takes for each of its files, in seconds.
const OF_A_FILE: f64 = 1e-4;
/// The address of all scripted containers and hosts, and the device of all scripted files.
const OWN: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 1);
const DEVICE: Number = (254, 0);

/// The sum of the planted effects of all factors that are high, in seconds.
fn planted(spec: &Spec) -> Option<f64> {
    let one = |pair: &str| {
        let (factors, time) = pair.split_once('=')?;
        let is_high = factors.chars().all(|factor| spec.get(&factor.to_string()) == Some("high"));
        let (sign, time) = time.strip_prefix('-').map_or((1.0, time), |time| (-1.0, time));
        Some(if is_high { sign * parse_duration(time)? } else { 0.0 })
    };
    spec.get("effects").map_or(Some(0.0), |all| all.split(';').map(one).sum())
}

fn build(spec: &Spec, _: &Place) -> Result<Box<dyn Subject>, Unavailable> {
    let number = |key: &str| spec.get(key).and_then(|value| value.parse::<f64>().ok());
    let effects = planted(spec).ok_or_else(|| Unavailable::because("its `effects` cannot be read"))?;
    let whole = |key: &str| number(key).map_or(0, |value| value as u64);
    let seconds = |key: &str| spec.get(key).and_then(parse_duration);
    let ports = spec.published();
    let of_ports = f64::from(ports) * seconds("per_port").unwrap_or(0.0);
    Ok(Box::new(Fake {
        time: seconds("time").unwrap_or(0.001) + effects + of_ports,
        ports,
        noise: number("noise").unwrap_or(3.0) / 100.0,
        drift: number("drift").unwrap_or(0.0) / 100.0,
        settles: whole("settles"),
        spike: whole("spike"),
        fail: whole("fail"),
        hang: whole("hang"),
        wrong: spec.get("treatment").is_some(),
        label: spec.shown(),
        about: Description {
            offers: [
                &Need::CONTAINER[..],
                &[Need::Address, Need::Ports, Need::Resolver, Need::Names, Need::Volumes, Need::Images],
            ]
            .concat(),
            makes: &[ObjectKind::Volume, ObjectKind::Image, ObjectKind::Network],
            ..Description::new(
                spec,
                Facts { runtime: spec.runtime.clone(), ..Facts::default() },
                Expected::anything(),
            )
        },
        script: Mutex::new(Script {
            device: Counters { flushes: Some(0), ..Counters::default() },
            ..Script::default()
        }),
    }))
}

/// A hash that is the same in every run: FNV-1a, 64 bits.
fn number_of(text: &str) -> u64 {
    text.bytes()
        .fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}

impl Fake {
    fn script(&self) -> MutexGuard<'_, Script> {
        self.script.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The next scripted time, or why it fails.
    fn next(&self, run: &RunContext) -> Result<f64, Abort> {
        let mut script = self.script();
        script.launches += 1;
        let launches = script.launches;
        let every = |period: u64| period > 0 && launches.is_multiple_of(period);
        if every(self.fail) {
            let failure = Failure::new(FailureClass::Crash, format!("launch {launches} fails by its script"));
            let failure = failure.with_words(b"scripted engine: boom");
            return Err(Failure { took: Nanos::from_millis(1), ..failure }.into());
        }
        if self.hang > 0 && launches >= self.hang {
            let failure = Failure::new(FailureClass::Timeout, "hangs by its script");
            return Err(Failure { took: run.allowed, ..failure }.into());
        }
        if self.wrong {
            return Err(Failure::new(FailureClass::Treatment, "not as asked, by its script").into());
        }
        let rng = script.rng.as_mut().expect("`prepare` seeds the generator before anything is started");
        let noise = if launches <= self.settles { 10.0 * self.noise } else { self.noise };
        let mut total = self.time * (noise * rng.standard_normal()).exp();
        total *= 1.0 + self.drift * launches as f64;
        if every(self.spike) {
            total *= 10.0;
        }
        Ok(total)
    }

    /// The answer to an order that takes this long, as it travels.
    fn answer(&self, order: Entrypoint<'_>, total: f64) -> Result<String, Failure> {
        let Entrypoint::Work(work) = order else { return Ok(String::new()) };
        let mut script = self.script();
        let rng = script.rng.as_mut().expect("`prepare` seeds the generator before anything is started");
        let unknown = || Failure::new(FailureClass::Unsupported, Need::Work.lacking());
        let done = work::done(&work.order, total, rng).ok_or_else(unknown)?;
        serde_json::to_string(&Ok::<_, Failure>(done)).or_environment("an answer cannot be written")
    }

    /// A verb that takes this share of a launch, and so many seconds.
    fn verb(&self, run: &RunContext, share: f64, more: f64) -> Result<(Span, f64), Abort> {
        let total = self.next(run)?;
        let took = Nanos(((total * share + more) * 1e9) as i64);
        let began = run.pass(took + PAUSE);
        Ok((Span { began, ended: Stamp(began.0 + took.0 as u64) }, total))
    }
}

/// A scripted container.
struct OfScript<'a> {
    fake: &'a Fake,
    run: &'a RunContext,
    spent: Cpu,
    request: ContainerRequest,
    files: Files,
    end: End,
    /// What its launch took, in seconds.
    time: f64,
}

impl OfScript<'_> {
    /// Its files by what was asked for; those of an image are made anew for its first container.
    fn furnish(&mut self) -> f64 {
        let mut script = self.fake.script();
        let given = self.request.mounts.iter().find(|mount| mount.access == Access::Given);
        let in_memory = given.is_some_and(|mount| script.memory.contains(&mount.host));
        let of_host = given.is_some() || !self.request.volumes.is_empty();
        self.files.arrive = !in_memory && self.request.volumes.is_empty();
        self.files.factor = match self.request.image {
            _ if in_memory => 0.1,
            None if !of_host => 2.0,
            _ => 1.0,
        };
        let named = self.request.image.as_ref().and_then(|image| image.name()).map(str::to_owned);
        let Some(image) = named.and_then(|name| script.images.get_mut(&name)) else { return 0.0 };
        self.files.copies = true;
        (self.files.layers, self.files.sizes) = (image.layers, image.files.clone());
        if std::mem::replace(&mut image.is_used, true) {
            return 0.0;
        }
        let made = image.files.len() as u64;
        script.made += made;
        made as f64 * OF_A_FILE
    }
}

impl Verbs for OfScript<'_> {
    fn create(&mut self) -> Result<Span, Abort> {
        Ok(self.fake.verb(self.run, 0.3, 0.0)?.0)
    }

    fn start(&mut self) -> Result<Span, Abort> {
        let more = self.furnish();
        let (span, total) = self.fake.verb(self.run, 0.4, more)?;
        self.time = total;
        self.fake.script().pressure = memory::pressure(total, self.request.limits.memory)?;
        Ok(span)
    }

    fn exec(&mut self, order: Entrypoint<'_>) -> Result<Entered, Abort> {
        let (span, _) = self.fake.verb(self.run, 0.2, 0.0)?;
        let answer = self.fake.answer(order, span.took().seconds())?;
        let at = |share: f64| Stamp(span.began.0 + (span.took().0 as f64 * share) as u64);
        let (inside, seen) = (Inside::default(), Seen::default());
        let message = Message { entry: at(0.6), main: None, ready: at(0.65), inside, answer, seen };
        let treatment = vec![("root", "script".to_owned())];
        let took = span.took().seconds();
        let [client, engine] = [0.5, 0.2].map(|share| Nanos::from_seconds(took * share));
        self.spent += Cpu { client, engine, processes: 2, ..Cpu::default() };
        let client_cpu = Nanos(0);
        Ok(Entered { spawned: span.began, returned: span.ended, message, treatment, client_cpu })
    }

    fn stop(&mut self, _: u32) -> Result<Span, Abort> {
        Ok(self.fake.verb(self.run, 0.2, 0.0)?.0)
    }

    fn remove(&mut self) -> Result<Span, Abort> {
        Ok(self.fake.verb(self.run, 0.1, 0.0)?.0)
    }

    fn first_process(&mut self) -> Result<i32, Failure> {
        Err(Failure::new(FailureClass::Unsupported, "a scripted subject has no processes"))
    }

    fn own_account(&self) -> Option<Cpu> {
        Some(self.spent)
    }

    fn discard(&mut self) -> Result<Found, Failure> {
        Ok(Found::Yes)
    }

    fn ports(&mut self) -> Result<Vec<Published>, Failure> {
        let published = |port: &Port| Published { inside: port.number, host: (port.at, port.number).into() };
        Ok(self.request.ports.iter().map(published).collect())
    }

    fn hello(&mut self) -> Option<Message> {
        let at = self.run.pass(Nanos(0));
        let (inside, seen) = (Inside::default(), Seen::default());
        Some(Message { entry: at, main: None, ready: at, inside, answer: String::new(), seen })
    }

    fn reply(&mut self, order: &Order) -> Result<String, Abort> {
        let mut script = self.fake.script();
        let Script { rng, device, served, .. } = &mut *script;
        let rng = rng.as_mut().expect("`prepare` seeds the generator before anything is started");
        let mut clock = Clock { time: self.time, rng, passed: Nanos(0) };
        let answer = self.files.answer(order, &mut clock, device);
        let answer = answer.or_else(|| self.end.answer(order, &mut clock, served));
        let done = answer.ok_or_else(|| Failure::new(FailureClass::Unsupported, Need::Work.lacking()));
        let took = clock.passed;
        let began = self.run.pass(took + PAUSE);
        let reply = Reply { began, ended: Stamp(began.0 + took.0 as u64), cpu: Nanos(took.0 / 3), done };
        Ok(serde_json::to_string(&reply).or_environment("an answer cannot be written")?)
    }
}

impl Subject for Fake {
    fn about(&self) -> &Description {
        &self.about
    }

    fn verbs<'a>(&'a self, draft: Draft<'a>) -> Result<Box<dyn Verbs + 'a>, Abort> {
        let Draft { run, request, .. } = draft;
        Ok(Box::new(OfScript {
            fake: self,
            run,
            spent: Cpu::default(),
            request,
            files: Files::default(),
            end: End::default(),
            time: 0.0,
        }))
    }

    /// Names stand for what other subjects make.
    fn make(&self, asked: ObjectSpec<'_>, run: &RunContext) -> Result<Held<Object>, Abort> {
        let (kind, name) = (asked.kind().resource(), run.next_name());
        if !self.about.makes.contains(&asked.kind()) {
            return Err(resources::not_made(&self.about.spec, asked.kind()).into());
        }
        let record = resources::of_subject(kind, &self.about.spec, &name);
        if let ObjectSpec::Image(_, layers) = asked {
            run.pass(Nanos::from_seconds(self.next(run)?));
            let own = layers.iter().flatten();
            let files = own.map(|(path, bytes)| (Path::new("/").join(path), *bytes)).collect();
            let image = Image { layers: layers.len(), files, is_used: false };
            self.script().images.insert(name.clone(), image);
        }
        run.owner.make(kind, record, || Ok(Object::Named(name)))
    }

    fn unmake(&self, _: ObjectKind, _: &str, _: &str) -> Result<Found, Failure> {
        Ok(Found::No)
    }

    fn prepare(&mut self, run: &RunContext) -> Result<(), Abort> {
        self.script().rng.get_or_insert_with(|| Rng::for_stream(run.seed, number_of(&self.label)));
        Ok(())
    }

    fn fulfil(&mut self, order: Entrypoint<'_>, run: &RunContext) -> Result<Launch, Abort> {
        let total = self.next(run)?;
        let answer = self.answer(order, total)?;
        let spawned = run.pass(Nanos((total * 1.1 * 1e9) as i64) + PAUSE);
        let at = |share: f64| Stamp(spawned.0 + (total * share * 1e9) as u64);
        let message = Message {
            entry: at(0.6),
            main: matches!(order, Entrypoint::Task(super::Task::StartLibc)).then(|| at(0.62)),
            ready: at(0.65),
            inside: Inside::default(),
            answer,
            seen: Seen::default(),
        };
        let gone = at(1.1);
        Ok(Launch {
            spawned,
            returned: at(1.0),
            gone,
            look: Nanos(0),
            parts: Vec::new(),
            message,
            observed: Observed::of(Ok(Cpu {
                client: Nanos::from_seconds(total * 0.5),
                engine: Nanos::from_seconds(total * 0.2),
                processes: 3,
                port_helpers: self.ports.into(),
                ..Cpu::default()
            })),
            treatment: vec![("root", "script".to_owned())],
        })
    }

    fn remove(&self, _: &str) -> Result<Found, Failure> {
        Ok(Found::No)
    }

    fn host<'a>(&'a self, _: &'a dyn Subject) -> &'a dyn Subject {
        self
    }

    fn machine(&self) -> &dyn Machine {
        self
    }
}
