//! Which hosts `serve` lets in, and how they show who they are.

use std::path::{Path, PathBuf};

use zonelab_auth::NoRandom;
use zonelab_live::layer::Served;
use zonelab_nvme::auth::{DhGroup, Hash};
use zonelab_target::controller::Authentication;

use super::reload::Watched;
use crate::exit::Failure;
use crate::host_keys;

/// Options about authentication.
#[derive(clap::Args)]
pub(super) struct AuthenticationArgs {
    /// Let in only the hosts in this file, once they have authenticated
    /// themselves (DH-HMAC-CHAP): lines HOSTNQN KEY [CONTROLLER-KEY]
    #[arg(long, value_name = "FILE")]
    host_key: Option<PathBuf>,
    /// The only hash function of challenges [default: any]
    #[arg(long, value_name = "HASH", requires = "host_key", value_parser = hash)]
    dhchap_hash: Option<Hash>,
    /// The only Diffie-Hellman group [default: any, small ones first]
    #[arg(long, value_name = "GROUP", requires = "host_key", value_parser = group)]
    dhchap_dhgroup: Option<DhGroup>,
}

impl AuthenticationArgs {
    /// Whether hosts have to authenticate themselves.
    pub(super) fn is_required(&self) -> bool {
        self.host_key.is_some()
    }

    /// The file of keys, if there is one.
    pub(super) fn file(&self) -> Option<&Path> {
        self.host_key.as_deref()
    }

    /// The file of keys, to be read again when it changes.
    pub(super) fn watched(&self) -> Option<Watched> {
        let path = self.host_key.as_deref()?;
        Some(Watched::new(path, |path| {
            let hosts = host_keys::read(path)?;
            Ok(Box::new(|present| {
                let set = present.backend.set_secrets(present.now, hosts);
                set.map_err(|error| error.to_string())
            }))
        }))
    }

    /// Reads the file of keys, if there is one.
    ///
    /// # Errors
    /// [`Failure`] if it cannot be used.
    pub(super) fn read(&self) -> Result<Option<Authentication>, Failure> {
        let Some(path) = &self.host_key else {
            return Ok(None);
        };
        let random = |bytes: &mut [u8]| getrandom::fill(bytes).map_err(|_| NoRandom);
        let mut by = Authentication::new(host_keys::read(path)?, Box::new(random));
        if let Some(hash) = self.dhchap_hash {
            by.hashes = vec![hash];
        }
        if let Some(group) = self.dhchap_dhgroup {
            by.groups = vec![group];
        }
        Ok(Some(by))
    }
}

/// Has the subsystem authenticate its hosts.
///
/// # Errors
/// [`Failure`] if a host cannot be one.
pub(super) fn require(subsystem: &mut Served, by: Option<Authentication>) -> Result<(), Failure> {
    match by {
        None => Ok(()),
        Some(by) => subsystem
            .require_authentication(by)
            .map_err(|error| Failure::usage(error.to_string())),
    }
}

/// The names that Linux has for them.
fn hash(text: &str) -> Result<Hash, String> {
    Ok(match text {
        "sha256" => Hash::SHA_256,
        "sha384" => Hash::SHA_384,
        "sha512" => Hash::SHA_512,
        _ => return Err("valid: sha256, sha384, sha512".to_owned()),
    })
}

/// The names that Linux has for them.
fn group(text: &str) -> Result<DhGroup, String> {
    Ok(match text {
        "null" => DhGroup::NULL,
        "ffdhe2048" => DhGroup::FFDHE2048,
        "ffdhe3072" => DhGroup::FFDHE3072,
        "ffdhe4096" => DhGroup::FFDHE4096,
        "ffdhe6144" => DhGroup::FFDHE6144,
        "ffdhe8192" => DhGroup::FFDHE8192,
        _ => {
            return Err(
                "valid: null, ffdhe2048, ffdhe3072, ffdhe4096, ffdhe6144, ffdhe8192".to_owned(),
            );
        }
    })
}
