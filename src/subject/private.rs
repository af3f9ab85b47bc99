//! A subject for which dunnage itself makes what the engine works with: a private daemon, or a private store.
//! It is made when the subject is prepared, and ends with it; until then only programs have been asked for
//! their versions. The engine's own subject does the rest.

use std::any::Any;

use super::component::{Client, run_within};
use super::draft::{Draft, Verbs};
use super::{Description, Entrypoint, Launch, ObjectKind, ObjectSpec, RunContext, Spec, Subject, resources};
use crate::image::fat;
use crate::outcome::{Abort, Failure, OrEnvironment};
use crate::resource::{Found, Held};
use crate::subject::Object;
use crate::sys::place;
use crate::units::Nanos;

/// Makes what the engine works with.
pub(super) type Begin = Box<dyn Fn(&RunContext) -> Result<Begun, Abort> + Send + Sync>;

/// An engine that works with things of dunnage's.
pub(super) struct Begun {
    /// The engine's subject; it is dropped first.
    pub subject: Box<dyn Subject>,
    /// What it works with, in the order in which it is undone.
    #[expect(dead_code, reason = "they are held, and undone when they are dropped")]
    pub holds: Vec<Box<dyn Any + Send + Sync>>,
    /// Facts about these things.
    pub notes: Vec<(&'static str, String)>,
}

/// How long an engine may take to save an image, or to load it.
const COPYING: Nanos = Nanos::from_millis(600_000);

/// Copies the image that a specification names, if it is not one of dunnage's, from the user's engine.
pub(super) fn copy_image(spec: &Spec, from: &Client, to: &Client, run: &RunContext) -> Result<(), Abort> {
    let is_foreign = |name: &&str| !["small", fat::NAME].contains(name);
    let Some(reference) = spec.get("image").filter(is_foreign) else { return Ok(()) };
    let copied = run.owner.directory(|directory| {
        let archive = directory.join("image.tar");
        let path = archive.to_string_lossy();
        place::make(directory).or_environment(format_args!("cannot make `{}`", directory.display()))?;
        let steps: [(&Client, &[&str]); 2] =
            [(from, &["save", "--output", &path, reference]), (to, &["load", "--input", &path])];
        for (client, words) in steps {
            client
                .program(words)
                .and_then(|program| run_within(COPYING, &program))
                .map_err(|why| why.reason)
                .or_environment(format_args!(
                    "cannot copy the image `{reference}` from the user's {}",
                    spec.name
                ))?;
        }
        Ok(())
    });
    copied.map(drop)
}

/// The subject.
pub(super) struct Private {
    about: Description,
    begin: Begin,
    begun: Option<Begun>,
}

impl Private {
    /// A subject with this description, until it is prepared. Then its components and facts are those of the
    /// engine that was started, and it offers what both offer.
    pub fn new(about: Description, begin: Begin) -> Private {
        Private { about, begin, begun: None }
    }

    fn subject(&self) -> Result<&dyn Subject, Failure> {
        let begun = self.begun.as_ref().map(|begun| begun.subject.as_ref());
        begun.ok_or_else(|| Failure::environment(format!("`{}` is not prepared", self.about.spec)))
    }
}

impl Subject for Private {
    fn about(&self) -> &Description {
        &self.about
    }

    fn verbs<'a>(&'a self, draft: Draft<'a>) -> Result<Box<dyn Verbs + 'a>, Abort> {
        self.subject()?.verbs(draft)
    }

    fn prepare(&mut self, run: &RunContext) -> Result<(), Abort> {
        if self.begun.is_none() {
            self.begun = Some((self.begin)(run)?);
        }
        let Some(begun) = &mut self.begun else { return Ok(()) };
        begun.subject.prepare(run)?;
        let own = begun.subject.about().clone();
        let mut facts = own.facts;
        facts.notes.retain(|(name, _)| begun.notes.iter().all(|(new, _)| new != name));
        facts.notes.extend(begun.notes.iter().cloned());
        let spec = self.about.spec.clone();
        let offers = own.offers.into_iter().filter(|need| self.about.offers.contains(need)).collect();
        self.about = Description { spec, facts, offers, ..own };
        Ok(())
    }

    fn fulfil(&mut self, entrypoint: Entrypoint<'_>, run: &RunContext) -> Result<Launch, Abort> {
        match &mut self.begun {
            Some(begun) => begun.subject.fulfil(entrypoint, run),
            None => Err(self.subject().err().map_or(Abort::Interrupted, Abort::Failed)),
        }
    }

    fn make(&self, asked: ObjectSpec<'_>, run: &RunContext) -> Result<Held<Object>, Abort> {
        if !self.about.makes.contains(&asked.kind()) {
            return Err(resources::not_made(&self.about.spec, asked.kind()).into());
        }
        self.subject()?.make(asked, run)
    }

    fn daemons(&self) -> Result<&[i32], &str> {
        self.begun.as_ref().map_or(Ok(&[]), |begun| begun.subject.daemons())
    }

    fn own_store(&self) -> Option<usize> {
        self.begun.as_ref().map(|begun| std::ptr::from_ref(begun).addr())
    }

    /// After a kill nothing is prepared, and what was made has gone with the daemon or the store.
    fn unmake(&self, object: ObjectKind, name: &str, run: &str) -> Result<Found, Failure> {
        self.subject().map_or(Ok(Found::No), |subject| subject.unmake(object, name, run))
    }

    fn remove(&self, name: &str) -> Result<Found, Failure> {
        self.subject().map_or(Ok(Found::No), |subject| subject.remove(name))
    }
}
