//! `serve --tls-listen ADDR:PORT --tls-key FILE`: TLS 1.3 on a port of its own.

use std::net::{SocketAddr, TcpListener};
use std::path::PathBuf;

use zonelab_live::layer::Served;
use zonelab_target::server::{LoopHandle, Server};

use super::reload::Watched;
use crate::exit::Failure;

/// Options about TLS.
#[derive(clap::Args)]
pub(super) struct TlsArgs {
    /// Address to listen on for TLS 1.3, beside --listen
    #[arg(long, value_name = "ADDR:PORT", requires = "tls_key")]
    tls_listen: Option<SocketAddr>,
    /// Let the hosts in this file in with TLS alone, whose keys it has: lines HOSTNQN KEY
    #[arg(long, value_name = "FILE", requires = "tls_listen")]
    tls_key: Option<PathBuf>,
}

/// A port that nobody answers yet.
pub(super) struct Bound {
    listener: TcpListener,
    keys: PathBuf,
    pub(super) address: SocketAddr,
}

impl TlsArgs {
    /// Binds the port, if there is to be one.
    ///
    /// # Errors
    /// It cannot be bound, or this program has no TLS.
    pub(super) fn bind(&self) -> Result<Option<Bound>, Failure> {
        let (Some(at), Some(keys)) = (self.tls_listen, &self.tls_key) else {
            return Ok(None);
        };
        if cfg!(not(feature = "tls")) {
            return Err(Failure::usage(
                "--tls-listen: this program was built without TLS; valid: one that was built with \
                 `cargo build --package zonelab-cli --features tls`"
                    .to_owned(),
            ));
        }
        let failed = |error| Failure::environment(anyhow::anyhow!("--tls-listen {at}: {error}"));
        let listener = TcpListener::bind(at).map_err(failed)?;
        let address = listener.local_addr().map_err(failed)?;
        let keys = keys.clone();
        Ok(Some(Bound {
            listener,
            keys,
            address,
        }))
    }
}

#[cfg(feature = "tls")]
mod with {
    use std::path::Path;
    use std::sync::Arc;

    use zonelab_nvme::identify::Nqn;
    use zonelab_target::server::Present;
    use zonelab_tls::{Admitted, Front, FrontLimits, HostPsk, Keys};

    use super::{Bound, Failure, LoopHandle, Served, Server, Watched};
    use crate::host_keys;
    use crate::serve::reload::Stamp;

    /// Keys of a file, and the names of their hosts.
    fn read(path: &Path, subnqn: &str) -> Result<(Keys, Vec<Nqn>), Failure> {
        let entries = host_keys::read_tls(path)?;
        let entries = entries
            .into_iter()
            .map(|(hostnqn, psk)| HostPsk { hostnqn, psk });
        let entries: Vec<HostPsk> = entries.collect();
        let names = entries
            .iter()
            .filter_map(|of| Nqn::new(&of.hostnqn))
            .collect();
        let keys = Keys::new(&entries, subnqn)
            .map_err(|error| Failure::input(anyhow::anyhow!("{}: {error}", path.display())))?;
        Ok((keys, names))
    }

    /// Answers the port, until what it returns is dropped.
    ///
    /// # Errors
    /// The file of keys is wrong, or the system has no thread left.
    pub(in crate::serve) fn answer(
        bound: Bound,
        subnqn: &str,
        server: &mut Server,
        handle: LoopHandle<Served>,
    ) -> Result<(Front, Watched), Failure> {
        let seen = Stamp::of(&bound.keys);
        let (keys, names) = read(&bound.keys, subnqn)?;
        server.require_known(names);
        let admit = move |admitted: Admitted| {
            let Some(host) = Nqn::new(&admitted.hostnqn) else {
                return false;
            };
            let (peer, identity) = (admitted.peer, admitted.identity);
            tracing::info!(%peer, identity, "TLS");
            let stream = admitted.stream;
            let adopt = move |present: Present<'_, Served>| {
                present.server.adopt(stream, (peer, host), present.now)
            };
            handle.call(adopt).unwrap_or(false)
        };
        let limits = FrontLimits::default();
        let front = Front::start(bound.listener, keys, limits, admit);
        let front = front.map_err(Failure::environment)?;
        let (shown, subnqn) = (Arc::new(front.keys()), subnqn.to_owned());
        let watched = Watched::since(seen, &bound.keys, move |path| {
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
    use super::{Bound, Failure, LoopHandle, Served, Server, Watched};

    /// Nothing: [`super::TlsArgs::bind`] has refused it.
    pub(in crate::serve) fn answer(
        bound: Bound,
        _subnqn: &str,
        _server: &mut Server,
        _handle: LoopHandle<Served>,
    ) -> Result<((), Watched), Failure> {
        drop(bound.listener);
        Ok(((), Watched::new(&bound.keys, |_| Ok(Box::new(|_| Ok(()))))))
    }
}

pub(super) use with::answer;
