//! The orders about HTTP, through the channel of a container.

use ::dunnage::outcome::{Abort, FailureClass};

use crate::dunnage::Dunnage;
use crate::{ends, named, result, run_in, service, subject, work};

#[test]
fn a_web_server_is_a_process_of_its_own_and_takes_loads() {
    let dunnage = Dunnage::new();
    let run = run_in(&dunnage.state());
    let bare = subject("bare", &run);
    let mut server = service(bare.as_ref(), None, &run);
    let place = tempfile::tempdir().unwrap();
    let directory = format!("directory={}", place.path().display());
    let words = ["serve", "http", "[::1]:0", "workers=2", "hashes=1000", "bytes=5000", "sync=1", &directory];
    let port = named(&result(&mut server, &work("network", &words)), "port");
    let mut client = service(bare.as_ref(), None, &run);
    let target = &format!("[::1]:{port}");
    let answered = result(&mut client, &work("network", &["answers", target, "/network"]));
    assert_eq!(named(&answered, "status"), 200);
    assert!(named(&answered, "waited") > 0);
    for (path, bytes) in [("/network", "body=8"), ("/cpu", "body=64"), ("/disk-io", "body=8")] {
        for rate in [&[][..], &["rate=5000", "cpu=0"]] {
            let order = [&["load", target, path, "6", "2", "300", "0", bytes], rate].concat();
            let done = client.ask(&work("network", &order)).unwrap().done;
            let numbers = ["requests", "opened", "closed", "timeout", "status", "body"];
            assert_eq!(
                numbers.map(|name| named(&done.results, name)),
                [300, 6, 0, 0, 0, 0],
                "{path} {rate:?}"
            );
            assert!(named(&done.results, "in_flight") > 0 && named(&done.results, "took") > 0);
            assert_eq!(done.distributions[0].1.count(), 300);
        }
    }
    // A path with an equals sign is no option.
    let order = ["load", target, "/none?a=b", "1", "1", "5", "0", "status=404"];
    assert_eq!(named(&result(&mut client, &work("network", &order)), "requests"), 5);
    let used = result(&mut server, &work("network", &["usage"]));
    assert!(named(&used, "server_cpu") > 0);
    for (order, class) in [
        (&["load", target, "/none", "1", "1", "5", "0"][..], FailureClass::WrongOutput),
        (&["load", target, "/", "1", "1", "0", "0"], FailureClass::Unsupported),
        (&["serve", "http", target], FailureClass::Environment),
        (&["serve", "http", "[::1]:0", "directory=/dev/null/x"], FailureClass::Environment),
    ] {
        let Err(Abort::Failed(failure)) = client.ask(&work("network", order)) else { panic!("{order:?}") };
        assert_eq!(failure.class, class, "{failure}");
    }
    drop((server, client));
    ends(&dunnage, bare, run);
}
