//! The floor: two programs that exchange bytes over the loopback and do nothing
//! else. Requests and answers are as long as the PDUs of the case; nobody
//! parses, checks or copies anything.

use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

use super::{Case, Cores, Measured, cpu_time};
use crate::bench::now;

/// What is read or written at once.
const CHUNK_BYTES: usize = 1 << 20;

/// One end of a connection.
struct End {
    stream: TcpStream,
    /// Bytes that arrived of what is not whole yet.
    pending: usize,
    /// Bytes that are still to be sent.
    owed: usize,
}

impl End {
    fn new(stream: TcpStream) -> std::io::Result<Self> {
        stream.set_nodelay(true)?;
        stream.set_nonblocking(true)?;
        Ok(Self {
            stream,
            pending: 0,
            owed: 0,
        })
    }

    /// Receives once; how many messages of `len` bytes are whole with that.
    fn receive(&mut self, buffer: &mut [u8], len: usize) -> std::io::Result<usize> {
        match self.stream.read(buffer) {
            Ok(0) => Err(ErrorKind::UnexpectedEof.into()),
            Ok(bytes) => {
                self.pending += bytes;
                let whole = self.pending / len;
                self.pending %= len;
                Ok(whole)
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => Ok(0),
            Err(error) => Err(error),
        }
    }

    /// Sends of what is owed what the socket takes.
    fn send(&mut self, zeros: &[u8]) -> std::io::Result<()> {
        while self.owed > 0 {
            match self.stream.write(&zeros[..self.owed.min(zeros.len())]) {
                Ok(bytes) => self.owed -= bytes,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}

/// Bytes of the request and of the answer of a case.
fn lengths(case: &Case) -> (usize, usize) {
    // A capsule with its command; the header of the data, or a response.
    let (request, answer, data) = (72, 24, case.bytes as usize);
    match case.is_read {
        true => (request, answer + data),
        false => (request + data, answer),
    }
}

/// A server that answers, until it is dropped.
pub(super) struct Echo {
    address: SocketAddr,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<std::io::Result<(f64, u64)>>>,
}

impl Echo {
    pub(super) fn start(case: &Case, cores: Cores) -> std::io::Result<Self> {
        let listener = TcpListener::bind(("127.0.0.1", 0))?;
        let address = listener.local_addr()?;
        let stop = Arc::new(AtomicBool::new(false));
        let (case, stopped) = (*case, Arc::clone(&stop));
        let thread = std::thread::spawn(move || {
            cores.pin_server();
            serve(&listener, &case, &stopped)
        });
        Ok(Self {
            address,
            stop,
            thread: Some(thread),
        })
    }

    /// Runs a case against it, and ends it.
    pub(super) fn measure(mut self, case: &Case, seconds: f64) -> std::io::Result<Measured> {
        let mut measured = exchange(self.address, case, seconds)?;
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let (cpu_s, served) = thread.join().map_err(|_| ErrorKind::Other)??;
            measured.cpu_ns = cpu_s * 1e9 / served as f64;
        }
        Ok(measured)
    }
}

impl Drop for Echo {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
    }
}

/// Answers; returns its processor time in seconds, and how often it answered.
fn serve(listener: &TcpListener, case: &Case, stop: &AtomicBool) -> std::io::Result<(f64, u64)> {
    let (request, answer) = lengths(case);
    let mut ends = Vec::new();
    for _ in 0..case.connections {
        ends.push(End::new(listener.accept()?.0)?);
    }
    let (mut buffer, zeros) = (vec![0; CHUNK_BYTES], vec![0; CHUNK_BYTES]);
    let (start, mut served) = (cpu_time(), 0);
    while !stop.load(Ordering::Relaxed) {
        for end in &mut ends {
            let answered = end.receive(&mut buffer, request).and_then(|whole| {
                served += whole as u64;
                end.owed += whole * answer;
                end.send(&zeros)
            });
            // The other end is done.
            if answered.is_err() {
                return Ok((cpu_time() - start, served));
            }
        }
    }
    Ok((cpu_time() - start, served))
}

/// Keeps as many requests in flight as the case wants, for some seconds.
fn exchange(address: SocketAddr, case: &Case, seconds: f64) -> std::io::Result<Measured> {
    let (request, answer) = lengths(case);
    let mut ends = Vec::new();
    for _ in 0..case.connections {
        ends.push(End::new(TcpStream::connect(address)?)?);
    }
    let (mut buffer, zeros) = (vec![0; CHUNK_BYTES], vec![0; CHUNK_BYTES]);
    for end in &mut ends {
        end.owed = case.depth * request;
        end.send(&zeros)?;
    }
    let (start, mut operations) = (now(), 0);
    loop {
        for end in &mut ends {
            let whole = end.receive(&mut buffer, answer)?;
            operations += whole as u64;
            end.owed += whole * request;
            end.send(&zeros)?;
        }
        let elapsed = now().duration_since(start).as_secs_f64();
        if elapsed >= seconds {
            return Ok(Measured {
                per_s: operations as f64 / elapsed,
                cpu_ns: 0.0,
                allocations: 0.0,
            });
        }
    }
}
