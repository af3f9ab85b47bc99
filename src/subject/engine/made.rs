//! What an engine makes for a run other than containers: networks, volumes and images, with the run in their
//! labels or name. Nothing else of these kinds is ever removed.

use super::image::LOADING_LARGE;
use super::{Engine, OUR_IMAGES, RUN_LABEL};
use crate::outcome::{Abort, Failure};
use crate::resource::{Found, Held};
use crate::subject::RunContext;
use crate::subject::resources::{
    Attachment, Object, ObjectKind, ObjectSpec, layered, load_image, of_subject,
};

impl Engine {
    pub(super) fn make_for(&self, asked: ObjectSpec<'_>, run: &RunContext) -> Result<Held<Object>, Abort> {
        let object = asked.kind();
        let image = match asked {
            ObjectSpec::Image(executable, layers) => Some(layered(executable, layers, run)),
            ObjectSpec::Network | ObjectSpec::Volume => None,
        };
        let name = image.as_ref().map_or_else(|| run.next_name(), |image| image.reference.clone());
        let record = of_subject(object.resource(), &self.about.spec, &name);
        run.owner.make(object.resource(), record, || {
            match &image {
                Some(image) => {
                    load_image(image, &self.about.spec, run, |archive| self.load(archive, LOADING_LARGE))?
                }
                None => {
                    let [run, state] = &Engine::labels(run);
                    self.client.ask(&[object.name(), "create", run, state, &name])?;
                }
            }
            Ok(match object {
                ObjectKind::Network => Object::Network(Attachment::new(name.clone(), None)),
                ObjectKind::Volume | ObjectKind::Image => Object::Named(name.clone()),
            })
        })
    }

    pub(super) fn unmake_of(&self, object: ObjectKind, name: &str, run: &str) -> Result<Found, Failure> {
        let label = format!("label={RUN_LABEL}={run}");
        let list = match object {
            ObjectKind::Network | ObjectKind::Volume => {
                &[object.name(), "ls", "--filter", &label, "--format", "{{.Name}}"][..]
            }
            ObjectKind::Image => &OUR_IMAGES,
        };
        if self.client.insist(list)?.lines().all(|line| line != name) {
            return Ok(Found::No);
        }
        super::removed(&self.client, &[object.name(), "rm", name])
    }
}
