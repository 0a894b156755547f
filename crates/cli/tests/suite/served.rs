//! `zonelab serve` in a process of its own.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};

use zonelab_driver::url::TcpAddress;
use zonelab_driver::{Controller as _, Options, TcpController, TcpQueue};

/// A server and what it said first.
pub(crate) struct Served {
    pub(crate) process: Child,
    pub(crate) said: serde_json::Value,
}

impl Served {
    pub(crate) fn start(mut command: Command) -> Self {
        let mut process = command.stdout(Stdio::piped()).spawn().unwrap();
        let output = process.stdout.take().unwrap();
        let mut line = String::new();
        BufReader::new(output).read_line(&mut line).unwrap();
        let said = serde_json::from_str(&line).unwrap();
        Self { process, said }
    }

    /// What the drive is called as a device.
    pub(crate) fn url(&self) -> String {
        let (port, nqn) = (&self.said["port"], self.said["nqn"].as_str().unwrap());
        format!("tcp://127.0.0.1:{port}/{nqn}")
    }

    /// A queue, and the controller without which it ends.
    pub(crate) fn connect(&self) -> (TcpController, TcpQueue) {
        let options = Options::new(TcpAddress::parse(&self.url()).unwrap());
        let mut controller = TcpController::connect(options).unwrap();
        let queue = controller.open_queue().unwrap();
        (controller, queue)
    }

    /// A page of its web server.
    pub(crate) fn get(&self, path: &str) -> String {
        let web = self.said["web"].as_str().unwrap();
        let address = web.strip_prefix("http://").unwrap().trim_end_matches('/');
        let mut stream = TcpStream::connect(address).unwrap();
        let request = format!("GET {path} HTTP/1.1\r\nHost: {address}\r\n\r\n");
        stream.write_all(request.as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer.split_once("\r\n\r\n").unwrap().1.to_owned()
    }

    /// A metric without labels.
    pub(crate) fn metric(&self, name: &str) -> f64 {
        let text = self.get("/metrics");
        let line = text
            .lines()
            .find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
        line.unwrap_or_else(|| panic!("{name}: {text}"))
            .parse()
            .unwrap()
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
