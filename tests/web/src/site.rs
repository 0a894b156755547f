//! A web server for the files of a directory, for pages that a browser does not load from files.

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

/// A directory that is served until the tests end.
#[derive(Debug)]
pub struct Site {
    url: String,
}

impl Site {
    /// Serves the files of `directory`, not of those below it.
    ///
    /// # Errors
    /// There is no port.
    pub fn serve(directory: &Path) -> Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let url = format!("http://{}/", listener.local_addr()?);
        let directory = directory.to_owned();
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let directory = directory.clone();
                // A browser that leaves in between is no failure of the page.
                std::thread::spawn(move || answer(stream, &directory).ok());
            }
        });
        Ok(Self { url })
    }

    /// Where it is, with a slash at the end.
    #[must_use]
    pub fn url(&self) -> &str {
        &self.url
    }
}

fn answer(mut stream: TcpStream, directory: &Path) -> Result<()> {
    let mut lines = BufReader::new(stream.try_clone()?).lines();
    let first = lines.next().context("nothing was asked")??;
    for line in lines {
        if line?.is_empty() {
            break;
        }
    }
    let path = first.split(' ').nth(1).unwrap_or_default();
    let name = path
        .trim_start_matches('/')
        .split('?')
        .next()
        .unwrap_or_default();
    let name = if name.is_empty() { "index.html" } else { name };
    let found = file(directory, name);
    let (status, kind, body) = match found.and_then(|path| std::fs::read(path).ok()) {
        Some(body) => ("200 OK", kind(name), body),
        None => ("404 Not Found", "text/plain", Vec::new()),
    };
    let length = body.len();
    write!(
        stream,
        "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n"
    )?;
    stream.write_all(&body)?;
    Ok(())
}

fn file(directory: &Path, name: &str) -> Option<PathBuf> {
    (!name.contains(['/', '\\']) && name != "..").then(|| directory.join(name))
}

fn kind(name: &str) -> &'static str {
    match name.rsplit('.').next() {
        Some("html") => "text/html; charset=utf-8",
        Some("css") => "text/css; charset=utf-8",
        Some("js") => "text/javascript; charset=utf-8",
        Some("wasm") => "application/wasm",
        _ => "application/octet-stream",
    }
}
