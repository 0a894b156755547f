//! What cases have on the host, where others run beside them.

use std::net::{Ipv4Addr, TcpListener};
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};

use anyhow::{Result, bail};

/// The ports from which [`lasting_port`] chooses: none that a system gives away by itself
/// (from 32,768 on, unless it was told otherwise).
const FIRST_PORT: u32 = 10_000;
const PORTS: u32 = 20_000;

/// A path for temporary files, or a directory of them, that no other case has.
pub fn temporary(name: &str) -> PathBuf {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let (process, count) = (std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
    std::env::temp_dir().join(format!("zonelab-guest-{process}-{count}-{name}"))
}

/// A port of the loopback for a server that is ended and started again where it was. A port
/// that the system has chosen could be another's meanwhile; and a connection to it from
/// which nobody listens could be to itself.
///
/// # Errors
///
/// All are taken.
pub fn lasting_port() -> Result<u16> {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    for _ in 0..PORTS {
        // Programs that run at the same time begin at different ones.
        let first = std::process::id().wrapping_mul(61);
        let offset = first.wrapping_add(COUNT.fetch_add(1, Ordering::Relaxed)) % PORTS;
        let port = u16::try_from(FIRST_PORT + offset)?;
        if TcpListener::bind((Ipv4Addr::LOCALHOST, port)).is_ok() {
            return Ok(port);
        }
    }
    bail!("no port of the loopback is free")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn nobody_else_has_a_path_or_a_port() {
        let paths: BTreeSet<PathBuf> = (0..100).map(|_| temporary("same")).collect();
        assert_eq!(paths.len(), 100);
        let ports: BTreeSet<u16> = (0..100).map(|_| lasting_port().unwrap()).collect();
        assert_eq!(ports.len(), 100);
    }

    #[test]
    fn a_port_in_use_is_passed_over() {
        let port = lasting_port().unwrap();
        // The next ones, as long as they are free.
        let taken: Vec<TcpListener> = (port + 1..port + 5)
            .filter_map(|port| TcpListener::bind((Ipv4Addr::LOCALHOST, port)).ok())
            .collect();
        let next = lasting_port().unwrap();
        let is_free = taken
            .iter()
            .all(|listener| listener.local_addr().unwrap().port() != next);
        assert!(is_free, "{next} is in use");
    }
}
