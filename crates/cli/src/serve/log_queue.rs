//! Log lines on their way to standard error, which somebody may not read: a thread writes
//! them, a bounded number of them waits, and the others are counted.

use std::io::{self, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::time::Duration;

/// Lines that wait at most.
const LINES: usize = 4096;
/// How long the end of the program waits for the last of them.
const END: Duration = Duration::from_millis(500);

pub(super) enum Entry {
    Line(Vec<u8>),
    /// Everything before is written when this comes back.
    End(SyncSender<()>),
}

/// Takes lines, and never blocks. Clones are the same.
#[derive(Clone)]
pub(super) struct LogQueue {
    entries: SyncSender<Entry>,
    /// Lines that found no room, of which nothing has been said.
    dropped: Arc<AtomicU64>,
}

/// What is written where lines are missing.
pub(super) type Missing = fn(u64) -> String;

/// The other end of a [`LogQueue`]: lines wait until it has its thread.
pub(super) struct LogWriter {
    waiting: Receiver<Entry>,
    dropped: Arc<AtomicU64>,
    out: Box<dyn Write + Send>,
    missing: Missing,
}

impl LogWriter {
    /// Writes lines in a thread of its own from now on.
    ///
    /// # Errors
    /// There is no thread.
    pub(super) fn spawn(mut self) -> io::Result<()> {
        let thread = std::thread::Builder::new().name("log".to_owned());
        thread.spawn(move || {
            while let Ok(entry) = self.waiting.recv() {
                self.write(entry);
            }
        })?;
        Ok(())
    }

    /// Writes what waits, if it never got a thread.
    pub(super) fn drain(&mut self) {
        while let Ok(entry) = self.waiting.try_recv() {
            self.write(entry);
        }
    }

    fn write(&mut self, entry: Entry) {
        // A log that is full or closed must not end the drive.
        match entry {
            Entry::Line(line) => drop(self.out.write_all(&line)),
            Entry::End(done) => drop(done.try_send(())),
        }
        match self.dropped.swap(0, Ordering::Relaxed) {
            0 => {}
            count => drop(self.out.write_all((self.missing)(count).as_bytes())),
        }
    }
}

impl LogQueue {
    /// A queue of lines that are to be written to `out`.
    pub(super) fn to(out: impl Write + Send + 'static, missing: Missing) -> (Self, LogWriter) {
        Self::with_room(LINES, out, missing)
    }

    fn with_room(
        lines: usize,
        out: impl Write + Send + 'static,
        missing: Missing,
    ) -> (Self, LogWriter) {
        let (entries, waiting) = sync_channel(lines);
        let dropped = Arc::new(AtomicU64::new(0));
        let writer = LogWriter {
            waiting,
            dropped: Arc::clone(&dropped),
            out: Box::new(out),
            missing,
        };
        (Self { entries, dropped }, writer)
    }

    /// Waits until what was logged is written, or somebody has not read it for a while.
    pub(super) fn end(&self) {
        let (done, is_done) = sync_channel(1);
        if self.entries.try_send(Entry::End(done)).is_ok() {
            // It has ended, or will not.
            let _ = is_done.recv_timeout(END);
        }
    }
}

impl Write for LogQueue {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        if self.entries.try_send(Entry::Line(line.to_vec())).is_err() {
            self.dropped.fetch_add(1, Ordering::Relaxed);
        }
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::{Sender, channel};

    use super::*;

    /// A place that takes a line for each word that is sent to `goes_on`.
    struct Slow {
        goes_on: Receiver<()>,
        written: Sender<String>,
    }

    impl Write for Slow {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.goes_on.recv().map_err(io::Error::other)?;
            let line = String::from_utf8_lossy(bytes).into_owned();
            self.written.send(line).map_err(io::Error::other)?;
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn who_does_not_read_the_log_holds_up_nobody_and_is_told_what_is_missing() {
        let (go_on, goes_on) = channel();
        let (written, lines) = channel();
        let slow = Slow { goes_on, written };
        let missing = |count| format!("{count} are missing");
        let (mut queue, writer) = LogQueue::with_room(10, slow, missing);
        writer.spawn().unwrap();
        let (done, is_done) = channel();
        std::thread::spawn(move || {
            for number in 0..1000 {
                let line = format!("line {number}");
                queue.write_all(line.as_bytes()).unwrap();
            }
            queue.end();
            done.send(()).unwrap();
        });
        is_done
            .recv_timeout(Duration::from_secs(60))
            .expect("a log that nobody reads holds up nobody");
        // Until it has written all that there is.
        while go_on.send(()).is_ok() {}
        let next = || lines.recv_timeout(Duration::from_secs(60)).unwrap();
        assert_eq!(next(), "line 0");
        let said = next();
        let count: u64 = said.strip_suffix(" are missing").unwrap().parse().unwrap();
        // One is with the thread, if it was quick enough, and ten wait.
        assert!((989..=990).contains(&count), "{said}");
        for number in 1..10 {
            assert_eq!(next(), format!("line {number}"));
        }
    }
}
