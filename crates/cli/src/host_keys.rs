//! Files of keys, by which hosts and controllers authenticate themselves.

use std::collections::HashSet;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

#[cfg(feature = "tls")]
use zonelab_auth::Derivation;
#[cfg(feature = "tls")]
use zonelab_nvme::auth::Psk;
use zonelab_nvme::auth::Secret;
use zonelab_nvme::identify::Nqn;
use zonelab_target::controller::HostSecret;
#[cfg(feature = "tls")]
use zonelab_tls::HostPsk;

use crate::exit::Failure;
use crate::files::{self, MOST_HOSTS};

/// What is right, for messages about what is not.
const FORM: &str = "a line is HOSTNQN KEY, or HOSTNQN KEY CONTROLLER-KEY; \
                    `zonelab nvme gen-dhchap-key` makes keys";

/// Reads the entries of a file, and warns if it is open to others.
///
/// # Errors
/// The file cannot be read or has a wrong line. No message has a part of a key.
pub(crate) fn read(path: &Path) -> Result<Vec<HostSecret>, Failure> {
    let entries = read_with(path, FORM, entry)?;
    Ok(entries.into_iter().map(|(_, entry)| entry).collect())
}

/// The same of keys of TLS.
///
/// # Errors
/// As [`read`].
#[cfg(feature = "tls")]
pub(crate) fn read_tls(path: &Path) -> Result<Vec<HostPsk>, Failure> {
    const FORM: &str = "a line is HOSTNQN KEY, or HOSTNQN KEY libnvme for a host whose libnvme \
                        derives keys in a way of its own; `nvme gen-tls-key` makes keys";
    let entry = |line: &str| {
        let Some((hostnqn, words)) = host(line)? else {
            return Ok(None);
        };
        let (key, derivation) = match words[..] {
            [key] => (key, Derivation::Specified),
            [key, "libnvme"] => (key, Derivation::Libnvme),
            // The words may be keys: they are not shown.
            [_, _] => return Err("what follows the key is not libnvme".to_owned()),
            _ => return Err("it has not one key".to_owned()),
        };
        let psk = Psk::parse(key).map_err(|problem| format!("the key is none: {problem}"))?;
        let entry = HostPsk {
            hostnqn: hostnqn.clone(),
            psk,
            derivation,
        };
        Ok(Some((hostnqn, entry)))
    };
    let entries = read_with(path, FORM, entry)?;
    Ok(entries.into_iter().map(|(_, entry)| entry).collect())
}

fn read_with<T>(
    path: &Path,
    form: &str,
    entry: impl Fn(&str) -> Result<Option<(String, T)>, String>,
) -> Result<Vec<(String, T)>, Failure> {
    let name = path.display();
    let failed = |error| Failure::input(anyhow::anyhow!("{name}: {error}"));
    let text = files::read_of_hosts(path).map_err(failed)?;
    let metadata = std::fs::metadata(path).map_err(failed)?;
    if metadata.is_file() && metadata.mode() & 0o077 != 0 {
        tell!(
            "zonelab: {name} has keys and is open to others than its owner (mode {:03o}): \
             chmod 600 {name}",
            metadata.mode() & 0o777
        );
    }
    let entries = parse(&text, entry).map_err(|(line, problem)| {
        Failure::input(anyhow::anyhow!("{name}:{line}: {problem}; {form}"))
    })?;
    if entries.is_empty() {
        return Err(Failure::input(anyhow::anyhow!("{name}: no host; {form}")));
    }
    Ok(entries)
}

/// The entries of a text, or the number of the first line that is wrong, and why.
fn parse<T>(
    text: &str,
    entry: impl Fn(&str) -> Result<Option<(String, T)>, String>,
) -> Result<Vec<(String, T)>, (usize, String)> {
    let mut entries: Vec<(String, T)> = Vec::new();
    let mut names = HashSet::new();
    for (number, line) in (1..).zip(text.lines()) {
        let entry = entry(line).map_err(|problem| (number, problem))?;
        let Some(entry) = entry else { continue };
        let nqn = &entry.0;
        if !names.insert(nqn.clone()) {
            return Err((number, format!("host {nqn} has an entry already")));
        }
        if names.len() > MOST_HOSTS {
            return Err((number, format!("more than {MOST_HOSTS} hosts")));
        }
        entries.push(entry);
    }
    Ok(entries)
}

/// The host of a line and its other words; `None` if it is empty or a comment.
fn host(line: &str) -> Result<Option<(String, Vec<&str>)>, String> {
    let mut words = line.split_whitespace();
    let Some(hostnqn) = words.next().filter(|word| !word.starts_with('#')) else {
        return Ok(None);
    };
    // The word may be a key that somebody put first: it is not shown.
    if !Nqn::is_well_formed(hostnqn) {
        let problem = "it does not start with the name of a host, \"nqn.YYYY-MM.DOMAIN:...\" or \
                       \"nqn.2014-08.org.nvmexpress:uuid:\" and a UUID";
        return Err(problem.to_owned());
    }
    Ok(Some((hostnqn.to_owned(), words.collect())))
}

/// The entry of a line about DH-HMAC-CHAP.
fn entry(line: &str) -> Result<Option<(String, HostSecret)>, String> {
    let Some((hostnqn, words)) = host(line)? else {
        return Ok(None);
    };
    let mut words = words.into_iter();
    let key = |what: &str, word: &str| {
        Secret::parse(word).map_err(|problem| format!("the {what} is none: {problem}"))
    };
    let host = words.next().ok_or("it has no key")?;
    let host = key("key", host)?;
    let controller = words.next().map(|word| key("controller key", word));
    let controller = controller.transpose()?;
    if words.next().is_some() {
        return Err("it has more than two keys".to_owned());
    }
    let secret = HostSecret {
        hostnqn: hostnqn.clone(),
        host,
        controller,
    };
    Ok(Some((hostnqn, secret)))
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: &str = "DHHC-1:00:AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh+KfiaR:";

    #[test]
    fn hosts_have_one_key_or_two() {
        let text = format!(
            "# hosts\n\nnqn.2026-01.a {KEY}\n  nqn.2026-01.b\t{KEY} {KEY}  \n#nqn.2026-01.c {KEY}\n"
        );
        let entries = parse(&text, entry).unwrap();
        let shape: Vec<_> = entries
            .iter()
            .map(|(name, entry)| (name.as_str(), entry.controller.is_some()))
            .collect();
        assert_eq!(shape, [("nqn.2026-01.a", false), ("nqn.2026-01.b", true)]);
    }

    #[test]
    fn many_hosts_are_read_in_no_time_and_too_many_refused() {
        let lines = |count: usize| {
            let line = |number| format!("nqn.2026-01.a:{number} {KEY}\n");
            (0..count).map(line).collect::<String>()
        };
        let entries = parse(&lines(MOST_HOSTS), entry).unwrap();
        assert_eq!(entries.len(), MOST_HOSTS);
        let (line, problem) = parse(&lines(100_000), entry).map(drop).unwrap_err();
        assert_eq!((line, &problem[..]), (10_001, "more than 10000 hosts"));
    }

    #[test]
    fn what_is_wrong_is_said_without_a_key() {
        let broken = KEY.replace("AAEC", "AAED");
        for (line, problem) in [
            (KEY.to_owned(), "does not start with the name of a host"),
            (format!("host {KEY}"), "does not start with the name"),
            ("nqn.2026-01.a".to_owned(), "it has no key"),
            (
                format!("nqn.2026-01.a {broken}"),
                "the key is none: the check sum",
            ),
            (
                format!("nqn.2026-01.a {KEY} {broken}"),
                "the controller key is",
            ),
            (
                format!("nqn.2026-01.a {KEY} {KEY} {KEY}"),
                "more than two keys",
            ),
            (
                format!("nqn.2026-01.a {KEY}\nnqn.2026-01.a {KEY}"),
                "nqn.2026-01.a has an entry",
            ),
        ] {
            let text = format!("# comment\n{line}\n");
            let (at, message) = parse(&text, entry).unwrap_err();
            assert_eq!(at, 1 + line.lines().count());
            assert!(message.contains(problem), "{message}");
            assert!(!message.contains("AAE"), "{message}");
        }
    }
}
