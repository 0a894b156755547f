//! What shells and `man` are told of the command.

use std::process::Command;

use super::scratch::{Scratch, stderr};

/// What bash completes `words` to, of which the last is begun.
fn bash_completes(script: &str, words: &[&str]) -> Vec<String> {
    let ask = format!(
        "source {script}; COMP_WORDS=({}); COMP_CWORD={}; \
         _zonelab zonelab \"${{COMP_WORDS[COMP_CWORD]}}\" \"${{COMP_WORDS[COMP_CWORD-1]}}\"; \
         printf '%s\\n' \"${{COMPREPLY[@]}}\"",
        words.join(" "),
        words.len() - 1
    );
    let output = Command::new("bash").args(["--norc", "-c", &ask]).output();
    let output = output.expect("bash is there");
    assert!(output.status.success(), "{}", stderr(&output));
    let text = String::from_utf8(output.stdout).unwrap();
    text.lines().map(str::to_owned).collect()
}

#[test]
fn bash_completes_verbs_and_options() {
    let scratch = Scratch::new("completions");
    let output = scratch.zonelab(&["completions", "bash"]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let script = scratch.write("zonelab.bash", &String::from_utf8(output.stdout).unwrap());
    assert_eq!(bash_completes(&script, &["zonelab", "repr"]), ["reproduce"]);
    let options = bash_completes(&script, &["zonelab", "reproduce", "--qui"]);
    assert!(options.contains(&"--quick".to_owned()), "{options:?}");
    let verbs = bash_completes(&script, &["zonelab", "nvme", "zns", "report-z"]);
    assert_eq!(verbs, ["report-zones"]);
}

#[test]
fn every_shell_gets_a_script_and_others_are_named() {
    let scratch = Scratch::new("shells");
    for shell in ["bash", "elvish", "fish", "powershell", "zsh"] {
        let output = scratch.zonelab(&["completions", shell]);
        assert_eq!(
            output.status.code(),
            Some(0),
            "{shell}: {}",
            stderr(&output)
        );
        let text = String::from_utf8(output.stdout).unwrap();
        assert!(
            text.contains("reproduce") && text.contains("quick"),
            "{shell}"
        );
    }
    let output = scratch.zonelab(&["completions", "csh"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("zsh"), "{}", stderr(&output));
}

#[test]
fn every_verb_has_a_page_of_the_manual() {
    let scratch = Scratch::new("man");
    let output = scratch.zonelab(&["man", "pages"]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let mut count = 0;
    for verb in super::schemas::verbs() {
        let page = scratch.read(&format!("pages/zonelab-{verb}.1"));
        assert!(page.contains(".SH SYNOPSIS"), "{verb}");
        count += 1;
    }
    assert!(count > 15, "{count} verbs");
    let page = scratch.read("pages/zonelab-nvme-zns-report-zones.1");
    assert!(page.contains(".SH OPTIONS"), "{page}");

    // A file is in the way of the directory.
    let file = scratch.write("file", "");
    let output = scratch.zonelab(&["man", &file]);
    assert_eq!(output.status.code(), Some(4));
    let message = stderr(&output);
    assert!(
        message.contains("file") && message.contains("exists"),
        "{message}"
    );
}
