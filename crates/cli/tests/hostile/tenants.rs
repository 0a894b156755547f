//! Two hosts with namespaces of their own at one server, one of which is hostile.

use std::io::Write;
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::server::{Server, Victim, until};
use super::wire::{self, HOST, Host, INVALID_NAMESPACE, OPERATION_DENIED};

/// The other host.
const HOSTILE: &str = "nqn.2014-08.org.nvmexpress:uuid:66666666-6666-6666-6666-666666666666";
const DIVIDED: [&str; 2] = ["--set", "namespaces=[{zones=512}, {zones=512}]"];

/// A file of hosts, which goes with the test.
struct HostsFile(PathBuf);

impl HostsFile {
    fn new(text: &str) -> Self {
        static COUNT: AtomicUsize = AtomicUsize::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = format!("zonelab-tenants-{}-{count}.toml", std::process::id());
        let file = Self(std::env::temp_dir().join(name));
        file.write(text);
        file
    }

    /// Replaces it, as tools for configuration do.
    fn write(&self, text: &str) {
        let new = self.0.with_extension("new");
        let mut file = std::fs::File::create(&new).unwrap();
        file.write_all(text.as_bytes()).unwrap();
        std::fs::rename(&new, &self.0).unwrap();
    }

    fn server(&self, more: &[&str]) -> Server {
        let path = self.0.to_str().unwrap();
        let args = [&["--hosts", path], &DIVIDED[..], more].concat();
        Server::start(false, &args)
    }
}

impl Drop for HostsFile {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

fn of(hostnqn: &str, more: &str) -> String {
    format!("[[host]]\nnqn = \"{hostnqn}\"\n{more}\n")
}

fn apart() -> String {
    of(HOST, "namespaces = [1]") + &of(HOSTILE, "namespaces = [2]")
}

/// What the hostile host tries does nothing to the other's namespace, and tells it nothing.
#[test]
fn a_host_cannot_use_or_find_the_namespace_of_another() {
    let file = HostsFile::new(&apart());
    let server = file.server(&[]);
    let mut victim = server.host();
    assert_eq!(victim.write(1, 0, &[0x5a; 4096]), 0);
    let mut hostile = server.host_called(HOSTILE);
    assert_eq!(hostile.read_of(1), (INVALID_NAMESPACE, Vec::new()));
    assert_eq!(hostile.write(1, 1, &[0; 4096]), INVALID_NAMESPACE);
    for (action, all) in [(0x4, false), (0x4, true), (0x2, true), (0x5, false)] {
        assert_eq!(hostile.zone_send(1, action, all), INVALID_NAMESPACE);
    }
    // Its own: what destroys more than a zone needs a permission.
    assert_eq!(hostile.zone_send(2, 0x4, false), 0);
    assert_eq!(hostile.zone_send(2, 0x4, true), OPERATION_DENIED);
    // Format NVM would empty both.
    let format = wire::entry(0x80, hostile.admin.next_cid(), 2, 0);
    let (response, _) = hostile.admin.call(&wire::capsule(format, &[])).unwrap();
    assert_eq!(response.status, 0x001, "Invalid Command Opcode");
    let (_, list) = hostile.admin.identify(0x02, 0).unwrap();
    assert_eq!(&list[..8], [2, 0, 0, 0, 0, 0, 0, 0]);
    let mut about_1 = wire::entry(0x06, hostile.admin.next_cid(), 1, 4096);
    about_1[40] = 0x03;
    let (response, _) = hostile.admin.call(&wire::capsule(about_1, &[])).unwrap();
    assert_eq!(response.status, INVALID_NAMESPACE);
    assert_eq!(victim.read_of(1), (0, vec![0x5a; 4096]));
}

/// A host that floods the drive gets its rate, and the other everything else.
#[test]
fn a_host_that_floods_gets_its_rate() {
    let bounded = of(HOST, "namespaces = [1]")
        + &of(
            HOSTILE,
            "namespaces = [2]\noperations_per_s = 50\nrate = \"1MiB/s\"",
        );
    let file = HostsFile::new(&bounded);
    let server = file.server(&[]);
    let victim = Victim::start(&server);
    until("a read", || victim.reads() > 0);
    let mut hostile = server.host_called(HOSTILE);
    let before = victim.reads();
    // As many as the queue holds: two seconds at its rate.
    let flood = 100;
    for _ in 0..flood {
        hostile.send_read(2);
    }
    for _ in 0..flood {
        assert_eq!(hostile.io.response().unwrap().0.status, 0);
    }
    let beside = victim.reads() - before;
    victim.end();
    assert!(
        beside > flood,
        "{beside} reads of the one, {flood} of the other"
    );
}

/// Rules that are replaced take effect; wrong ones change nothing.
#[test]
fn rules_are_read_again_when_their_file_changes() {
    let file = HostsFile::new(&apart());
    let mut server = file.server(&[]);
    let mut victim = server.host();
    let mut hostile = server.host_called(HOSTILE);
    file.write("[[host]]\nnqn = \"nqn.2026-01.a\"\nnamespaces = [7]\n");
    until("a refusal", || server.logs().contains("not taken over"));
    assert!(
        server
            .logs()
            .contains("namespaces: 7: the namespaces of this drive are 1 to 2")
    );
    victim.read().unwrap();
    assert_eq!(hostile.read_of(2).0, 0);
    // The hostile host is let in no more; the other gets both.
    file.write(&of(HOST, "namespaces = [1]\nread_only = [2]"));
    until("new rules", || server.logs().contains("read again"));
    assert!(hostile.io.is_closed());
    assert!(server.try_host(HOSTILE).is_err());
    assert_eq!(victim.read_of(2).0, 0);
    assert_eq!(
        victim.write(2, 0, &[0; 4096]),
        0x020,
        "Namespace is Write Protected"
    );
    assert!(server.is_alive());
}

/// One host takes all connections that it can get, from several addresses.
#[test]
fn one_host_leaves_places_for_others() {
    let server = Server::start(false, &["--max-connections", "32"]);
    let connect = |name: &str, source: [u8; 2]| {
        Host::connect_as(name, source, server.address, &server.nqn, 16)
    };
    let greedy: Vec<Host> = (0..40)
        .filter_map(|n| connect(HOSTILE, [6, n % 5]).ok())
        .collect();
    assert_eq!(greedy.len(), 8, "half of 32 places, two for each");
    // Hosts of one association each: all but the last eighth is for anybody.
    let others: Vec<Host> = (0..8)
        .map(|n| {
            let name =
                format!("nqn.2014-08.org.nvmexpress:uuid:77777777-7777-7777-7777-77777777777{n}");
            connect(&name, [7, n]).unwrap_or_else(|error| panic!("host {n}: {error}"))
        })
        .collect();
    drop(greedy);
    drop(others);
}
