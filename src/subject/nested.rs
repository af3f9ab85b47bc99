//! Ways of running containers in containers: what is asked of the outer engine, and what is done inside. The inner engine is the
//! host's own: its programs and libraries are bound into the outer container, read-only, and what it stores is the container's.
//!
//! Published are the ways that courses and the engines' own images use, with their options as published; what makes one work that does
//! not is a way of its own. Deliberately absent: what is measured.

mod failures;
mod ways;

use std::fs::Permissions;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

pub use failures::explained;
use ways::{ALL, OWN};
pub use ways::{Inner, Way};

use super::{
    Access, ContainerRequest, Mount, Resident, RunContext, Spec, docker, engine, on_path, resources,
};
use crate::image::{EXECUTABLE, fat};
use crate::outcome::{Abort, Failure, FailureClass, OrEnvironment};
use crate::probe::PROBE;
use crate::resource::Held;
use crate::resource::journal::Entry;
use crate::sys::filesystem;

/// Ways that hand the host to what runs inside, so that only dunnage's image does.
const OURS_ALONE: [&str; 8] = [
    "privileged",
    "privileged-own-socket",
    "almost-privileged",
    "socket",
    "relaxed",
    "relaxed-network",
    "service-tls",
    "daemon-inside",
];
/// Programs of the host that run inside, by the engine.
const DAEMONS: [&str; 5] = ["dockerd", "docker", "containerd", "containerd-shim-runc-v2", "runc"];
const DAEMONLESS: [&str; 3] = ["podman", "conmon", "crun"];
/// Map the ids of a user, with the capability that each needs.
const MAPPERS: [(&str, u32); 2] = [("newuidmap", 7), ("newgidmap", 6)];

/// The way of this name with this subject outside.
///
/// # Errors
/// If it has none, or would hand the host to an image that is not dunnage's.
pub fn way(spec: &Spec, name: &str) -> Result<&'static Way, Failure> {
    let unsupported = |why: String| Failure::new(FailureClass::Unsupported, why);
    if has_image(spec) && OURS_ALONE.contains(&name) {
        return Err(unsupported(format!(
            "`way={name}` would hand the host to what is in this image: if you mean to, say so with `way=own` and `options`"
        )));
    }
    let found = ALL.iter().find(|way| way.name == name && way.outer == spec.name);
    let found = found.ok_or_else(|| unsupported(format!("`{spec}` has no way `{name}`")))?;
    let needed = match found.inner {
        _ if has_image(spec) => &[][..],
        Inner::Docker => &DAEMONS,
        Inner::Socket => &["docker"],
        Inner::Podman => &DAEMONLESS,
    };
    let fuse = (found.in_user_space && found.storage.is_none()).then_some("fuse-overlayfs");
    let is_there = |name: &&str| {
        on_path(name).is_some_and(|path| {
            path.starts_with("/usr") || path.starts_with("/bin") || path.starts_with("/sbin")
        })
    };
    let mappers = MAPPERS.iter().filter(|_| found.by_user && !has_image(spec)).map(|(name, _)| *name);
    let certifies = found.over_tls.then_some("openssl");
    match needed.iter().copied().chain(mappers).chain(fuse).chain(certifies).find(|name| !is_there(name)) {
        Some(missing) => Err(Failure::environment(format!(
            "`{missing}` is not in `/usr` of this host, whose programs run inside: install it, or choose an image with `image`"
        ))),
        None => Ok(found),
    }
}

/// Whether the outer container runs an image of the user's, with an engine of its own.
pub fn has_image(spec: &Spec) -> bool {
    spec.get("image").is_some_and(|name| name != "small" && name != fat::NAME)
}

/// Says which engine is in an image, as a script.
pub const ENGINE: &str =
    "for own in dockerd podman docker; do command -v $own >/dev/null && echo $own && exit; done; exit 1";

/// Where an image is built in the outer container.
pub const BUILT: &str = "/tmp/build";
/// The archive of the image that runs innermost, in the outer container.
pub const ARCHIVE: &str = "/image.tar";
/// Directories and files of the host that an engine and its libraries need.
const HOSTS: [(&str, &str); 7] = [
    ("/usr", "/usr"),
    ("/usr/bin", "/bin"),
    ("/usr/sbin", "/sbin"),
    ("/usr/lib", "/lib"),
    ("/usr/lib64", "/lib64"),
    ("/etc/alternatives", "/etc/alternatives"),
    ("/etc/ld.so.cache", "/etc/ld.so.cache"),
];
/// Files that an inner engine finds, each with its place.
const FILES: [(&str, &str); 8] = [
    ("/etc/passwd", "root:x:0:0:root:/root:/bin/sh\npodman:x:1000:1000::/home/podman:/bin/sh\n"),
    ("/etc/group", "root:x:0:\npodman:x:1000:\n"),
    ("/etc/subuid", "root:1:65535\npodman:1:999\npodman:1001:64535\n"),
    ("/etc/subgid", "root:1:65535\npodman:1:999\npodman:1001:64535\n"),
    ("/etc/containers/policy.json", "{\"default\":[{\"type\":\"insecureAcceptAnything\"}]}\n"),
    ("/etc/containers/registries.conf", "unqualified-search-registries = []\n"),
    (
        "/etc/containers/containers.conf",
        "[containers]\nnetns = \"host\"\nuserns = \"host\"\nipcns = \"host\"\nutsns = \"host\"\ncgroupns = \"host\"\n\
         cgroups = \"disabled\"\nlog_driver = \"k8s-file\"\n[engine]\ncgroup_manager = \"cgroupfs\"\nevents_logger = \"file\"\n\
         runtime = \"crun\"\n",
    ),
    (
        STORAGE,
        "[storage]\ndriver = \"overlay\"\nrunroot = \"/run/containers/storage\"\ngraphroot = \"/var/lib/containers/storage\"\n\
         [storage.options.overlay]\nmount_program = \"/usr/bin/fuse-overlayfs\"\nmountopt = \"nodev,fsync=0\"\n",
    ),
];

const STORAGE: &str = "/etc/containers/storage.conf";

/// Where the host's daemon listens.
fn socket(spec: &Spec) -> Result<PathBuf, Failure> {
    let address = docker::address(spec.get("host"));
    let path = address.strip_prefix("unix://").map(PathBuf::from);
    path.ok_or_else(|| {
        Failure::new(FailureClass::Unsupported, format!("`{address}` is no socket that can be bound in"))
    })
}

/// Copies a program of the host's that has root's rights there, and gives the copy this capability alone, as images do: with root's
/// rights it may not write the maps of another user's namespace where root has no SYS_ADMIN. The format is that of `capabilities(7)`,
/// version 2.
fn able(name: &str, capability: u32, copy: &Path) -> io::Result<()> {
    const VERSION_2_EFFECTIVE: u32 = 0x0200_0001;
    let program = on_path(name).ok_or(io::ErrorKind::NotFound)?;
    std::fs::write(copy, std::fs::read(program)?)?;
    std::fs::set_permissions(copy, Permissions::from_mode(0o755))?;
    let words = [VERSION_2_EFFECTIVE, 1 << capability, 0, 0, 0];
    let value: Vec<u8> = words.into_iter().flat_map(u32::to_le_bytes).collect();
    filesystem::set_attribute(copy, "security.capability", &value)
}

impl Way {
    /// The outer container, whose program carries out orders; `archive` is the innermost image.
    ///
    /// # Errors
    /// If what is bound into it cannot be made.
    pub fn outer(
        &self,
        spec: &Spec,
        archive: &Path,
        own: &[String],
        run: &RunContext,
    ) -> Result<(ContainerRequest, Held<PathBuf>), Abort> {
        let files = run.empty_directory()?;
        let mount = |host: &Path, inside: &str, access| Mount {
            host: host.to_owned(),
            inside: PathBuf::from(inside),
            access,
        };
        let is_bound = |_: &&(&str, &str)| !has_image(spec);
        let hosts = HOSTS.iter().filter(is_bound).filter(|(host, _)| Path::new(host).exists());
        let mut mounts: Vec<Mount> =
            hosts.map(|(host, inside)| mount(Path::new(host), inside, Access::ReadOnly)).collect();
        let is_wanted = |inside: &str| inside != STORAGE || self.in_user_space;
        for (inside, text) in FILES.iter().filter(is_bound).filter(|(inside, _)| is_wanted(inside)) {
            let host = files.join(inside.replace('/', "-"));
            // A user's engine must be able to read them too.
            let write = || {
                std::fs::write(&host, text)?;
                std::fs::set_permissions(&host, Permissions::from_mode(0o644))
            };
            write().or_environment(format_args!("cannot write `{}`", host.display()))?;
            mounts.push(mount(&host, inside, Access::ReadOnly));
        }
        mounts.push(mount(archive, ARCHIVE, Access::ReadOnly));
        if self.inner == Inner::Socket {
            mounts.push(mount(&socket(spec)?, "/var/run/docker.sock", Access::ReadWrite));
        }
        let mut mappers = Vec::new();
        for (name, capability) in MAPPERS.iter().filter(|_| self.by_user && !has_image(spec)) {
            let host = files.join(name);
            able(name, *capability, &host)
                .or_environment(format_args!("cannot copy `{name}` to `{}`", files.display()))?;
            // What is bound in has no rights of its own unless that is asked for.
            let own = format!("{}:/usr/bin/{name}:ro,suid", host.display());
            mappers.extend(["--volume".to_owned(), own]);
        }
        // A word among the user's own that is no option would be an image.
        let local = (!own.is_empty()).then(|| "--pull=never".to_owned());
        let asked = self.options.iter().map(|word| (*word).to_owned());
        let asked = asked.chain(local).chain(own.iter().cloned());
        let options = asked.chain(mappers).collect();
        let request =
            ContainerRequest { mounts, options, program: Resident::Serves, ..ContainerRequest::default() };
        Ok((request, files))
    }

    /// The same with the engine that an image has.
    pub fn with_engine_of(&'static self, image: &str) -> &'static Way {
        let inner = if image == "podman" { Inner::Podman } else { Inner::Docker };
        let is_it = |way: &&Way| way.name == OWN && way.inner == inner;
        if self.name == OWN { ALL.iter().find(is_it).unwrap_or(self) } else { self }
    }

    /// What it asks for, as a user would write it.
    pub fn asked(&self, own: &[String]) -> String {
        let outside =
            self.options.iter().copied().chain(own.iter().map(String::as_str)).collect::<Vec<_>>().join(" ");
        let inside = [
            self.looks_elsewhere.then(|| "DOCKER_HOST=tcp://docker:2375".to_owned()),
            self.storage.map(|driver| format!("STORAGE_DRIVER={driver}")),
            self.remounts.then(|| "cgroups remounted writable".to_owned()),
            self.allows_ipv6().then(|| ALLOW_IPV6.to_owned()),
            self.without_cgroups.then(|| "dockerd --rootless".to_owned()),
            self.over_tls.then(|| TLS.join(" ")),
            (!self.run.is_empty()).then(|| self.run.join(" ")),
            (self.inner == Inner::Socket).then(|| "the daemon's socket bound in".to_owned()),
        ];
        let inside: Vec<String> = inside.into_iter().flatten().collect();
        let inside = (!inside.is_empty()).then(|| format!("inside: {}", inside.join(", ")));
        [Some(outside).filter(|own| !own.is_empty()), inside]
            .into_iter()
            .flatten()
            .collect::<Vec<_>>()
            .join("; ")
    }

    /// Whether its options are the user's.
    pub fn is_users(&self) -> bool {
        self.name == OWN
    }

    /// Whether everything inside has the variables that the outer container was made with, as where they are the user's.
    pub fn inherits(&self, spec: &Spec) -> bool {
        self.name == OWN || has_image(spec)
    }

    /// The variables of everything inside.
    pub fn variables(&self, spec: &Spec) -> Vec<String> {
        if self.inherits(spec) {
            let path = (!has_image(spec)).then(|| PATH.to_owned());
            return path.into_iter().collect();
        }
        let home = if self.by_user { "HOME=/home/podman" } else { "HOME=/root" };
        let usual = [PATH, home].map(str::to_owned);
        let elsewhere = self.looks_elsewhere.then(|| "DOCKER_HOST=tcp://docker:2375".to_owned());
        let storage = self.storage.map(|driver| format!("STORAGE_DRIVER={driver}"));
        let certified = TLS.iter().filter(|_| self.over_tls).map(|own| (*own).to_owned());
        usual.into_iter().chain(elsewhere).chain(storage).chain(certified).collect()
    }

    /// What a client waits for that says nothing, where it looks for a daemon elsewhere.
    pub fn silence(&self, words: &[String]) -> Option<&'static str> {
        let is_client = words.first().is_some_and(|program| program == self.client());
        (self.looks_elsewhere && is_client).then_some("no answer from tcp://docker:2375")
    }

    /// Writes a file in an inner container that runs, or reads it, as an order for the probe says.
    pub fn enter(&self, name: &str, order: &[String]) -> Vec<String> {
        let words = [self.client(), "exec", name, EXECUTABLE, PROBE].map(str::to_owned);
        words.into_iter().chain(order.iter().cloned()).collect()
    }

    /// Whether the inner daemon lets its networks keep an IPv6 which it cannot turn off: `/proc/sys` is read-only inside.
    fn allows_ipv6(&self) -> bool {
        self.remounts && self.inner == Inner::Docker
    }

    /// The inner client.
    fn client(&self) -> &'static str {
        if self.inner == Inner::Podman { "podman" } else { "docker" }
    }

    /// What is done before anything can be started inside, as a script for a shell: directories that images have, cgroups, the daemon.
    pub fn begin(&self) -> String {
        let directories = "mkdir -p /tmp /var/tmp /run /var/lib /root && chmod 1777 /tmp /var/tmp && { [ -e /var/run ] || ln -s /run /var/run; }";
        // Version 1 has a mount for each controller below the first one.
        let cgroups = "while read -r device place rest; do case $place in /sys/fs/cgroup*) mount -o remount,bind,rw $place || exit;; esac; done </proc/mounts";
        // It is ready when it answers at its own socket, wherever clients look for it; older ones would ask for certificates there too.
        // The image that many use has a wrapper which moves processes out of the root of version 2's cgroups.
        // Where a socket is bound in, clients talk to that daemon, and a second one would take its place.
        // That of a user expects to have been started by a program which made its namespaces, and ends without its forwarder of ports.
        let daemon = "[ -S /var/run/docker.sock ] && exit 0\n\
             $(command -v dind) dockerd $own_options >/tmp/daemon.log 2>&1 & own=$!\n\
             until DOCKER_TLS_VERIFY= docker --host unix:///var/run/docker.sock info >/dev/null 2>&1; do\n\
             kill -0 $own 2>/dev/null || { grep -v level=info /tmp/daemon.log | tail -n 3 >&2; exit 1; }\n\
             sleep 0.1; done";
        let user = "mkdir -p /run/own && ln -s /bin/true /run/own/rootlesskit-docker-proxy\n\
            export PATH=$PATH:/run/own XDG_RUNTIME_DIR=/run ROOTLESSKIT_STATE_DIR=/tmp ROOTLESSKIT_PARENT_EUID=1000\n\
            own_options='--rootless --host unix:///var/run/docker.sock --data-root /var/lib/docker --exec-root /run/docker --pidfile /run/docker.pid'";
        let allow = format!("export {ALLOW_IPV6}");
        let parts = [
            (!self.by_user).then_some(directories),
            self.without_cgroups.then_some(user),
            self.over_tls.then_some(CERTIFY),
            self.remounts.then_some(cgroups),
            self.allows_ipv6().then_some(&*allow),
            (self.inner == Inner::Docker).then_some(daemon),
        ];
        parts.into_iter().flatten().collect::<Vec<_>>().join("\n")
    }

    /// Gives the inner engine the image; nothing where the daemon is the one outside, which has it.
    pub fn load(&self) -> Option<Vec<String>> {
        let words = [self.client(), "load", "--quiet", "--input", ARCHIVE];
        (self.inner != Inner::Socket).then(|| words.map(str::to_owned).to_vec())
    }

    /// Options with which the outer engine starts containers as the inner one does.
    pub fn outside(&self) -> Vec<String> {
        let words = match (self.outer, self.inner) {
            // A user's engine binds the host's queues of messages, which not every host has.
            ("podman", Inner::Podman)
                if self.run.contains(&"--ipc") || !Path::new("/dev/mqueue").exists() =>
            {
                "--network host --uts host --cgroupns host --cgroups disabled"
            }
            ("podman", Inner::Podman) => {
                "--network host --ipc host --uts host --cgroupns host --cgroups disabled"
            }
            _ => "--network none",
        };
        words.split(' ').map(str::to_owned).collect()
    }

    /// Starts an inner container, detached, that stays and has this name in its environment.
    pub fn start(&self, name: &str, image: &str, order: &[String], run: &RunContext) -> Vec<String> {
        // The other engine's own setup has the network of the outer container.
        let network = if self.inner == Inner::Podman { &[][..] } else { &["--network", "none"] };
        let fixed = ["run", "--detach", "--pull=never", "--name", name, "--env"];
        let marked = format!("{NONCE}={name}");
        // One that the host's daemon keeps must be found there.
        let labels = engine::labels(run);
        let own =
            labels.iter().map(String::as_str).chain(network.iter().copied()).chain(self.run.iter().copied());
        let words = std::iter::once(self.client()).chain(fixed).chain([&*marked]).chain(own);
        words.chain([image]).map(str::to_owned).chain(order.iter().cloned()).collect()
    }

    /// Notes an inner container that the engine outside keeps, so that it is removed after a kill too.
    ///
    /// # Errors
    /// If the journal cannot be written.
    pub fn note(&self, spec: &Spec, name: &str, run: &RunContext) -> Result<Option<Entry>, Abort> {
        let is_outside = self.inner == Inner::Socket || self.name == OWN;
        Ok(is_outside.then(|| run.note(resources::container(spec, name))).transpose()?)
    }

    /// Builds an image in this directory, by a script that goes on without it: what is said is in `log` there, and the end in `code`. A step
    /// of the build has this name in its environment, and carries out an order.
    ///
    /// # Errors
    /// If the inner engine has no such builder.
    pub fn build(&self, name: &str, image: &str, order: &[String], how: &str) -> Result<String, Failure> {
        let unsupported = |why: &str| Failure::new(FailureClass::Unsupported, why);
        let kit = match (self.inner, how) {
            (Inner::Podman, "buildkit") => return Err(unsupported("it is a builder of the other engine")),
            (Inner::Podman, _) => "",
            (_, "buildkit") => "DOCKER_BUILDKIT=1",
            _ => "DOCKER_BUILDKIT=0",
        };
        let words: Vec<String> =
            [EXECUTABLE, PROBE].map(str::to_owned).into_iter().chain(order.iter().cloned()).collect();
        let step = serde_json::Value::from(words);
        let (client, options, directory) = (self.client(), self.run.join(" "), BUILT);
        Ok(format!(
            "mkdir -p {directory} && cd {directory} && rm -f code || exit\n\
             cat >Dockerfile <<'END'\nFROM {image}\nENV {NONCE}={name}\nRUN {step}\nEND\n\
             {{ {kit} {client} build {options} --tag dunnage-built . </dev/null >log 2>&1; echo $? >code; }} >/dev/null 2>&1 &"
        ))
    }

    /// Removes it.
    pub fn remove(&self, name: &str) -> Vec<String> {
        let at_once = if self.inner == Inner::Podman { &["--time", "0"][..] } else { &[] };
        let words = [&[self.client(), "rm", "--force"], at_once, &[name]].concat();
        words.into_iter().map(str::to_owned).collect()
    }

    /// Where the inner engine stores what it has, in the outer container.
    pub fn store(&self) -> &'static str {
        match self.inner {
            Inner::Podman if self.by_user => "/home/podman",
            Inner::Podman => "/var/lib/containers",
            _ => "/var/lib/docker",
        }
    }

    /// Where files can be made in the outer container: in its root, or in a user's home.
    pub fn writable(&self) -> &'static str {
        if self.by_user { "/home/podman" } else { "/" }
    }

    /// Asks which storage driver the inner engine uses.
    pub fn driver(&self) -> Vec<String> {
        let format = if self.inner == Inner::Podman { "{{.Store.GraphDriverName}}" } else { "{{.Driver}}" };
        [self.client(), "info", "--format", format].map(str::to_owned).to_vec()
    }
}

const PATH: &str = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// What tells clients of a daemon that is a service of a job, as GitLab's documentation has it.
const TLS: [&str; 3] =
    ["DOCKER_HOST=tcp://localhost:2376", "DOCKER_TLS_VERIFY=1", "DOCKER_CERT_PATH=/certs/client"];
/// Makes an authority, and certificates of both sides that it has signed.
const CERTIFY: &str = "mkdir -p /certs/client && cd /certs || exit\n\
    printf '[req]\\ndistinguished_name=own\\n[own]\\n' >own.cnf; printf 'subjectAltName=DNS:localhost\\n' >own.ext\n\
    export OPENSSL_CONF=/certs/own.cnf; new='-nodes -newkey ec -pkeyopt ec_paramgen_curve:prime256v1'\n\
    { openssl req -x509 $new -days 2 -addext basicConstraints=critical,CA:TRUE -addext keyUsage=critical,keyCertSign -subj /CN=own -keyout ca-key.pem -out ca.pem &&\n\
    for side in server client; do\n\
    openssl req $new -subj /CN=$side -keyout $side-key.pem -out $side.csr &&\n\
    openssl x509 -req -in $side.csr -CA ca.pem -CAkey ca-key.pem -CAcreateserial -days 2 -extfile own.ext -out $side.pem || exit\n\
    done; } 2>tls.log || { cat tls.log >&2; exit 1; }\n\
    cp ca.pem client/ca.pem; cp client.pem client/cert.pem; cp client-key.pem client/key.pem; cd /\n\
    own_options='--host unix:///var/run/docker.sock --host tcp://127.0.0.1:2376 --tlsverify --tlscacert /certs/ca.pem --tlscert /certs/server.pem --tlskey /certs/server-key.pem'";

/// From docker 26 on its daemon turns IPv6 off where a network has none, and starts no container if it may not.
const ALLOW_IPV6: &str = "DOCKER_ALLOW_IPV6_ON_IPV4_INTERFACE=1";

/// The variable that marks the innermost process.
pub const NONCE: &str = "DUNNAGE_NONCE";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_is_a_way_of_one_engine_once() {
        let mut all: Vec<_> = ALL.iter().map(|way| (way.outer, way.name)).collect();
        all.sort_unstable();
        all.dedup();
        assert_eq!(all.len(), ALL.len());
    }
}
