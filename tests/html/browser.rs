//! A real browser driven by a test: Debian's chromium without a window, over its own protocol on a pair of
//! pipes, so that no port is opened and nothing listens.
//!
//! What the browser reports about the page is kept: console messages and requests. No wait is unlimited.

use std::collections::VecDeque;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use base64::Engine;
use resvg::tiny_skia::Pixmap;
use serde_json::{Value, json};
use tempfile::TempDir;

/// How long an answer may take on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);
/// The protocol uses descriptors 3 and 4.
const REDIRECTED: &str = "exec \"$@\" 3<&0 4>&1 </dev/null >/dev/null";
const FLAGS: [&str; 9] = [
    "--no-sandbox",
    "--headless",
    "--disable-gpu",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--hide-scrollbars",
    "--remote-debugging-pipe",
];

/// The size of the window, and the preferences of the system.
#[derive(Clone, Copy)]
pub struct Window {
    pub width: u32,
    pub height: u32,
    pub scheme: &'static str,
}

/// A page in its own browser.
pub struct Browser {
    child: Child,
    to: ChildStdin,
    from: Receiver<Value>,
    last: u64,
    session: String,
    events: VecDeque<Value>,
    _profile: TempDir,
}

impl Browser {
    /// Starts it, and opens a file in a window.
    pub fn open(file: &Path, window: Window) -> Browser {
        let profile = TempDir::new().expect("an empty profile");
        let mut child = Command::new("sh")
            .args(["-c", REDIRECTED, "sh", "chromium"])
            .args(FLAGS)
            .arg(format!("--user-data-dir={}", profile.path().display()))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("a shell");
        let to = child.stdin.take().expect("it is piped");
        let mut out = BufReader::new(child.stdout.take().expect("it is piped"));
        let (said, from) = channel();
        // The thread ends with the browser, which closes the pipe.
        std::thread::spawn(move || {
            let mut message = Vec::new();
            while out.read_until(0, &mut message).is_ok_and(|bytes| bytes > 0) {
                message.pop();
                let Ok(value) = serde_json::from_slice(&message) else { return };
                if said.send(value).is_err() {
                    return;
                }
                message.clear();
            }
        });
        let mut browser = Browser {
            child,
            to,
            from,
            last: 0,
            session: String::new(),
            events: VecDeque::new(),
            _profile: profile,
        };
        let target = browser.call("Target.createTarget", json!({ "url": "about:blank" }));
        let attached =
            browser.call("Target.attachToTarget", json!({ "targetId": target["targetId"], "flatten": true }));
        browser.session = attached["sessionId"].as_str().expect("a session").to_owned();
        for domain in ["Page", "Runtime", "Log", "Network"] {
            browser.call(&format!("{domain}.enable"), json!({}));
        }
        browser.resize(window);
        browser.call("Page.navigate", json!({ "url": format!("file://{}", file.display()) }));
        browser.wait_for("Page.loadEventFired");
        browser
    }

    /// Changes the size of the window and the preferences of the system.
    pub fn resize(&mut self, window: Window) {
        let Window { width, height, scheme } = window;
        let metrics =
            json!({ "width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600 });
        self.call("Emulation.setDeviceMetricsOverride", metrics);
        let features = json!([{ "name": "prefers-color-scheme", "value": scheme }]);
        self.call("Emulation.setEmulatedMedia", json!({ "features": features }));
    }

    /// Shows the page as it would be printed.
    pub fn print(&mut self) {
        self.call("Emulation.setEmulatedMedia", json!({ "media": "print" }));
    }

    /// The value of an expression in the page.
    pub fn evaluate(&mut self, expression: &str) -> Value {
        let asked = json!({ "expression": expression, "returnByValue": true, "awaitPromise": true });
        let answer = self.call("Runtime.evaluate", asked);
        assert!(answer.get("exceptionDetails").is_none(), "{expression}: {answer}");
        answer["result"]["value"].clone()
    }

    /// Presses a key like a user.
    pub fn press(&mut self, key: &str) {
        let (code, text) = match key {
            "Tab" => (9, ""),
            "Enter" => (13, "\r"),
            "Space" => (32, " "),
            "Escape" => (27, ""),
            other => panic!("no such key here: {other}"),
        };
        let name = if key == "Space" { " " } else { key };
        let mut event = json!({ "type": "keyDown", "key": name, "code": key, "windowsVirtualKeyCode": code });
        if !text.is_empty() {
            event["text"] = text.into();
        }
        self.call("Input.dispatchKeyEvent", event);
        let up = json!({ "type": "keyUp", "key": name, "code": key, "windowsVirtualKeyCode": code });
        self.call("Input.dispatchKeyEvent", up);
    }

    /// Moves the pointer.
    pub fn point(&mut self, x: f64, y: f64) {
        self.call("Input.dispatchMouseEvent", json!({ "type": "mouseMoved", "x": x, "y": y }));
    }

    /// A picture of the window.
    pub fn screenshot(&mut self) -> (Vec<u8>, Pixmap) {
        let answer = self.call("Page.captureScreenshot", json!({ "format": "png" }));
        let data = answer["data"].as_str().expect("a picture");
        let bytes = base64::engine::general_purpose::STANDARD.decode(data).expect("base64");
        let pixels = Pixmap::decode_png(&bytes).expect("PNG");
        (bytes, pixels)
    }

    /// Errors of the page, in the browser's words.
    pub fn complaints(&mut self) -> Vec<String> {
        // All earlier messages have arrived when this is answered.
        self.evaluate("1");
        const WRONG: [&str; 3] = ["Runtime.exceptionThrown", "Runtime.consoleAPICalled", "Log.entryAdded"];
        let wrong = |event: &&Value| event["method"].as_str().is_some_and(|method| WRONG.contains(&method));
        self.events.iter().filter(wrong).map(|event| event["params"].to_string()).collect()
    }

    /// The page's requests, except for itself and what it contains.
    pub fn requests(&mut self) -> Vec<String> {
        self.evaluate("1");
        let asked = self.events.iter().filter(|event| event["method"] == "Network.requestWillBeSent");
        let urls = asked.filter_map(|event| event["params"]["request"]["url"].as_str());
        let outside = |url: &&str| !url.starts_with("data:") && !url.starts_with("file:");
        urls.filter(outside).map(str::to_owned).collect()
    }

    fn call(&mut self, method: &str, params: Value) -> Value {
        self.last += 1;
        let mut message = json!({ "id": self.last, "method": method, "params": params });
        if !self.session.is_empty() {
            message["sessionId"] = self.session.clone().into();
        }
        let mut bytes = message.to_string().into_bytes();
        bytes.push(0);
        self.to.write_all(&bytes).expect("the browser listens");
        let id = self.last;
        let answer = self.wait(|message| message["id"] == id);
        assert!(answer.get("error").is_none(), "{method}: {answer}");
        answer["result"].clone()
    }

    fn wait_for(&mut self, event: &str) {
        if !self.events.iter().any(|one| one["method"] == event) {
            self.wait(|message| message["method"] == event);
        }
    }

    /// Keeps events until the expected message.
    fn wait(&mut self, is_it: impl Fn(&Value) -> bool) -> Value {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            let message = self.from.recv_timeout(left).expect("the browser answers in time");
            if is_it(&message) {
                return message;
            }
            if message.get("method").is_some() {
                self.events.push_back(message);
            }
        }
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        // Its other processes end with it.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
