//! Scripts to the guest, and what came of them: a line protocol over a serial
//! port of the machine (`image/init.sh` is the other end).

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;

/// Longest output of a script.
const MAX_OUTPUT_BYTES: usize = 64 << 20;
/// How much longer than the guest the host waits before it gives the guest up.
const GRACE: Duration = Duration::from_secs(60);

/// What a script did.
#[derive(Clone, Debug)]
pub(crate) struct Answer {
    /// Its exit code.
    pub(crate) code: i32,
    /// What it printed on both of its streams.
    pub(crate) text: String,
}

/// The host's end.
pub(crate) struct Channel {
    stream: BufReader<TcpStream>,
    last_id: u64,
}

impl Channel {
    /// Waits for the guest to say that it is ready.
    pub(crate) fn open(stream: TcpStream, limit: Duration) -> Result<Self> {
        stream.set_write_timeout(Some(GRACE))?;
        stream.set_read_timeout(Some(limit))?;
        let mut channel = Self {
            stream: BufReader::new(stream),
            last_id: 0,
        };
        channel.answer(0).context("the guest did not start")?;
        Ok(channel)
    }

    /// Runs a script in the guest, which ends it after `limit`.
    pub(crate) fn run(&mut self, script: &str, limit: Duration) -> Result<Answer> {
        self.last_id += 1;
        let id = self.last_id;
        let line = format!(
            "{id} {} {}\n",
            limit.as_secs().max(1),
            BASE64.encode(script)
        );
        let stream = self.stream.get_mut();
        stream.set_read_timeout(Some(limit + GRACE))?;
        stream
            .write_all(line.as_bytes())
            .context("the guest is gone")?;
        self.answer(id)
    }

    fn answer(&mut self, id: u64) -> Result<Answer> {
        let mut line = String::new();
        let count = self
            .stream
            .read_line(&mut line)
            .context("no answer in time")?;
        ensure!(count > 0, "the guest is gone");
        let Some((answered, code, bytes)) = header(&line) else {
            bail!("the guest said {line:?}");
        };
        ensure!(answered == id, "the answer to {answered} came for {id}");
        ensure!(bytes <= MAX_OUTPUT_BYTES, "{bytes} bytes of output");
        let mut text = vec![0; bytes];
        self.stream
            .read_exact(&mut text)
            .context("the output is cut off")?;
        let text = String::from_utf8_lossy(&text).into_owned();
        Ok(Answer { code, text })
    }
}

/// Number of the script, its exit code, and how many bytes it printed.
fn header(line: &str) -> Option<(u64, i32, usize)> {
    let mut words = line.split_whitespace();
    let header = (
        words.next()?.parse().ok()?,
        words.next()?.parse().ok()?,
        words.next()?.parse().ok()?,
    );
    words.next().is_none().then_some(header)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;
    use std::thread;

    /// A channel to a peer that says `words`, and closes.
    fn channel(words: &'static [u8]) -> Result<Channel> {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let address = listener.local_addr()?;
        let peer = thread::spawn(move || -> Result<()> {
            let (mut stream, _) = listener.accept()?;
            stream.write_all(words)?;
            Ok(())
        });
        let channel = Channel::open(TcpStream::connect(address)?, Duration::from_secs(10));
        peer.join().expect("the peer does not panic")?;
        channel
    }

    #[test]
    fn output_may_hold_anything() {
        let mut channel = channel(b"0 0 0\n1 7 8\n2 0 0\n\xff\n2 3 0\n").unwrap();
        let answer = channel.answer(1).unwrap();
        assert_eq!(
            (answer.code, answer.text.as_str()),
            (7, "2 0 0\n\u{fffd}\n")
        );
        assert_eq!(channel.answer(2).unwrap().code, 3);
        let error = channel.answer(3).unwrap_err();
        assert_eq!(error.to_string(), "the guest is gone");
    }

    #[test]
    fn nonsense_is_refused() {
        for words in [
            &b""[..],
            b"0 0\n",
            b"0 0 0 0\n",
            b"1 0 0\n",
            b"0 0 99\nshort",
            b"0 0 99999999999\n",
        ] {
            assert!(channel(words).is_err(), "{words:?}");
        }
    }
}
