//! What an engine makes for a run other than containers: networks, volumes and images, with the run in their
//! labels or name. Nothing else of these kinds is ever removed.

use super::image::LOADING_LARGE;
use super::{Engine, OUR_IMAGES, RUN_LABEL};
use crate::outcome::{Abort, Failure};
use crate::resource::{Found, Held};
use crate::subject::RunContext;
use crate::subject::resources::{Joint, Made, Offer, Wish, layered, load_image, of_subject};

impl Engine {
    pub(super) fn make_for(&self, wish: Wish<'_>, run: &RunContext) -> Result<Held<Made>, Abort> {
        let offer = wish.offer();
        let image = match wish {
            Wish::Image(executable, layers) => Some(layered(executable, layers, run)),
            Wish::Network | Wish::Volume => None,
        };
        let name = image.as_ref().map_or_else(|| run.next_name(), |image| image.reference.clone());
        let record = of_subject(offer.kind(), &self.about.spec, &name);
        run.owner.make(offer.kind(), record, || {
            match &image {
                Some(image) => {
                    load_image(image, &self.about.spec, run, |archive| self.load(archive, LOADING_LARGE))?
                }
                None => {
                    let [run, state] = &Engine::labels(run);
                    self.client.ask(&[offer.name(), "create", run, state, &name])?;
                }
            }
            Ok(match offer {
                Offer::Network => Made::Network(Joint::new(name.clone(), None)),
                Offer::Volume | Offer::Image => Made::Named(name.clone()),
            })
        })
    }

    pub(super) fn unmake_of(&self, offer: Offer, name: &str, run: &str) -> Result<Found, Failure> {
        let label = format!("label={RUN_LABEL}={run}");
        let list = match offer {
            Offer::Network | Offer::Volume => {
                &[offer.name(), "ls", "--filter", &label, "--format", "{{.Name}}"][..]
            }
            Offer::Image => &OUR_IMAGES,
        };
        if self.client.insist(list)?.lines().all(|line| line != name) {
            return Ok(Found::No);
        }
        super::removed(&self.client, &[offer.name(), "rm", name])
    }
}
