//! Patches in the documents fit the tree that they are for.

use std::fs;

use super::root;

/// The most lines that an example of a design may change.
const CHANGED_LINES: usize = 100;

/// A piece of a patch: the lines that a file has, and how many change.
#[derive(Debug)]
struct Hunk {
    file: String,
    before: Vec<String>,
    changed: usize,
}

fn hunks(patch: &str) -> Vec<Hunk> {
    let mut hunks: Vec<Hunk> = Vec::new();
    let mut file = String::new();
    for line in patch.lines() {
        if let Some(name) = line.strip_prefix("--- ") {
            file = name.trim_start_matches("a/").to_owned();
        } else if line.starts_with("@@") {
            hunks.push(Hunk {
                file: file.clone(),
                before: Vec::new(),
                changed: 0,
            });
        } else if let Some(hunk) = hunks.last_mut().filter(|_| !line.starts_with("+++")) {
            match line.split_at_checked(1) {
                Some((" ", text)) => hunk.before.push(text.to_owned()),
                Some(("-", text)) => {
                    hunk.before.push(text.to_owned());
                    hunk.changed += 1;
                }
                Some(("+", _)) => hunk.changed += 1,
                _ => {}
            }
        }
    }
    hunks
}

#[test]
fn examples_that_are_patches_fit_the_tree_and_are_small() {
    let examples = fs::read_dir(root().join("docs/examples")).expect("it is there");
    let paths = examples.map(|entry| entry.expect("it can be read").path());
    let mut patches = 0;
    for path in paths.filter(|path| path.extension().is_some_and(|of| of == "patch")) {
        patches += 1;
        let name = path.display();
        let hunks = hunks(&fs::read_to_string(&path).expect("it is text"));
        for hunk in hunks.iter().filter(|hunk| hunk.file != "/dev/null") {
            let text = fs::read_to_string(root().join(&hunk.file));
            let text = text.unwrap_or_else(|error| panic!("{name}: {}: {error}", hunk.file));
            let lines: Vec<&str> = text.lines().collect();
            let fits = lines.windows(hunk.before.len()).any(|of| of == hunk.before);
            assert!(
                fits,
                "{name} does not fit {} any more: make it anew from the steps in \
                 docs/architecture.md. It expects:\n{}",
                hunk.file,
                hunk.before.join("\n")
            );
        }
        let changed: usize = hunks.iter().map(|hunk| hunk.changed).sum();
        assert!(
            changed < CHANGED_LINES,
            "{name} changes {changed} lines, at most {CHANGED_LINES}"
        );
    }
    assert!(patches > 0, "there is an example of a reset design");
}
