//! What a container gets from its subject at its request: volumes, and an image with layers instead of the
//! usual one.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use dunnage::orders::work::{Command, Mode, Spin};
use dunnage::outcome::{Abort, FailureClass};
use dunnage::subject::{Access, Container, ContainerRequest, GRACE, Mount, ObjectSpec, Resident, Work};
use dunnage::units::Nanos;

use crate::dunnage::Dunnage;
use crate::handles::{ends, run_in, subject};
use crate::left::said;
use crate::support::{Need, lacks};

/// An order with which the probe inside writes its message to an existing file that both sides see.
pub fn writing(host: &Path, inside: &str) -> Work {
    fs::write(host, "").unwrap();
    fs::set_permissions(host, fs::Permissions::from_mode(0o666)).unwrap();
    let order = Command {
        mode: Mode::Run,
        through: true,
        file: inside.to_owned(),
        service: None,
        directory: String::new(),
        variables: 0,
        words: Vec::new(),
    };
    Work { message_file: Some(host.to_owned()), ..Work::new(order, Nanos(0)) }
}

#[test]
fn what_the_probe_writes_to_a_volume_is_in_its_directory_and_nothing_is_left() {
    const TEST: &str = "what_the_probe_writes_to_a_volume_is_in_its_directory_and_nothing_is_left";
    for (need, engine, text) in [
        (Need::Docker, "docker", "docker:net=none"),
        (Need::Docker, "docker", "docker:client=api,net=none"),
        (Need::Podman, "podman", "podman:net=none"),
        (Need::Podman, "podman", "podman:client=api,net=none"),
    ] {
        if lacks(TEST, need) {
            continue;
        }
        let dunnage = Dunnage::new();
        let run = run_in(&dunnage.state());
        let subject = subject(text, &run);
        let volume = subject.make(ObjectSpec::Volume, &run).unwrap();
        let name = volume.name().expect("a name").to_owned();
        let place = said(engine, &["volume", "inspect", "--format", "{{.Mountpoint}}", &name]);
        let file = PathBuf::from(place.trim()).join("message");
        let volumes = vec![(name.clone(), "/data/below".into())];
        let request = ContainerRequest { volumes, ..ContainerRequest::default() };
        let mut container = Container::create(subject.as_ref(), &request, &run).unwrap();
        container.start().unwrap();
        container.exec(&writing(&file, "/data/below/message")).unwrap();
        assert!(fs::read_to_string(&file).unwrap().starts_with("dunnage-probe "), "{text}");
        container.stop(GRACE).unwrap();
        container.remove().unwrap();
        assert!(file.exists(), "{text}: the volume went with the container");
        volume.finish().unwrap();
        assert!(!file.exists() && !said(engine, &["volume", "ls", "--quiet"]).contains(&name), "{text}");
        ends(&dunnage, subject, run);
    }
}

/// What they stand for costs nothing; the pipeline is tested with them.
#[test]
fn a_scripted_container_takes_volumes_images_and_networks() {
    let dunnage = Dunnage::new();
    let run = run_in(&dunnage.state());
    let fake = subject("fake", &run);
    let volume = fake.make(ObjectSpec::Volume, &run).unwrap();
    let image = fake.make(ObjectSpec::Image(b"executable", &layers(2)), &run).unwrap();
    let network = fake.make(ObjectSpec::Network, &run).unwrap();
    let volumes = vec![(volume.name().expect("a name").to_owned(), "/data".into())];
    let image_of = Some((*image).clone());
    let request = ContainerRequest {
        volumes,
        image: image_of,
        network: network.attachment(),
        ..ContainerRequest::default()
    };
    let mut container = Container::create(fake.as_ref(), &request, &run).unwrap();
    container.start().unwrap();
    container.stop(GRACE).unwrap();
    container.remove().unwrap();
    volume.finish().unwrap();
    image.finish().unwrap();
    network.finish().unwrap();
    ends(&dunnage, fake, run);
}

/// Each layer with a file of its own, and one that the next layer replaces.
fn layers(count: usize) -> Vec<Vec<(String, u64)>> {
    let layer = |number: usize| vec![(format!("data/{number}"), 1000), ("data/same".into(), number as u64)];
    (0..count).map(layer).collect()
}

/// The lower directories of the overlay that a process has as its root.
fn lower_directories(first: i32) -> usize {
    let table = fs::read_to_string(format!("/proc/{first}/mountinfo")).unwrap();
    let root = table.lines().rfind(|line| line.split(' ').nth(4) == Some("/")).expect("a root");
    let option = root.split(',').find_map(|option| option.strip_prefix("lowerdir=")).expect("an overlay");
    option.split(':').count()
}

fn runs_its_image(text: &str, count: usize) {
    let dunnage = Dunnage::new();
    let run = run_in(&dunnage.state());
    let subject = subject(text, &run);
    let executable = fs::read(&run.place.executable).unwrap();
    let image = subject.make(ObjectSpec::Image(&executable, &layers(count)), &run).unwrap();
    // Its mount point is in a directory that only the layers have.
    let (host, inside) = (dunnage.state(), "/data/bound/here".into());
    let request = ContainerRequest {
        mounts: vec![Mount { host, inside, access: Access::ReadOnly }],
        image: Some((*image).clone()),
        program: Resident::Serves,
        ..ContainerRequest::default()
    };
    for _ in 0..2 {
        let mut container = Container::create(subject.as_ref(), &request, &run).unwrap();
        container.start().unwrap();
        container.ready().unwrap();
        container.ask(Spin { millis: 0 }, Nanos(0)).unwrap();
        let first = container.first_process().unwrap();
        assert!(lower_directories(first) > count, "{text}");
        let root = PathBuf::from(format!("/proc/{first}/root/data"));
        let size = |name: &str| fs::metadata(root.join(name)).map(|file| file.len()).ok();
        let last = count as u64 - 1;
        let sizes = [size("0"), size(&last.to_string()), size("same"), size(&count.to_string())];
        assert_eq!(sizes, [Some(1000), Some(1000), Some(last), None], "{text}");
        assert!(root.join("bound/here/images").is_dir(), "{text}");
        // The next container must not find it.
        fs::write(root.join("same"), [0; 5000]).unwrap();
        assert_eq!(size("same"), Some(5000));
        container.stop(GRACE).unwrap();
        container.remove().unwrap();
    }
    image.finish().unwrap();
    ends(&dunnage, subject, run);
}

/// The options of a mount fit into a page; the whole paths of a hundred layers do not, which concerns those that mount
/// themselves or have it done by a runtime alone.
#[test]
fn containers_run_an_image_with_all_its_layers_and_change_none() {
    const TEST: &str = "containers_run_an_image_with_all_its_layers_and_change_none";
    for (need, text, layers) in [
        (Need::Root, "floor", 100),
        (Need::Crun, "crun", 100),
        (Need::Runc, "runc", 24),
        (Need::Containerd, "containerd", 24),
        (Need::Docker, "docker:net=none", 24),
        (Need::Docker, "docker:client=api,net=none", 24),
        (Need::Podman, "podman:net=none", 24),
        (Need::Podman, "podman:client=api,net=none", 24),
    ] {
        if !lacks(TEST, need) {
            runs_its_image(text, layers);
        }
    }
}

#[test]
fn volumes_and_images_of_other_subjects_are_refused() {
    const TEST: &str = "volumes_and_images_of_other_subjects_are_refused";
    if lacks(TEST, Need::Root) {
        return;
    }
    let dunnage = Dunnage::new();
    let run = run_in(&dunnage.state());
    let (floor, bare) = (subject("floor", &run), subject("bare", &run));
    let image = floor.make(ObjectSpec::Image(b"executable", &layers(1)), &run).unwrap();
    let with_image = |image| ContainerRequest { image: Some(image), ..ContainerRequest::default() };
    let of_engine = with_image(dunnage::subject::Object::Named("image".into()));
    let volumes = vec![("volume".to_owned(), "/data".into())];
    let with_volume = ContainerRequest { volumes, ..ContainerRequest::default() };
    for (subject, request, words) in [
        (&floor, &of_engine, "cannot run an image of another subject"),
        (&bare, &with_image((*image).clone()), "cannot run an image of another subject"),
        (&floor, &with_volume, "does not mount volumes"),
    ] {
        let Err(Abort::Failed(failure)) = Container::create(subject.as_ref(), request, &run) else {
            panic!("{words}")
        };
        assert_eq!(failure.class, FailureClass::Unsupported);
        assert!(failure.reason.contains(words), "{failure}");
    }
    drop((image, bare));
    ends(&dunnage, floor, run);
}
