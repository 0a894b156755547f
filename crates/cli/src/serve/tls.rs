//! `serve --tls-listen ADDR:PORT --tls-key FILE`: TLS 1.3 on a port of its own.

use std::net::{SocketAddr, TcpListener};
use std::path::{Path, PathBuf};

use zonelab_live::layer::Served;
use zonelab_target::server::{LoopHandle, Server};

use super::reload::Watched;
use crate::exit::Failure;
use crate::usage;

/// Options about TLS.
#[derive(clap::Args)]
pub(super) struct TlsArgs {
    /// Address to listen on for TLS 1.3, beside --listen
    #[arg(long, value_name = "ADDR:PORT", requires = "tls_key", value_parser = usage::address)]
    tls_listen: Option<SocketAddr>,
    /// Let the hosts in this file in with TLS alone, whose keys it has: lines HOSTNQN KEY, or
    /// HOSTNQN KEY libnvme
    #[arg(long, value_name = "FILE", requires = "tls_listen")]
    tls_key: Option<PathBuf>,
}

/// What the options ask for, with the keys of the file.
pub(super) struct Checked {
    at: SocketAddr,
    subnqn: String,
    keys: ReadKeys,
}

/// A port that nobody answers yet.
pub(super) struct Bound {
    listener: TcpListener,
    subnqn: String,
    keys: ReadKeys,
    pub(super) address: SocketAddr,
}

impl TlsArgs {
    /// Whether hosts can come with TLS.
    pub(super) const fn is_wanted(&self) -> bool {
        self.tls_listen.is_some()
    }

    /// The address of the port, if there is to be one.
    pub(super) const fn listen(&self) -> Option<SocketAddr> {
        self.tls_listen
    }

    /// The file of keys, if there is one.
    pub(super) fn file(&self) -> Option<&Path> {
        self.tls_key.as_deref()
    }

    /// Reads the keys for the subsystem `subnqn`, if there is to be a port: before anything
    /// is made that a wrong file would leave behind.
    ///
    /// # Errors
    /// The file of keys is wrong, or this program has no TLS.
    pub(super) fn check(&self, subnqn: &str) -> Result<Option<Checked>, Failure> {
        let (Some(at), Some(path)) = (self.tls_listen, &self.tls_key) else {
            return Ok(None);
        };
        let (subnqn, keys) = (subnqn.to_owned(), ReadKeys::of(path, subnqn)?);
        Ok(Some(Checked { at, subnqn, keys }))
    }
}

impl Checked {
    /// Binds the port.
    ///
    /// # Errors
    /// It cannot be bound.
    pub(super) fn bind(self) -> Result<Bound, Failure> {
        let Self { at, subnqn, keys } = self;
        let failed = |error| Failure::environment(anyhow::anyhow!("--tls-listen {at}: {error}"));
        let listener = TcpListener::bind(at).map_err(failed)?;
        let address = listener.local_addr().map_err(failed)?;
        Ok(Bound {
            listener,
            subnqn,
            keys,
            address,
        })
    }
}

#[cfg(feature = "tls")]
mod with {
    use std::io;
    use std::net::SocketAddr;
    use std::os::fd::BorrowedFd;
    use std::path::{Path, PathBuf};
    use std::sync::Arc;
    use std::time::Duration;

    use zonelab_nvme::identify::Nqn;
    use zonelab_target::server::{Limits, Present, keep_alive};
    use zonelab_tls::{Admitted, Behind, Front, FrontLimits, Keys};

    use super::{Bound, Failure, LoopHandle, Served, Server, Watched};
    use crate::host_keys;
    use crate::serve::reload::Stamp;

    /// Keys of a file, and the names of their hosts.
    fn read(path: &Path, subnqn: &str) -> Result<(Keys, Vec<Nqn>), Failure> {
        let entries = host_keys::read_tls(path)?;
        let names = entries
            .iter()
            .filter_map(|of| Nqn::new(&of.hostnqn))
            .collect();
        let keys = Keys::new(&entries, subnqn)
            .map_err(|error| Failure::input(anyhow::anyhow!("{}: {error}", path.display())))?;
        Ok((keys, names))
    }

    /// A file of keys that was read.
    pub(in crate::serve) struct ReadKeys {
        path: PathBuf,
        /// How the file looked before.
        seen: Option<Stamp>,
        keys: Keys,
        names: Vec<Nqn>,
    }

    impl ReadKeys {
        /// # Errors
        /// The file cannot be read, or is wrong.
        pub(super) fn of(path: &Path, subnqn: &str) -> Result<Self, Failure> {
            let seen = Stamp::of(path);
            let (keys, names) = read(path, subnqn)?;
            let path = path.to_owned();
            Ok(Self {
                path,
                seen,
                keys,
                names,
            })
        }
    }

    /// The loop of the server behind the port.
    struct Loop(LoopHandle<Served>);

    impl Behind for Loop {
        fn prepare(&self, socket: BorrowedFd<'_>) -> io::Result<()> {
            keep_alive(socket)
        }

        fn admit(&self, admitted: Admitted) -> bool {
            let Admitted {
                stream,
                peer,
                hostnqn,
                identity,
            } = admitted;
            let Some(host) = Nqn::new(&hostnqn) else {
                return false;
            };
            let adopt = move |present: Present<'_, Served>| {
                let Present { server, now, .. } = present;
                if server.has_news(now) {
                    tracing::info!(%peer, identity, "TLS");
                }
                server.adopt(stream, (peer, host), now)
            };
            self.0.call(adopt).unwrap_or(false)
        }

        fn failed(&self, peer: SocketAddr, reason: &'static str) {
            // If the server has ended, nobody wants to know.
            let _ = self.0.call(move |present: Present<'_, Served>| {
                present.server.complain(present.now, peer, reason);
            });
        }
    }

    /// Answers the port, until what it returns is dropped.
    ///
    /// # Errors
    /// The system has no thread left.
    pub(in crate::serve) fn answer(
        bound: Bound,
        limits: &Limits,
        server: &mut Server,
        handle: LoopHandle<Served>,
    ) -> Result<(Front, Watched), Failure> {
        let ReadKeys {
            path,
            seen,
            keys,
            names,
        } = bound.keys;
        server.require_known(names);
        let limits = FrontLimits {
            stall: Duration::from_nanos(limits.stall.0),
            ..FrontLimits::default()
        };
        let front = Front::start(bound.listener, keys, limits, Loop(handle));
        let front = front.map_err(Failure::environment)?;
        let (shown, subnqn) = (Arc::new(front.keys()), bound.subnqn);
        let watched = Watched::since(seen, &path, move |path| {
            let (keys, names) = read(path, &subnqn)?;
            let shown = Arc::clone(&shown);
            Ok(Box::new(move |present| {
                Front::replace(&shown, keys);
                present.server.require_known(names);
                Ok(())
            }))
        });
        Ok((front, watched))
    }
}

#[cfg(not(feature = "tls"))]
mod with {
    use std::convert::Infallible;
    use std::path::Path;

    use zonelab_target::server::Limits;

    use super::{Bound, Failure, LoopHandle, Served, Server, Watched};

    /// There are none.
    pub(in crate::serve) struct ReadKeys(Infallible);

    impl ReadKeys {
        /// # Errors
        /// Always: this program has no TLS.
        pub(super) fn of(_path: &Path, _subnqn: &str) -> Result<Self, Failure> {
            Err(Failure::usage(
                "--tls-listen: this program was built without TLS; valid: one that was built with \
                 `cargo build --package zonelab-cli --features tls`"
                    .to_owned(),
            ))
        }
    }

    /// Nothing: there is no port without keys.
    pub(in crate::serve) fn answer(
        bound: Bound,
        _limits: &Limits,
        _server: &mut Server,
        _handle: LoopHandle<Served>,
    ) -> Result<((), Watched), Failure> {
        let Bound {
            listener,
            subnqn,
            keys,
            ..
        } = bound;
        drop((listener, subnqn));
        match keys.0 {}
    }
}

use with::ReadKeys;
pub(super) use with::answer;
