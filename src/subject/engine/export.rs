//! An engine's image as a root on disk, for subjects that need no engine: the image is inspected, a container
//! that never runs is made from it, exported as a tar archive, and removed.

use super::super::component::run_within;
use super::Engine;
use crate::image::export::{self, Config, Export};
use crate::outcome::{Abort, Failure, OrEnvironment};
use crate::subject::RunContext;
use crate::subject::resources::container;
use crate::sys::place;
use crate::units::Nanos;

/// How long an engine may take to export an image.
const EXPORTING: Nanos = Nanos::from_millis(600_000);

impl Engine {
    /// The image's configuration, if the engine holds it; else the engine's own words.
    pub(in crate::subject) fn image_config(&self, reference: &str) -> Result<Config, String> {
        let said = self.client.ask(&["image", "inspect", reference]).map_err(|why| why.reason)?;
        let parsed: serde_json::Value = serde_json::from_str(&said).map_err(|error| {
            format!("cannot parse the answer of `{} image inspect`: {error}", self.about.spec.name)
        })?;
        config_in(&parsed[0]).ok_or_else(|| {
            format!("the answer of `{} image inspect` lacks the configuration", self.about.spec.name)
        })
    }

    /// The root of an image that the engine holds, unpacked if it is not there yet. What could not be kept is
    /// reported.
    pub(in crate::subject) fn export(&self, run: &RunContext, config: &Config) -> Result<Export, Abort> {
        let told = |error: anyhow::Error| Failure::environment(format!("{error:#}"));
        if let Some(there) = export::find(&run.place.state, &config.id).map_err(told)? {
            return Ok(there);
        }
        (run.tell)(&format!(
            "unpacking an image of {} into the state directory, where it stays until `dunnage sweep`",
            self.about.spec
        ));
        let held = run.owner.directory(|directory| {
            place::make(directory).or_environment(format_args!("cannot make `{}`", directory.display()))?;
            let tar = directory.join("export.tar");
            let name = run.next_name();
            let entry = run.note(container(&self.about.spec, &name))?;
            let written = self.write_tar(run, &name, config, &tar);
            if self.rm(&name).is_ok() {
                run.cross_out(entry);
            }
            written?;
            let go_on = || !run.interrupts.pending();
            Ok(export::unpack(&run.place.state, config, &tar, &go_on).map_err(told)?)
        })?;
        let (export, lost) = &*held;
        for what in lost {
            (run.tell)(&format!("lost from the image: {what}"));
        }
        Ok(export.clone())
    }

    /// Makes a container and exports its root. `create` needs a program, which is never started.
    fn write_tar(
        &self,
        run: &RunContext,
        name: &str,
        config: &Config,
        tar: &std::path::Path,
    ) -> Result<(), Failure> {
        let [run, state] = &Engine::labels(run);
        let path = tar.to_string_lossy();
        let make = ["create", "--name", name, run, state, &config.id, "/dunnage"];
        for words in [&make[..], &["export", "--output", &path, name]] {
            let program = self.client.program(words);
            program
                .and_then(|program| run_within(EXPORTING, &program))
                .map_err(|why| why.reason)
                .or_environment(format_args!("{} cannot export the image", self.about.spec))?;
        }
        Ok(())
    }
}

/// The configuration in an answer of `image inspect`, which is the same in docker and podman.
fn config_in(inspected: &serde_json::Value) -> Option<Config> {
    let id = inspected["Id"].as_str()?;
    let own = &inspected["Config"];
    let text = |key: &str| own[key].as_str().unwrap_or_default().to_owned();
    let environment = own["Env"].as_array().into_iter().flatten();
    Some(Config {
        id: id.strip_prefix("sha256:").unwrap_or(id).to_owned(),
        environment: environment.filter_map(|entry| Some(entry.as_str()?.to_owned())).collect(),
        directory: text("WorkingDir"),
        user: text("User"),
        architecture: inspected["Architecture"].as_str().unwrap_or_default().to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_an_image_says_is_read_from_either_engine() {
        let docker = json!({
            "Id": "sha256:00112233445566", "Architecture": "amd64",
            "Config": {"Env": ["A=1", "PATH=/bin"], "WorkingDir": "/srv", "User": "1000", "Entrypoint": null},
        });
        let expected = Config {
            id: "00112233445566".into(),
            environment: vec!["A=1".into(), "PATH=/bin".into()],
            directory: "/srv".into(),
            user: "1000".into(),
            architecture: "amd64".into(),
        };
        assert_eq!(config_in(&docker), Some(expected));
        let imported = json!({"Id": "00112233445566", "Architecture": "amd64", "Config": {"Env": null}});
        assert_eq!(config_in(&imported).unwrap().environment, Vec::<String>::new());
        assert_eq!(config_in(&json!({"Config": {}})), None);
    }
}
