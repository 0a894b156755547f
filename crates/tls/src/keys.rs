//! The keys of hosts.

use std::collections::BTreeMap;
use std::fmt;

use s2n_tls::enums::PskHmac;
use zonelab_auth::{Derivation, IdentityVersion, NamesTooLong, TlsKey, TlsNames};
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
    /// How the host derives what it offers. With [`Derivation::Libnvme`] it is accepted as the
    /// specification says too, where the identity tells one from the other: that of version 1
    /// of a key that is not retained already.
    pub derivation: Derivation,
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
    configured: BTreeMap<String, (Psk, Derivation)>,
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
        for entry in entries {
            let (hostnqn, psk) = (&entry.hostnqn, &entry.psk);
            if !Nqn::is_well_formed(hostnqn) {
                return Err(KeysError::Nqn(hostnqn.clone()));
            }
            if keys.knows(hostnqn) {
                return Err(KeysError::HostTwice(hostnqn.clone()));
            }
            let derivation = entry.derivation;
            keys.configured
                .insert(hostnqn.clone(), (psk.clone(), derivation));
            for subnqn in [subnqn, DISCOVERY_NQN] {
                let names = TlsNames { hostnqn, subnqn };
                let (v0, v1) = (IdentityVersion::V0, IdentityVersion::V1);
                // What an identity stands for is what comes first here.
                let ways = [
                    (v1, derivation),
                    (v0, derivation),
                    (v1, Derivation::Specified),
                ];
                for (version, derivation) in ways {
                    let key = TlsKey::derive_as(psk, names, version, derivation);
                    // Names that are too long for version 0 still have version 1.
                    let Ok(key) = key.map_err(|NamesTooLong { .. }| ()) else {
                        continue;
                    };
                    if keys.hosts.contains_key(&key.identity) {
                        continue;
                    }
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

#[cfg(test)]
mod tests {
    use super::*;

    const HOST: &str = "nqn.2026-01.a:host";
    const SUB: &str = "nqn.2026-01.a:sub";

    /// Identities that begin with `version`, of a key that is transformed or retained already.
    fn identities(transform: Option<Hash>, derivation: Derivation, version: &str) -> Vec<String> {
        let psk = Psk::new(transform, &[1; 32]).expect("a key");
        let hostnqn = HOST.to_owned();
        let entry = HostPsk {
            hostnqn,
            psk,
            derivation,
        };
        let keys = Keys::new(&[entry], SUB).expect("one host");
        assert_eq!(keys.psks.len(), keys.hosts.len());
        let own = format!("{version}01 {HOST} {SUB}");
        let identities = keys.hosts.into_keys();
        identities.filter(|one| one.starts_with(&own)).collect()
    }

    #[test]
    fn a_host_with_libnvme_is_accepted_as_specified_too_where_that_can_be_told() {
        let (specified, libnvme) = (Derivation::Specified, Derivation::Libnvme);
        let sha = Some(Hash::SHA_256);
        let own = |transform, derivation| identities(transform, derivation, "NVMe1R");
        assert_eq!(own(sha, specified).len(), 1);
        assert_eq!(own(sha, libnvme).len(), 2);
        assert!(own(sha, libnvme).contains(&own(sha, specified)[0]));
        // The digest of a retained key is the same, whatever is derived of it.
        assert_eq!(own(None, libnvme), own(None, specified));
        for (transform, derivation) in [(sha, specified), (sha, libnvme), (None, libnvme)] {
            assert_eq!(identities(transform, derivation, "NVMe0R").len(), 1);
        }
    }
}
