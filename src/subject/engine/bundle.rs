//! What an engine really asks its runtime for: `config.json` of a container that runs for that.

use std::path::{Path, PathBuf};

use serde_json::Value;

use super::Engine;
use crate::outcome::{Abort, Failure, FailureClass};
use crate::subject::container::Container;
use crate::subject::{ContainerRequest, RunContext};

impl Engine {
    /// Starts a container that stays, reads its bundle, and removes it again.
    pub(in crate::subject) fn bundle(&self, run: &RunContext) -> Result<Value, Abort> {
        let failed = |reason: String| Failure::new(FailureClass::Environment, reason);
        let mut container = Container::create(self, &ContainerRequest::default(), run)?;
        container.start()?;
        let path = match self.spec.name.as_str() {
            "podman" => {
                let said = self.ask(&["inspect", "--format", "{{.OCIConfigPath}}", container.name()]);
                PathBuf::from(String::from_utf8_lossy(&said.map_err(|why| failed(why.reason))?).trim())
            }
            _ => beside_the_shim(container.first_process()?).map_err(failed)?,
        };
        let text = std::fs::read(&path)
            .map_err(|error| failed(format!("cannot read the bundle `{}`: {error}", path.display())))?;
        serde_json::from_slice(&text).map_err(|error| {
            failed(format!("the bundle `{}` makes no sense: {error}", path.display())).into()
        })
    }
}

/// The bundle of a container by its first process: a daemon's containerd starts the shim, which is the parent, inside it.
fn beside_the_shim(pid: i32) -> Result<PathBuf, String> {
    let status = format!("/proc/{pid}/status");
    let text =
        std::fs::read_to_string(&status).map_err(|error| format!("cannot read `{status}`: {error}"))?;
    let parent = text.lines().find_map(|line| line.strip_prefix("PPid:"));
    let parent = parent.ok_or_else(|| format!("`{status}` names no parent"))?.trim();
    Ok(Path::new("/proc").join(parent).join("cwd/config.json"))
}
