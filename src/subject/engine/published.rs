//! Whether the ports of the key `publish` are really published. A measured launch ends at once, so they are read back
//! from another container of the subject, before anything is measured: what the engine says, and whether the kernel has a
//! socket that takes connections there. Some engines only repeat what was asked for.

use crate::outcome::{Abort, Failure, FailureClass};
use crate::subject::draft::Published;
use crate::subject::way;
use crate::subject::work::{Port, published};
use crate::subject::{Container, ContainerRequest, GRACE, RunContext, Subject};

/// Starts a container of the subject and checks its ports, if its key asks for any; the result is a note about the subject.
/// The first of the daemons, or else dunnage, is in the network namespace of the host side.
pub(in crate::subject) fn read_back(
    subject: &dyn Subject,
    daemons: Result<&[i32], impl Sized>,
    run: &RunContext,
) -> Result<Option<(&'static str, String)>, Abort> {
    let asked: Vec<Port> = published(&subject.about().spec).collect();
    let Some(first) = asked.first() else { return Ok(None) };
    let mut container = Container::create(subject, &ContainerRequest::default(), run)?;
    container.start()?;
    let found = container.ports()?;
    let known = daemons.ok().and_then(|all| all.first().copied());
    let host = known.unwrap_or(std::process::id() as i32);
    let is_taken = |one: &Published| !way::sockets(host, one.host, first.transport).is_empty();
    check(&asked, &found, is_taken)?;
    container.stop(GRACE)?;
    container.remove()?;
    Ok(Some(("published ports", format!("{} at {}", asked.len(), first.at))))
}

/// Whether all of these ports were found, at the address asked for and with a socket.
fn check(asked: &[Port], found: &[Published], is_taken: impl Fn(&Published) -> bool) -> Result<(), Failure> {
    let missing = |port: &&Port| {
        let of_port = |one: &&Published| one.inside == port.number && one.host.ip() == port.at;
        found.iter().find(of_port).is_none_or(|one| one.host.port() == 0 || !is_taken(one))
    };
    let count = asked.iter().filter(missing).count();
    let Some(port) = asked.iter().find(missing) else { return Ok(()) };
    let told = match found.iter().find(|one| one.inside == port.number) {
        None => "the engine names no address".to_owned(),
        Some(one) => format!(
            "the engine names {}, where {}",
            one.host,
            match one.host.ip() == port.at {
                true => "nothing listens",
                false => "it was not asked for",
            }
        ),
    };
    let reason = format!(
        "not as asked: {count} of {} ports are not published at {}; for port {}, {told}",
        asked.len(),
        port.at,
        port.number
    );
    Err(Failure::new(FailureClass::Treatment, reason))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::subject::Spec;

    #[test]
    fn every_port_must_be_there_at_its_address_and_taken() {
        let asked: Vec<Port> = published(&Spec::parse("docker:publish=3").unwrap()).collect();
        let at = |port: &Port, host: &str| Published { inside: port.number, host: host.parse().unwrap() };
        let whole = [
            at(&asked[0], "127.0.0.1:50000"),
            at(&asked[1], "127.0.0.1:50001"),
            at(&asked[2], "127.0.0.1:50002"),
        ];
        let reason = |found: &[Published], taken: fn(&Published) -> bool| {
            check(&asked, found, taken).map_err(|failure| {
                assert_eq!(failure.class, FailureClass::Treatment);
                failure.reason
            })
        };
        assert_eq!(reason(&whole, |_| true), Ok(()));
        let missing = reason(&whole[..1], |_| true).unwrap_err();
        assert!(missing.contains("2 of 3 ports") && missing.contains("names no address"), "{missing}");
        let silent = reason(&whole, |one| one.host.port() != 50001).unwrap_err();
        assert!(
            silent.contains("1 of 3") && silent.contains("127.0.0.1:50001, where nothing listens"),
            "{silent}"
        );
        let elsewhere = [whole[0], whole[1], at(&asked[2], "0.0.0.0:50002")];
        let elsewhere = reason(&elsewhere, |_| true).unwrap_err();
        assert!(elsewhere.contains("0.0.0.0:50002, where it was not asked for"), "{elsewhere}");
        let unbound = [whole[0], whole[1], at(&asked[2], "127.0.0.1:0")];
        assert!(reason(&unbound, |_| true).is_err());
    }
}
