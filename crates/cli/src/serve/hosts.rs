//! `serve --hosts FILE`: what each host may do, and how much of it.

use core::num::NonZeroU64;
use std::path::Path;

use zonelab_config::{Document, Errors, Reported, Table};
use zonelab_target::controller::{HostRules, NamespaceAccess, Permissions, Quality};

use crate::exit::Failure;
use crate::files::{self, MOST_HOSTS};

/// What hosts may be permitted, by its names in files.
const PERMISSIONS: [(&str, Permission); 3] = [
    ("format", Permission::Format),
    ("all-zones", Permission::AllZones),
    ("offline-zone", Permission::OfflineZone),
];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Permission {
    Format,
    AllZones,
    OfflineZone,
}

/// Reads the file.
///
/// # Errors
/// The file cannot be read, or is wrong.
pub(super) fn read(path: &Path) -> Result<Vec<HostRules>, Failure> {
    let name = path.display().to_string();
    let text = files::read_of_hosts(path);
    let text = text.map_err(|error| Failure::input(anyhow::anyhow!("{name}: {error}")))?;
    parse(&name, &text).map_err(Failure::input)
}

/// Rules of a text. `file` is the name that messages give.
fn parse(file: &str, text: &str) -> Result<Vec<HostRules>, Errors> {
    let document = Document::parse(file, text, &[])?;
    let rules = rules(&document);
    document.finish(rules)
}

fn rules(document: &Document) -> Result<Vec<HostRules>, Reported> {
    let tables = document.root().tables("host")?;
    if tables.is_empty() {
        // Nobody at all could connect: a file that is being written, or the wrong one.
        return Err(document.report("host", "no [[host]]", "valid: at least one"));
    }
    if tables.len() > MOST_HOSTS {
        let valid = format!("valid: at most {MOST_HOSTS}");
        return Err(document.report("host", "too many hosts", &valid));
    }
    // All of them before giving up, so that every problem is reported.
    let rules: Vec<Result<HostRules, Reported>> = tables.iter().map(rule).collect();
    rules.into_iter().collect()
}

fn rule(table: &Table<'_>) -> Result<HostRules, Reported> {
    let nqn = table
        .string("nqn")
        .required_or("which host: nqn = \"nqn....\"");
    let written = table.list("namespaces", |item| item.u32()).or(Vec::new());
    let read = table.list("read_only", |item| item.u32()).or(Vec::new());
    let may = table.list("may", |item| item.choice(&PERMISSIONS));
    let may = may.or(Vec::new());
    let operations = table.u64("operations_per_s").within(1..=u64::MAX);
    let operations = operations.optional();
    let bytes = table.rate_bytes_per_s("rate").within(1..=u64::MAX);
    let bytes = bytes.optional();
    let with = |access| move |nsid| (nsid, access);
    let written = written?.into_iter().map(with(NamespaceAccess::ReadWrite));
    let read = read?.into_iter().map(with(NamespaceAccess::ReadOnly));
    let may = may?;
    Ok(HostRules {
        hostnqn: nqn?,
        namespaces: written.chain(read).collect(),
        permissions: Permissions {
            format: may.contains(&Permission::Format),
            all_zones: may.contains(&Permission::AllZones),
            offline: may.contains(&Permission::OfflineZone),
        },
        quality: Quality {
            operations_per_s: operations?.and_then(NonZeroU64::new),
            bytes_per_s: bytes?.and_then(NonZeroU64::new),
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_of_hosts_says_what_each_may_do() {
        let text = "[[host]]\nnqn = \"nqn.2026-01.a\"\nnamespaces = [1]\nread_only = [3]\n\
                    may = [\"all-zones\"]\nrate = \"100MiB/s\"\noperations_per_s = 20000\n\
                    [[host]]\nnqn = \"nqn.2026-01.b\"\nnamespaces = [2]\n";
        let rules = parse("hosts.toml", text).unwrap();
        assert_eq!(
            rules[0],
            HostRules {
                hostnqn: "nqn.2026-01.a".to_owned(),
                namespaces: vec![
                    (1, NamespaceAccess::ReadWrite),
                    (3, NamespaceAccess::ReadOnly)
                ],
                permissions: Permissions {
                    all_zones: true,
                    ..Permissions::default()
                },
                quality: Quality {
                    operations_per_s: NonZeroU64::new(20_000),
                    bytes_per_s: NonZeroU64::new(100 << 20),
                },
            }
        );
        assert_eq!(rules[1].quality, Quality::default());
        assert_eq!(rules[1].permissions, Permissions::default());
    }

    #[test]
    fn a_file_of_hosts_without_a_host_is_refused() {
        for text in ["", "# all of them left\n", "host = []\n"] {
            let errors = parse("hosts.toml", text).unwrap_err().to_string();
            assert!(
                errors.contains("no [[host]]; valid: at least one"),
                "{errors}"
            );
        }
    }

    #[test]
    fn a_file_of_too_many_hosts_is_refused() {
        let table = |number| format!("[[host]]\nnqn = \"nqn.2026-01.a:{number}\"\n");
        let text: String = (0..=MOST_HOSTS).map(table).collect();
        let errors = parse("hosts.toml", &text).unwrap_err().to_string();
        assert!(
            errors.contains("too many hosts; valid: at most 10000"),
            "{errors}"
        );
    }

    #[test]
    fn what_is_wrong_in_a_file_of_hosts_is_said_by_its_line() {
        let text = "[[host]]\nnamespaces = [1]\nmay = [\"formt\"]\nrate = \"100\"\n\
                    operations_per_s = 0\nread_onyl = [2]\n";
        let errors = parse("hosts.toml", text).unwrap_err().to_string();
        for says in [
            "hosts.toml:1: host.0.nqn: missing",
            "hosts.toml:3: host.0.may.0",
            "format",
            "hosts.toml:4: host.0.rate",
            "hosts.toml:5: host.0.operations_per_s",
            "hosts.toml:6: host.0.read_onyl: unknown key",
        ] {
            assert!(errors.contains(says), "{says} in {errors}");
        }
    }
}
