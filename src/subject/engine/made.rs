//! What an engine makes for a run beside containers and networks: volumes and images, with the labels of the run or in
//! its name. Nothing else of these kinds is ever removed.

use super::image::LOADING_LARGE;
use super::{Engine, RUN_LABEL, STATE_LABEL};
use crate::outcome::{Abort, Failure, FailureClass};
use crate::resource::Held;
use crate::subject::resources::{self, Made, Offer, Wish, of_subject};
use crate::subject::{RunContext, Unavailable};

fn environment(why: Unavailable) -> Failure {
    Failure::new(FailureClass::Environment, why.reason)
}

impl Engine {
    pub(super) fn make_for(&self, wish: Wish<'_>, run: &RunContext) -> Result<Held<Made>, Abort> {
        let offer = wish.offer();
        let image = match wish {
            Wish::Image(executable, layers) => Some(resources::layered(executable, layers, run)),
            Wish::Volume => None,
        };
        let name = image.as_ref().map_or_else(|| run.next_name(), |image| image.reference().to_owned());
        let record = of_subject(offer.kind(), &self.spec, &name);
        run.owner.make(offer.kind(), record, || {
            match &image {
                Some(image) => {
                    resources::with_layers(image, run, |archive| self.load(archive, LOADING_LARGE))?
                }
                None => {
                    let labels = [
                        format!("{RUN_LABEL}={}", run.owner.run()),
                        format!("{STATE_LABEL}={}", run.place.state.display()),
                    ];
                    let verb = [offer.name(), "create", "--label", &labels[0], "--label", &labels[1], &name];
                    self.ask(&verb).map_err(environment)?;
                }
            }
            Ok(Made::Named(name.clone()))
        })
    }

    pub(super) fn unmake_of(&self, offer: Offer, name: &str, run: &str) -> Result<(), Failure> {
        let label = format!("label={RUN_LABEL}={run}");
        let (list, remove) = match offer {
            Offer::Volume => {
                (["volume", "ls", "--filter", &label, "--format", "{{.Name}}"], ["volume", "rm"])
            }
            Offer::Image => {
                let format = "{{.Repository}}:{{.Tag}}";
                (["image", "ls", "--filter", "label=dunnage.image", "--format", format], ["image", "rm"])
            }
        };
        let listed = self.insist(&list).map_err(environment)?;
        if String::from_utf8_lossy(&listed).lines().all(|line| line != name) {
            return Ok(());
        }
        self.insist(&[remove[0], remove[1], name]).map(drop).map_err(environment)
    }
}
