//! Keys for authentication: made, read from files, and used at both ends.

use std::io::{BufRead, BufReader};
use std::os::unix::fs::PermissionsExt;
use std::process::{Child, Stdio};

use super::scratch::{Scratch, stderr};

const HOST: &str = "nqn.2014-08.org.nvmexpress:uuid:00112233-4455-6677-8899-aabbccddeeff";
const KEY: &str = "DHHC-1:00:AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh+KfiaR:";
const OTHER: &str = "DHHC-1:02:gIGCg4SFhoeIiYqLjI2Oj5CRkpOUlZaXmJmam5ydnp9vmVbU:";

/// A file that only its owner can read.
fn private(scratch: &Scratch, name: &str, text: &str) -> String {
    let path = scratch.write(name, text);
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).unwrap();
    path
}

fn generate(scratch: &Scratch, args: &[&str]) -> String {
    let output = scratch.zonelab(&[&["nvme", "gen-dhchap-key"], args].concat());
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    String::from_utf8(output.stdout).unwrap()
}

/// Calculated by another implementation of HMAC, CRC-32 and Base64; nvme-cli
/// itself is asked in the tests of the guest.
#[test]
fn a_key_of_a_secret_is_that_of_nvme_cli() {
    let scratch = Scratch::new("keys");
    for (hmac, bytes, key) in [
        ("0", 32_u8, KEY),
        (
            "1",
            32,
            "DHHC-1:01:KNFPU24JZOISJCWaOhLvQjURtJOUTGJi+JPAg8X3usoaWesB:",
        ),
        (
            "2",
            48,
            "DHHC-1:02:PyXb9oo+OVOoQoGKwDUr8IG3crvNlwr3oUvcimmJjT5xPxVHs+heFy4LCnurXUAt5Zyevg==:",
        ),
        (
            "3",
            64,
            "DHHC-1:03:YrjiOXCnfQ8drPZ6IKWVTrawuufFb6+pX6VhgOzbhw3cRwX5/M3BzDrBTuLTJvLlQNcDSUPpyoXMY22g9F4+cRNhJeA=:",
        ),
    ] {
        let secret: String = (0..bytes).map(|byte| format!("{byte:02x}")).collect();
        let text = generate(
            &scratch,
            &["--hmac", hmac, "--secret", &secret, "--nqn", HOST],
        );
        assert_eq!(text, format!("{key}\n"));
    }
    let (one, two) = (generate(&scratch, &[]), generate(&scratch, &[]));
    assert_ne!(one, two);
    assert!(
        one.starts_with("DHHC-1:00:") && one.ends_with(":\n"),
        "{one}"
    );
    for wrong in [
        &["--key-length", "33"][..],
        &["--hmac", "1", "--key-length", "64"],
        &["--hmac", "4"],
        &["--secret", "00"],
    ] {
        let output = scratch.zonelab(&[&["nvme", "gen-dhchap-key"], wrong].concat());
        assert_eq!(output.status.code(), Some(2), "{wrong:?}");
    }
}

#[test]
fn a_file_of_keys_is_refused_by_line_and_without_its_keys() {
    let scratch = Scratch::new("keys");
    let broken = KEY.replace("AAECAw", "AAECAx");
    for (text, problem) in [
        (format!("# a\n{HOST} {broken}\n"), "keys:2: the key is none"),
        (format!("{KEY}\n"), "keys:1: it does not start with"),
        ("# nobody\n".to_owned(), "keys: no host"),
    ] {
        let path = private(&scratch, "keys", &text);
        let output = scratch.zonelab(&["serve", "zn540", "--host-key", &path]);
        assert_eq!(output.status.code(), Some(3));
        let message = stderr(&output);
        assert!(message.contains(problem), "{message}");
        assert!(!message.contains("AAEC"), "{message}");
    }
    let path = private(&scratch, "keys", &format!("nqn.2026-01.another {KEY}\n"));
    let device = format!("tcp://127.0.0.1/nqn.a?hostnqn={HOST}");
    let output = scratch.zonelab(&["nvme", "list", "--device", &device, "--host-key", &path]);
    assert_eq!(output.status.code(), Some(3));
    assert!(stderr(&output).contains(&format!("no key of this host, {HOST}")));
}

/// A program without TLS says so before anything is made.
#[cfg(not(feature = "tls"))]
#[test]
fn tls_is_refused_by_a_program_that_has_none() {
    let scratch = Scratch::new("no-tls");
    let path = private(&scratch, "keys", "");
    let args = ["--tls-listen", "127.0.0.1:0", "--tls-key", &path];
    let serve = ["serve", "small-zones", "--listen", "127.0.0.1:0"];
    let output = scratch.zonelab(&[&serve[..], &args, &["--store", "drive.zonelab"]].concat());
    assert_eq!(output.status.code(), Some(2));
    let message = stderr(&output);
    assert!(message.contains("was built without TLS"), "{message}");
    assert!(message.contains("--features tls"), "{message}");
    assert!(!scratch.0.join("drive.zonelab").exists());
}

/// A drive that is served until the end of this value.
struct Served(Child, u64);

impl Served {
    fn start(scratch: &Scratch, args: &[&str]) -> Self {
        let listen = ["serve", "confznspp", "--listen", "127.0.0.1:0", "--json"];
        let mut command = scratch.command(&[&listen, args].concat());
        let mut child = command
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut line = String::new();
        let output = child.stdout.take().unwrap();
        BufReader::new(output).read_line(&mut line).unwrap();
        let listening: serde_json::Value = serde_json::from_str(&line).unwrap();
        assert_eq!(listening["authentication"], !args.is_empty());
        Self(child, listening["port"].as_u64().unwrap())
    }

    fn url(&self) -> String {
        let nqn = "nqn.2024-01.io.github.zonelab:confznspp";
        format!("tcp://127.0.0.1:{}/{nqn}?hostnqn={HOST}", self.1)
    }

    /// Asks the drive for its namespaces: exit code and messages.
    fn list(&self, scratch: &Scratch, keys: Option<&str>) -> (Option<i32>, String) {
        let url = self.url();
        let mut args = vec!["nvme", "list", "--device", &url];
        if let Some(keys) = keys {
            args.extend(["--host-key", keys]);
        }
        let output = scratch.zonelab(&args);
        (output.status.code(), stderr(&output))
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn who_has_the_key_is_let_in_and_nobody_else() {
    let scratch = Scratch::new("keys");
    let keys = private(&scratch, "keys", &format!("{HOST} {KEY} {OTHER}\n"));
    let served = Served::start(&scratch, &["--host-key", &keys]);
    assert_eq!(served.list(&scratch, Some(&keys)), (Some(0), String::new()));
    let (code, message) = served.list(&scratch, None);
    assert_eq!(code, Some(5));
    assert!(message.contains("no key was given"), "{message}");
    let wrong = private(&scratch, "wrong", &format!("{HOST} {OTHER}\n"));
    let (code, message) = served.list(&scratch, Some(&wrong));
    assert_eq!(code, Some(5));
    assert!(message.contains("authentication failed"), "{message}");
    // Programs have keys too, or are not let in.
    let (url, job) = (served.url(), "[a]\nrw=write\nbs=64k\nsize=1z\nio_size=1m\n");
    let job = private(&scratch, "a.fio", job);
    let kv = "kv fillrandom --operations 100 --records 100 --overwrite --quiet";
    let kv: Vec<&str> = kv.split(' ').collect();
    for program in [&["fio", &job][..], &kv] {
        let program = [program, &["--device", &url]].concat();
        let output = scratch.zonelab(&program);
        let message = stderr(&output);
        assert_eq!(output.status.code(), Some(5), "{program:?}: {message}");
        assert!(message.contains("no key was given"), "{message}");
        let output = scratch.zonelab(&[&program[..], &["--host-key", &keys]].concat());
        assert_eq!(
            output.status.code(),
            Some(0),
            "{program:?}: {}",
            stderr(&output)
        );
    }
    // Without keys at the other end, a controller key cannot be checked.
    let open = Served::start(&scratch, &[]);
    let (code, message) = open.list(&scratch, Some(&keys));
    assert_eq!(code, Some(5));
    assert!(message.contains("does not ask"), "{message}");
    assert_eq!(open.list(&scratch, None).0, Some(0));
}

#[test]
fn a_file_of_keys_that_others_can_read_is_a_warning() {
    let scratch = Scratch::new("keys");
    let keys = private(&scratch, "keys", &format!("{HOST} {KEY}\n"));
    let served = Served::start(&scratch, &["--host-key", &keys]);
    let open = std::fs::Permissions::from_mode(0o644);
    std::fs::set_permissions(&keys, open).unwrap();
    let (code, message) = served.list(&scratch, Some(&keys));
    assert_eq!(code, Some(0));
    assert!(message.contains("(mode 644): chmod 600"), "{message}");
}
