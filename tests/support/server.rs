//! A Unix socket of a pretended engine: it follows a script, or passes requests on to a real daemon and
//! returns its answers, except where the script says otherwise.
#![allow(dead_code, reason = "no test executable uses all of it")]

use std::io::{Read, Write};
use std::net::Shutdown;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

/// What to do with a request.
pub enum Reply {
    /// Pass it on, or answer like a daemon that has everything.
    Usual,
    /// Answer with these bytes, and close the connection.
    Raw(String),
    /// Answer with a status and a JSON body.
    Json(u16, String),
    /// Neither pass it on nor answer it.
    Hang,
    /// Pass it on, but do not return the answer.
    Swallow,
    /// Close all connections and stop listening.
    Die,
}

/// Method and path, and the number of earlier requests like it.
type Script = dyn Fn(&str, usize) -> Reply + Send + Sync;

struct Shared {
    path: PathBuf,
    upstream: Option<PathBuf>,
    script: Box<Script>,
    seen: Mutex<Vec<(String, String)>>,
    open: Mutex<Vec<UnixStream>>,
}

pub struct Server(Arc<Shared>);

impl Server {
    /// Listens at `path`, in front of the daemon at `upstream` if there is one.
    pub fn start(
        path: &Path,
        upstream: Option<&Path>,
        script: impl Fn(&str, usize) -> Reply + Send + Sync + 'static,
    ) -> Server {
        let _ = std::fs::remove_file(path);
        let listener = UnixListener::bind(path).expect("a socket");
        let shared = Arc::new(Shared {
            path: path.to_owned(),
            upstream: upstream.map(Path::to_owned),
            script: Box::new(script),
            seen: Mutex::default(),
            open: Mutex::default(),
        });
        let own = shared.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                if !own.path.exists() {
                    return;
                }
                let own = own.clone();
                std::thread::spawn(move || serve(&own, stream));
            }
        });
        Server(shared)
    }

    /// Method and path of every request, in order.
    pub fn requests(&self) -> Vec<String> {
        self.0.seen.lock().expect("requests").iter().map(|(shown, _)| shown.clone()).collect()
    }

    /// The bodies of the requests whose method and path begin like this.
    pub fn bodies(&self, begin: &str) -> Vec<String> {
        let seen = self.0.seen.lock().expect("requests");
        seen.iter().filter(|(shown, _)| shown.starts_with(begin)).map(|(_, body)| body.clone()).collect()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        die(&self.0);
    }
}

fn die(shared: &Shared) {
    let _ = std::fs::remove_file(&shared.path);
    for stream in shared.open.lock().expect("connections").drain(..) {
        let _ = stream.shutdown(Shutdown::Both);
    }
}

/// The next request: head and body as received, method and path, and the body.
fn request(stream: &mut UnixStream) -> Option<(Vec<u8>, String, String)> {
    let mut bytes = Vec::new();
    let mut buffer = [0; 65536];
    loop {
        if let Some(head) = bytes.windows(4).position(|four| four == b"\r\n\r\n") {
            let text = String::from_utf8_lossy(&bytes[..head]).into_owned();
            let length = |line: &str| {
                let (name, value) = line.split_once(": ")?;
                name.eq_ignore_ascii_case("content-length").then(|| value.parse::<usize>().ok())?
            };
            let chunked = text.to_lowercase().contains("transfer-encoding: chunked");
            let body = text.lines().find_map(length).unwrap_or(0);
            let whole = if chunked { bytes.ends_with(b"0\r\n\r\n") } else { bytes.len() >= head + 4 + body };
            if whole {
                let shown: Vec<_> = text.split(' ').take(2).collect();
                let body = String::from_utf8_lossy(&bytes[head + 4..]).into_owned();
                return Some((bytes, shown.join(" "), body));
            }
        }
        match stream.read(&mut buffer) {
            Ok(count @ 1..) => bytes.extend_from_slice(&buffer[..count]),
            _ => return None,
        }
    }
}

fn serve(shared: &Arc<Shared>, mut client: UnixStream) {
    shared.open.lock().expect("connections").push(client.try_clone().expect("a socket"));
    let muted = Arc::new(Mutex::new(false));
    let mut upstream = shared.upstream.as_ref().map(|path| {
        let upstream = UnixStream::connect(path).expect("the real daemon");
        let (mut from, mut to) =
            (upstream.try_clone().expect("a socket"), client.try_clone().expect("a socket"));
        shared.open.lock().expect("connections").push(upstream.try_clone().expect("a socket"));
        let muted = muted.clone();
        std::thread::spawn(move || {
            let mut buffer = [0; 65536];
            while let Ok(count @ 1..) = from.read(&mut buffer) {
                if !*muted.lock().expect("a flag") && to.write_all(&buffer[..count]).is_err() {
                    break;
                }
            }
            if !*muted.lock().expect("a flag") {
                let _ = to.shutdown(Shutdown::Both);
            }
        });
        upstream
    });
    while let Some((bytes, shown, body)) = request(&mut client) {
        let kind = kind(&shown);
        let before = {
            let mut seen = shared.seen.lock().expect("requests");
            let before = seen.iter().filter(|(other, _)| self::kind(other) == kind).count();
            seen.push((shown.clone(), body));
            before
        };
        let done = match ((shared.script)(&shown, before), &mut upstream) {
            (Reply::Usual, Some(upstream)) => upstream.write_all(&bytes).is_ok(),
            (Reply::Swallow, Some(upstream)) => {
                *muted.lock().expect("a flag") = true;
                upstream.write_all(&bytes).is_ok()
            }
            (Reply::Usual, None) => client.write_all(usual(&shown).as_bytes()).is_ok() && kind != "attach",
            (Reply::Json(status, body), _) => client.write_all(answer(status, &body).as_bytes()).is_ok(),
            (Reply::Raw(text), _) => {
                let _ = client.write_all(text.as_bytes());
                false
            }
            (Reply::Hang | Reply::Swallow, _) => true,
            (Reply::Die, _) => {
                die(shared);
                false
            }
        };
        if !done {
            let _ = client.shutdown(Shutdown::Both);
            if let Some(upstream) = upstream {
                let _ = upstream.shutdown(Shutdown::Both);
            }
            return;
        }
    }
    // A client without further requests may still read.
    match upstream {
        Some(upstream) => drop(upstream.shutdown(Shutdown::Write)),
        None => drop(client.shutdown(Shutdown::Both)),
    }
}

/// The object of a request, without names and versions.
pub fn kind(shown: &str) -> &str {
    let path = shown.split(['?', ' ']).nth(1).unwrap_or_default();
    match shown {
        _ if shown.starts_with("DELETE ") && shown.contains("force=1") => "force",
        _ if shown.starts_with("DELETE ") => "remove",
        _ => path.rsplit('/').next().unwrap_or_default(),
    }
}

pub fn answer(status: u16, body: &str) -> String {
    format!(
        "HTTP/1.1 {status} Told\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    )
}

/// The answer of a daemon that has everything and always succeeds, except that nothing runs.
fn usual(shown: &str) -> String {
    match kind(shown) {
        "version" => answer(200, r#"{"ApiVersion":"1.41","MinAPIVersion":"1.12"}"#),
        "info" => answer(
            200,
            r#"{"ServerVersion":"20.10","DefaultRuntime":"nosuch","Runtimes":{"nosuch":{"path":"nosuch-runtime"}}}"#,
        ),
        "create" => answer(201, r#"{"Id":"0123456789abcdef","Warnings":[]}"#),
        "attach" => "HTTP/1.1 101 UPGRADED\r\nConnection: Upgrade\r\nUpgrade: tcp\r\n\r\n".into(),
        "wait" => answer(200, r#"{"Error":null,"StatusCode":0}"#),
        "start" | "remove" | "force" => "HTTP/1.1 204 No Content\r\n\r\n".into(),
        _ => answer(200, "{}"),
    }
}
