//! A Chromium process, and messages to it.

use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use serde_json::{Value, json};
use tungstenite::{Message, WebSocket};

/// Names under which Chromium is installed; `CHROMIUM` in the environment names another.
const NAMES: [&str; 4] = [
    "chromium",
    "chromium-browser",
    "google-chrome",
    "google-chrome-stable",
];
/// How long to wait for an answer, or for the browser to start.
const PATIENCE: Duration = Duration::from_secs(60);
/// Pause between two looks whether it has started.
const PAUSE: Duration = Duration::from_millis(50);
/// Looks whether it has ended, before it is killed.
const LAST_LOOKS: u32 = 100;

/// A browser that ends with this value.
pub(crate) struct Browser {
    process: Child,
    socket: WebSocket<TcpStream>,
    profile: PathBuf,
    last_id: u64,
    /// What the browser reported and nobody looked at yet.
    pub(crate) events: Vec<Value>,
    /// Session of the page that commands are for; empty for the browser itself.
    pub(crate) session: String,
}

impl Browser {
    /// Starts one with a profile directory of its own.
    pub(crate) fn start() -> Result<Self> {
        static COUNT: std::sync::atomic::AtomicU32 = std::sync::atomic::AtomicU32::new(0);
        let count = COUNT.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        let name = format!("zonelab-web-{}-{count}", std::process::id());
        let profile = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&profile)?;
        let mut process = spawn(&profile)?;
        let socket = match connect(&profile, &mut process) {
            Ok(socket) => socket,
            Err(error) => {
                let _ = process.kill();
                let _ = process.wait();
                return Err(error);
            }
        };
        Ok(Self {
            process,
            socket,
            profile,
            last_id: 0,
            events: Vec::new(),
            session: String::new(),
        })
    }

    /// Calls a method of the protocol and gives its result.
    pub(crate) fn call(&mut self, method: &str, params: Value) -> Result<Value> {
        self.last_id += 1;
        let id = self.last_id;
        let mut message = json!({ "id": id, "method": method, "params": params });
        if !self.session.is_empty() {
            message["sessionId"] = json!(self.session);
        }
        self.socket.send(Message::text(message.to_string()))?;
        loop {
            let message = self
                .receive()
                .with_context(|| format!("no answer to {method}"))?;
            if message["id"] != id {
                self.events.push(message);
                continue;
            }
            if let Some(error) = message.get("error") {
                bail!("{method}: {error}");
            }
            return Ok(message["result"].clone());
        }
    }

    /// Waits for an event.
    pub(crate) fn wait_for(&mut self, method: &str) -> Result<()> {
        if self.events.iter().any(|event| event["method"] == method) {
            return Ok(());
        }
        loop {
            let message = self.receive().with_context(|| format!("no {method}"))?;
            let found = message["method"] == method;
            self.events.push(message);
            if found {
                return Ok(());
            }
        }
    }

    fn receive(&mut self) -> Result<Value> {
        loop {
            if let Message::Text(text) = self.socket.read()? {
                return Ok(serde_json::from_str(&text)?);
            }
        }
    }
}

impl Drop for Browser {
    /// Asks it to end, so that its helpers end too and let go of the profile.
    #[expect(
        clippy::disallowed_methods,
        reason = "another process ends in its own time"
    )]
    fn drop(&mut self) {
        self.session.clear();
        let _ = self.call("Browser.close", json!({}));
        for _ in 0..LAST_LOOKS {
            if !matches!(self.process.try_wait(), Ok(None)) {
                break;
            }
            std::thread::sleep(PAUSE);
        }
        let _ = self.process.kill();
        let _ = self.process.wait();
        for _ in 0..LAST_LOOKS {
            let _ = std::fs::remove_dir_all(&self.profile);
            if !self.profile.exists() {
                break;
            }
            std::thread::sleep(PAUSE);
        }
    }
}

fn spawn(profile: &Path) -> Result<Child> {
    let named = std::env::var("CHROMIUM").ok();
    let names: Vec<&str> = named.as_deref().map_or(NAMES.to_vec(), |name| vec![name]);
    for name in &names {
        let mut command = Command::new(name);
        command
            .args([
                "--headless",
                "--no-sandbox",
                "--disable-gpu",
                "--disable-quic",
            ])
            .args([
                "--no-first-run",
                "--disable-background-networking",
                "--disable-component-update",
            ])
            .args([
                "--disable-sync",
                "--hide-scrollbars",
                "--remote-debugging-port=0",
            ])
            .arg(format!("--user-data-dir={}", profile.display()))
            .arg("about:blank")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        if let Ok(process) = command.spawn() {
            return Ok(process);
        }
    }
    bail!(
        "there is no Chromium (looked for {}): install it, or name it in CHROMIUM",
        names.join(", ")
    )
}

/// Connects to the port that the browser writes to its profile directory.
#[expect(
    clippy::disallowed_methods,
    reason = "another process starts in its own time"
)]
fn connect(profile: &Path, process: &mut Child) -> Result<WebSocket<TcpStream>> {
    let file = profile.join("DevToolsActivePort");
    let looks = PATIENCE.as_millis() / PAUSE.as_millis();
    for _ in 0..looks {
        if let Some(status) = process.try_wait()? {
            bail!("Chromium ended with {status} before it could be used");
        }
        let text = std::fs::read_to_string(&file).unwrap_or_default();
        // A line with the port, and one with the path, once both are written.
        if let [port, path] = text.lines().collect::<Vec<_>>()[..]
            && !path.is_empty()
        {
            let address = format!("127.0.0.1:{port}");
            let stream = TcpStream::connect(&address)?;
            stream.set_read_timeout(Some(PATIENCE))?;
            let (socket, _) = tungstenite::client(format!("ws://{address}{path}"), stream)
                .context("the browser does not speak the DevTools protocol")?;
            return Ok(socket);
        }
        std::thread::sleep(PAUSE);
    }
    bail!("Chromium does not start")
}
