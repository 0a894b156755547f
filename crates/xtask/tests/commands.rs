//! What `cargo xtask` says to whoever types something.

use std::process::{Command, Output};

fn xtask(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_xtask"))
        .args(args)
        .output()
        .expect("it starts")
}

#[test]
fn help_names_every_chore() {
    let output = xtask(&["help"]);
    assert!(output.status.success());
    let text = String::from_utf8_lossy(&output.stdout);
    for chore in [
        "cargo xtask test",
        "cargo xtask fuzz",
        "--keep-going",
        "--minimise",
    ] {
        assert!(text.contains(chore), "{chore}: {text}");
    }
}

#[test]
fn what_does_not_exist_is_refused_with_what_does() {
    for (args, names) in [
        (&[][..], "cargo xtask test"),
        (&["tset"], "cargo xtask test"),
        (&["test", "fats"], "fast"),
        (&["test", "fats"], "web"),
        (&["test", "fats"], "guest"),
        (&["test", "fast", "--fast"], "fast"),
    ] {
        let output = xtask(args);
        assert_eq!(output.status.code(), Some(2), "{args:?}");
        let text = String::from_utf8_lossy(&output.stderr);
        assert!(text.contains(names), "{args:?}: {text}");
        assert!(output.stdout.is_empty(), "{args:?}");
    }
}
