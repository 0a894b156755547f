//! The keys of hosts.

use std::collections::BTreeMap;
use std::fmt;

use s2n_tls::enums::PskHmac;
use zonelab_auth::{IdentityVersion, NamesTooLong, TlsKey, TlsNames};
use zonelab_nvme::auth::{Hash, Psk};
use zonelab_nvme::fabrics::DISCOVERY_NQN;
use zonelab_nvme::identify::Nqn;

/// A host and its configured key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostPsk {
    /// Qualified name of the host.
    pub hostnqn: String,
    /// Its key.
    pub psk: Psk,
}

/// Why keys cannot be those of a server.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum KeysError {
    /// A name is none.
    #[error("host \"{0}\" is no NVMe qualified name: \"nqn.YYYY-MM.DOMAIN:...\"")]
    Nqn(String),
    /// Two keys for one host.
    #[error("host \"{0}\" is listed twice; valid: one key for each host")]
    HostTwice(String),
    /// The library refuses a key.
    #[error("the key of host \"{0}\" cannot be used: {1}")]
    Refused(String, s2n_tls::error::Error),
}

/// The keys that a server accepts, by the identities with which hosts offer them.
pub struct Keys {
    pub(crate) psks: Vec<s2n_tls::psk::Psk>,
    /// Names of hosts by identity.
    hosts: BTreeMap<String, String>,
    /// Configured keys by the name of their host.
    configured: BTreeMap<String, Psk>,
}

impl Keys {
    /// Derives the keys of hosts for the subsystem `subnqn`, and for discovery, with
    /// identities of both versions.
    ///
    /// # Errors
    /// [`KeysError`].
    pub fn new(entries: &[HostPsk], subnqn: &str) -> Result<Self, KeysError> {
        let mut keys = Self {
            psks: Vec::new(),
            hosts: BTreeMap::new(),
            configured: BTreeMap::new(),
        };
        for HostPsk { hostnqn, psk } in entries {
            if !Nqn::is_well_formed(hostnqn) {
                return Err(KeysError::Nqn(hostnqn.clone()));
            }
            if keys.knows(hostnqn) {
                return Err(KeysError::HostTwice(hostnqn.clone()));
            }
            keys.configured.insert(hostnqn.clone(), psk.clone());
            for subnqn in [subnqn, DISCOVERY_NQN] {
                let names = TlsNames { hostnqn, subnqn };
                let versions = [IdentityVersion::V1, IdentityVersion::V0];
                for key in versions.map(|version| TlsKey::derive(psk, names, version)) {
                    // Names that are too long for version 0 still have version 1.
                    let Ok(key) = key.map_err(|NamesTooLong { .. }| ()) else {
                        continue;
                    };
                    let refused = |error| KeysError::Refused(hostnqn.clone(), error);
                    keys.psks.push(of(&key).map_err(refused)?);
                    keys.hosts.insert(key.identity, hostnqn.clone());
                }
            }
        }
        Ok(keys)
    }

    /// The host that offers a key by this identity.
    #[must_use]
    pub fn host(&self, identity: &str) -> Option<&str> {
        self.hosts.get(identity).map(String::as_str)
    }

    /// Whether a host has a key.
    #[must_use]
    pub fn knows(&self, hostnqn: &str) -> bool {
        self.configured.contains_key(hostnqn)
    }

    /// Whether a host has a key here, and the same one there.
    pub(crate) fn has_same_key(&self, there: &Self, hostnqn: &str) -> bool {
        let key = self.configured.get(hostnqn);
        key.is_some() && key == there.configured.get(hostnqn)
    }

    /// Names of the hosts that have a key.
    pub fn hosts(&self) -> impl Iterator<Item = &str> {
        self.configured.keys().map(String::as_str)
    }
}

impl fmt::Debug for Keys {
    /// Whose, and not which.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Keys")
            .field("hosts", &self.hosts)
            .finish_non_exhaustive()
    }
}

fn of(key: &TlsKey) -> Result<s2n_tls::psk::Psk, s2n_tls::error::Error> {
    let mut builder = s2n_tls::psk::Psk::builder()?;
    builder.set_identity(key.identity.as_bytes())?;
    builder.set_secret(key.key())?;
    builder.set_hmac(match key.hash {
        Hash::SHA_384 => PskHmac::SHA384,
        _ => PskHmac::SHA256,
    })?;
    builder.build()
}
