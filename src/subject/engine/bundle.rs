//! What an engine asks its runtime for: `config.json` of a container that is started to read it.

use std::path::{Path, PathBuf};

use serde_json::Value;

use super::Engine;
use crate::outcome::{Abort, Failure, OrEnvironment};
use crate::subject::container::Container;
use crate::subject::{ContainerRequest, RunContext};
use crate::sys::process;
use crate::sys::remains::{self, Tokens};

impl Engine {
    /// Starts a container that stays, reads its bundle, and removes it.
    pub(in crate::subject) fn bundle(&self, run: &RunContext) -> Result<Value, Abort> {
        let mut container = Container::create(self, &ContainerRequest::default(), run)?;
        container.start()?;
        let path = match self.about.spec.name.as_str() {
            "podman" => {
                let said =
                    self.client.ask(&["inspect", "--format", "{{.OCIConfigPath}}", container.name()])?;
                PathBuf::from(said.trim())
            }
            _ => beside_the_shim(container.first_process()?)?,
        };
        let text = std::fs::read(&path)
            .or_environment(format_args!("cannot read the bundle `{}`", path.display()))?;
        let name = container.name().to_owned();
        drop(container);
        // The container's monitor outlives it for a while, and must not run next to the first launches.
        if let Ok(tokens) = Tokens::new([name]) {
            let _ = remains::outlive_processes(&tokens, &|| !run.interrupts.asked());
        }
        Ok(serde_json::from_slice(&text)
            .or_environment(format_args!("cannot parse the bundle `{}`", path.display()))?)
    }
}

/// The bundle of a container, found from its first process: containerd starts the shim, which is the parent,
/// in the bundle's directory.
fn beside_the_shim(pid: i32) -> Result<PathBuf, Failure> {
    let shim = process::read(pid).map(|first| first.parent);
    let shim = shim.ok_or_else(|| Failure::environment(format!("process {pid} is gone")))?;
    Ok(Path::new("/proc").join(shim.to_string()).join("cwd/config.json"))
}
