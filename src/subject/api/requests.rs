//! The requests of one container's life, as the engine's own command line makes them from the same keys. They
//! are serialised before the first stamp.
//!
//! Deliberately absent: `AutoRemove`, which the command line uses for `--rm`; here the container is removed
//! by a separate request, whose time is measured separately.

use std::path::Path;

use dunnage_analysis::subject::limits::cpus_text;
use serde_json::{Value, json};

use super::http::Request;
use crate::probe::PROBE;
use crate::subject::confined::Confined;
use crate::subject::engine::{self, RUN_LABEL, STATE_LABEL};
use crate::subject::limits::Limits;
use crate::subject::{Entrypoint, Port, Spec};

/// What a container is to be, in addition to the keys of its subject.
#[derive(Debug)]
pub struct ContainerConfig<'a> {
    /// What was asked for.
    pub spec: &'a Spec,
    /// The image to run.
    pub image: &'a str,
    /// The executable to mount into an image that dunnage did not make.
    pub executable: Option<&'a Path>,
    /// What the probe must read back in addition to the usual.
    pub detail: Option<&'static str>,
    /// The kernel's limits, soft and hard alike, where they must be given to the engine.
    pub ulimits: &'a [(&'static str, u64)],
    /// The run that it belongs to.
    pub run: &'a str,
    /// The random name of the state directory with the run's journal.
    pub state: &'a str,
}

impl ContainerConfig<'_> {
    /// The body of the request that makes the container.
    pub fn body(&self, entrypoint: Entrypoint<'_>) -> Value {
        let mut arguments = entrypoint.words(self.detail);
        if self.executable.is_some() {
            arguments.insert(0, PROBE.to_owned());
        }
        let executable = self.executable.map(|_| ["/dunnage"]);
        json!({
            "AttachStdin": false,
            "AttachStdout": true,
            "AttachStderr": true,
            "Tty": self.spec.get("tty") == Some("true"),
            "Cmd": arguments,
            "Image": self.image,
            "ExposedPorts": self.ports(entrypoint, |_| json!({})),
            "Entrypoint": executable,
            "Labels": { RUN_LABEL: self.run, STATE_LABEL: self.state },
            "HostConfig": self.host_config(entrypoint),
        })
    }

    fn host_config(&self, entrypoint: Entrypoint<'_>) -> Value {
        let key = |key: &str| self.spec.get(key);
        let bound = entrypoint.mounts().iter().map(|mount| {
            format!("{}:{}:{}", mount.host.display(), mount.inside.display(), mount.access.option())
        });
        let own = self.executable.map(|path| format!("{}:/dunnage:ro", path.display()));
        let volumes =
            entrypoint.volumes().iter().map(|(name, inside)| format!("{name}:{}:rw", inside.display()));
        let binds: Vec<_> = own.into_iter().chain(bound).chain(volumes).collect();
        let bind = (!binds.is_empty()).then_some(binds);
        let confined = Confined::of(self.spec);
        // The highest number is -1 there, which means none.
        let limit_of = |name: &str, soft: u64, hard: u64| json!({ "Name": name, "Soft": soft as i64, "Hard": hard as i64 });
        let ulimits: Vec<_> = self
            .ulimits
            .iter()
            .map(|(name, limit)| limit_of(name, *limit, *limit))
            .chain(confined.ulimits.iter().map(|one| limit_of(one.name(), one.soft, one.hard)))
            .collect();
        let mut all = json!({
            "Binds": bind,
            "NetworkMode": entrypoint.network().map(|attachment| attachment.name.as_str()).or(key("net")).unwrap_or("default"),
            "LogConfig": { "Type": if key("log") == Some("none") { "none" } else { "" }, "Config": {} },
            "SecurityOpt": (key("seccomp") == Some("off")).then_some(["seccomp=unconfined"]),
            "PidMode": if key("pid") == Some("host") { "host" } else { "" },
            "UsernsMode": engine::userns(self.spec).unwrap_or(""),
            "MemorySwappiness": -1,
            "PortBindings": self.ports(entrypoint, |port| json!([{ "HostIp": port.at, "HostPort": "" }])),
            "RestartPolicy": { "Name": "no", "MaximumRetryCount": 0 },
            "Ulimits": ulimits,
            "CpusetCpus": cpus_text(&confined.cpus),
        });
        for (field, limit) in entrypoint.limits(self.spec).fields() {
            all[&field] = limit;
        }
        if let Some(resolver) = entrypoint.resolver() {
            all["Dns"] = json!([resolver]);
        }
        if let Some(runtime) = &self.spec.runtime {
            all["Runtime"] = json!(runtime);
        }
        all
    }

    /// `each` of every port to publish, by its name; `None` if there are none.
    fn ports(&self, entrypoint: Entrypoint<'_>, each: impl Fn(&Port) -> Value) -> Option<Value> {
        let name = |port: &Port| format!("{}/{}", port.number, port.transport.name());
        let ports = entrypoint.ports(self.spec);
        let all = ports.iter().map(|port| (name(port), each(port)));
        (!ports.is_empty()).then(|| Value::Object(all.collect()))
    }
}

/// The requests about one container, which is identified by its name rather than its id, so that a request
/// can be prepared before the previous answer.
#[derive(Debug)]
pub struct Container {
    prefix: String,
    name: String,
}

impl Container {
    /// The container with this name, in this version of the API.
    pub fn named(version: &str, name: &str) -> Container {
        Container { prefix: format!("/v{version}"), name: name.to_owned() }
    }

    /// Makes it.
    pub fn create(&self, body: &Value) -> Request {
        Request::with_json(&format!("{}/containers/create?name={}", self.prefix, self.name), body)
    }

    /// A request about it without a body, such as `POST` of `/start`.
    pub fn request(&self, method: &str, verb: &str) -> Request {
        Request::plain(method, &format!("{}/containers/{}{verb}", self.prefix, self.name))
    }

    /// Turns a connection into the stream of its output.
    pub fn attach(&self) -> Request {
        let target = format!("{}/containers/{}/attach?stderr=1&stdout=1&stream=1", self.prefix, self.name);
        Request::upgrading(&target, b"")
    }

    /// Removes it with its volumes, now that it is stopped.
    pub fn remove(&self) -> Request {
        self.request("DELETE", "?v=1")
    }

    /// Changes these limits while it runs.
    pub fn update(&self, limits: &Limits) -> Request {
        let mut body = Value::from(limits.fields());
        if let Some(bytes) = limits.with_swap() {
            body["MemorySwap"] = json!(bytes);
        }
        Request::with_json(&format!("{}/containers/{}/update", self.prefix, self.name), &body)
    }

    /// The same in podman's own API, where it has been since version 4.3; docker's form came with 5.4.
    pub fn update_of_podman(&self, limits: &Limits) -> Request {
        let mut body = Value::from(limits.resources());
        if let Some(bytes) = limits.with_swap() {
            body["memory"]["swap"] = json!(bytes);
        }
        Request::with_json(&format!("/v4.0.0/libpod/containers/{}/update", self.name), &body)
    }

    /// Makes a second process in it, without starting it.
    pub fn make_exec(&self, body: &Value) -> Request {
        Request::with_json(&format!("{}/containers/{}/exec", self.prefix, self.name), body)
    }

    /// Starts a second process and turns the connection into the stream of its output.
    pub fn start_exec(&self, id: &str, body: &Value) -> Request {
        Request::upgrading(&format!("{}/exec/{id}/start", self.prefix), body.to_string().as_bytes())
    }

    /// Asks how a second process ended.
    pub fn inspect_exec(&self, id: &str) -> Request {
        Request::plain("GET", &format!("{}/exec/{id}/json", self.prefix))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::probe::Task;

    fn body(text: &str, executable: Option<&Path>) -> Value {
        let spec = Spec::parse(text).unwrap();
        let config = ContainerConfig {
            spec: &spec,
            image: "image:tag",
            executable,
            detail: spec.get("memory").map(|_| "limits"),
            ulimits: &[("nofile", 1024)],
            run: "12345678",
            state: "0123",
        };
        config.body(Task::Start.into())
    }

    #[test]
    fn every_key_arrives() {
        let body = body(
            "docker+crun:net=none,log=none,seccomp=off,pid=host,userns=host,cpus=0.5,memory=64MiB,tty=true",
            None,
        );
        let host = &body["HostConfig"];
        assert_eq!((&host["NetworkMode"], &host["LogConfig"]["Type"]), (&json!("none"), &json!("none")));
        assert_eq!((&host["NanoCpus"], &host["Memory"]), (&json!(500_000_000), &json!(67_108_864)));
        assert_eq!(host["SecurityOpt"], json!(["seccomp=unconfined"]));
        assert_eq!((&host["PidMode"], &host["UsernsMode"]), (&json!("host"), &json!("host")));
        assert_eq!((&host["Runtime"], &body["Tty"]), (&json!("crun"), &json!(true)));
        assert_eq!(host["Ulimits"], json!([{ "Name": "nofile", "Soft": 1024, "Hard": 1024 }]));
        assert_eq!(body["Cmd"], json!(["start", "limits"]));
        assert_eq!(body["Labels"], json!({ "dunnage.run": "12345678", "dunnage.state": "0123" }));
    }

    #[test]
    fn ports_are_published_in_every_container_at_ports_of_the_engines_choice() {
        let asked = body("docker:publish=2", None);
        let at = json!([{ "HostIp": "127.0.0.1", "HostPort": "" }]);
        assert_eq!(asked["HostConfig"]["PortBindings"], json!({ "20000/tcp": at, "20001/tcp": at }));
        assert_eq!(asked["ExposedPorts"], json!({ "20000/tcp": {}, "20001/tcp": {} }));
        let none = body("docker", None);
        assert!(none["ExposedPorts"].is_null() && none["HostConfig"]["PortBindings"].is_null(), "{none}");
    }

    #[test]
    fn an_image_that_is_not_ours_gets_the_probe_mounted() {
        let body = body("docker:image=theirs", Some(Path::new("/host/dunnage")));
        assert_eq!(body["Entrypoint"], json!(["/dunnage"]));
        assert_eq!(body["Cmd"], json!(["probe", "start"]));
        assert_eq!(body["HostConfig"]["Binds"], json!(["/host/dunnage:/dunnage:ro"]));
        assert!(body["HostConfig"]["Runtime"].is_null());
    }

    #[test]
    fn requests_name_the_container_and_the_version() {
        let container = Container::named("1.41", "dunnage-12345678-000001");
        assert_eq!(
            container.create(&json!({})).shown,
            "POST /v1.41/containers/create?name=dunnage-12345678-000001"
        );
        assert_eq!(container.remove().shown, "DELETE /v1.41/containers/dunnage-12345678-000001?v=1");
    }
}
