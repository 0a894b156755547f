//! `zonelab nvme gen-dhchap-key`.

use serde_json::json;
use zeroize::Zeroizing;
use zonelab_nvme::auth::{Hash, Secret};

use super::fields::pretty;
use crate::exit::Failure;

/// Options of `gen-dhchap-key`, those of nvme-cli.
#[derive(clap::Args)]
pub(super) struct Args {
    /// Hash function by which hosts and controllers transform the key before
    /// use: 0 none, 1 SHA-256, 2 SHA-384, 3 SHA-512
    #[arg(long, short = 'm', default_value_t = 0, value_parser = clap::value_parser!(u8).range(0..=3))]
    hmac: u8,
    /// Bytes of the key: 32, 48 or 64 [default: as many as the hash function
    /// has, 32 without one]
    #[arg(long, short = 'l')]
    key_length: Option<usize>,
    /// Make the key of this secret (hexadecimal) instead of random bytes
    #[arg(long, short = 's', value_name = "HEX")]
    secret: Option<String>,
    /// Name of the host that is to have the key: with --secret and --hmac
    #[arg(long, value_name = "NQN")]
    nqn: Option<String>,
}

/// A new key.
///
/// # Errors
/// [`Failure`]: the options do not go together, or there are no random bytes.
pub(super) fn generate(args: &Args, is_json: bool) -> Result<String, Failure> {
    let hash = Some(Hash(args.hmac)).filter(|hash| hash.0 != 0);
    let of_hash = hash.and_then(Hash::bytes).map(usize::from);
    let length = match (args.key_length, of_hash) {
        (Some(length), Some(of_hash)) if length != of_hash => {
            return Err(Failure::usage(format!(
                "--key-length {length}: a key for --hmac {} has {of_hash} bytes",
                args.hmac
            )));
        }
        (length, of_hash) => length.or(of_hash).unwrap_or(32),
    };
    let key = match &args.secret {
        Some(secret) => of_secret(args, hash, secret, length)?,
        None => {
            let mut key = Zeroizing::new(vec![0; length]);
            getrandom::fill(&mut key).map_err(Failure::environment)?;
            key
        }
    };
    let secret = secret(hash, &key)?;
    let mut text = String::new();
    secret
        .write_text(&mut text)
        .map_err(|error| Failure::environment(anyhow::anyhow!(error)))?;
    if is_json {
        return Ok(pretty(&json!({ "key": text })));
    }
    text.push('\n');
    Ok(text)
}

/// The key that nvme-cli makes of the same secret.
fn of_secret(
    args: &Args,
    hash: Option<Hash>,
    text: &str,
    length: usize,
) -> Result<Zeroizing<Vec<u8>>, Failure> {
    let bytes = bytes(text).filter(|bytes| bytes.len() == length);
    let bytes = bytes.ok_or_else(|| {
        Failure::usage(format!(
            "--secret: {length} bytes are valid, {} hexadecimal digits",
            2 * length
        ))
    })?;
    if hash.is_none() {
        return Ok(bytes);
    }
    let nqn = args.nqn.as_deref();
    let nqn = nqn.ok_or_else(|| {
        Failure::usage("--secret with --hmac needs --nqn: the key is that of a host".to_owned())
    })?;
    Ok(zonelab_auth::transformed(&secret(hash, &bytes)?, nqn))
}

fn secret(hash: Option<Hash>, key: &[u8]) -> Result<Secret, Failure> {
    Secret::new(hash, key).map_err(|error| Failure::usage(format!("--key-length: {error}")))
}

/// The bytes of pairs of hexadecimal digits.
fn bytes(text: &str) -> Option<Zeroizing<Vec<u8>>> {
    let digits: Option<Vec<u8>> = text
        .chars()
        .map(|digit| digit.to_digit(16).map(|value| value as u8))
        .collect();
    let digits = Zeroizing::new(digits?);
    let (pairs, rest) = digits.as_chunks::<2>();
    let bytes = pairs.iter().map(|[high, low]| high << 4 | low);
    rest.is_empty().then(|| Zeroizing::new(bytes.collect()))
}
