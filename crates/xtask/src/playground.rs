//! `cargo xtask playground`: the page that runs zonelab in a browser.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

use crate::steps::{self, Policy, Step};
use crate::{ENVIRONMENT, USAGE, made, root, target};

/// What it is compiled for.
const WASM: &str = "wasm32-unknown-unknown";
/// How to get the standard library for that.
const INSTALL: &str = "rustup target add wasm32-unknown-unknown";
/// Bytes that may be loaded at most.
const MOST: u64 = 5_000_000;
/// What belongs to the page, in `site/playground`.
const PAGE: [&str; 11] = [
    "index.html",
    "playground.css",
    "app.js",
    "controls.js",
    "curves.js",
    "dom.js",
    "engine.js",
    "state.js",
    "timeline.js",
    "worker.js",
    "zones.js",
];
/// The style of all pages, which this one has too.
const STYLE: &str = "crates/page/src/page/style.css";
/// Its building blocks, and those that the page takes of them. There they are a part of one
/// script; here they are a module.
const BASE: &str = "crates/page/src/page/base.js";
const EXPORTS: &str = "\nexport { duration, el, number, svg };\n";

/// Builds the page.
pub(crate) fn chore(args: &[String], is_ci: bool) -> Result<u8> {
    let out = match args {
        [] => made().join("site/playground"),
        [option, directory] if option == "--out" => root().join(directory),
        _ => {
            eprintln!("cargo xtask playground [--out DIR]");
            return Ok(USAGE);
        }
    };
    if !has_target() && !is_ci {
        eprintln!("the playground is compiled for {WASM}: install that with {INSTALL}");
        return Ok(ENVIRONMENT);
    }
    std::fs::create_dir_all(&out).with_context(|| format!("cannot make {}", out.display()))?;
    let policy = Policy {
        keep_going: false,
        strict: true,
    };
    let code = steps::run(plan(&out, !has_target()), policy)?;
    if code != 0 {
        return Ok(code);
    }
    copy(&out)?;
    let total = sizes(&out)?;
    let out = out.display();
    println!("\n{out}: {total} bytes; any web server shows it, for example:");
    println!("    python3 -m http.server --bind 127.0.0.1 --directory {out} 8421");
    if total > MOST {
        eprintln!("cargo xtask playground: more than {MOST} bytes");
        return Ok(1);
    }
    Ok(0)
}

fn plan(out: &Path, install: bool) -> Vec<Step> {
    let mut steps = Vec::new();
    if install {
        let mut words = INSTALL.split_whitespace();
        let mut command = Command::new(words.next().unwrap_or_default());
        command.args(words).current_dir(root());
        steps.push(Step {
            name: "standard library",
            command,
            missing: None,
        });
    }
    let package = "zonelab-playground";
    steps.push(Step::cargo(
        "module",
        &[
            "build",
            "--quiet",
            "--package",
            package,
            "--lib",
            "--profile",
            "playground",
            "--target",
            WASM,
        ],
    ));
    let package = "zonelab-playground-glue";
    let features = ["--features", "bindgen"];
    let mut glue = Step::cargo("glue", &["run", "--quiet", "--package", package]);
    let module = target()
        .join(WASM)
        .join("playground/zonelab_playground.wasm");
    glue.command.args(features).arg("--").arg(module).arg(out);
    steps.push(glue);
    steps
}

/// Whether the standard library for it is installed; without rustup, cargo will say.
fn has_target() -> bool {
    let list = Command::new("rustup")
        .args(["target", "list", "--installed"])
        .output();
    list.map_or(true, |list| {
        let installed = String::from_utf8_lossy(&list.stdout);
        installed.lines().any(|line| line == WASM)
    })
}

fn copy(out: &Path) -> Result<()> {
    let page = root().join("site/playground");
    let files = PAGE.iter().map(|name| (page.join(name), *name));
    for (from, name) in files.chain([(root().join(STYLE), "style.css")]) {
        std::fs::copy(&from, out.join(name)).with_context(|| format!("cannot copy {name}"))?;
    }
    let base = std::fs::read_to_string(root().join(BASE)).context("cannot read base.js")?;
    std::fs::write(out.join("base.js"), base + EXPORTS).context("cannot write base.js")?;
    Ok(())
}

/// Prints the size of each file, and gives their sum.
fn sizes(out: &Path) -> Result<u64> {
    let mut files: Vec<(PathBuf, u64)> = Vec::new();
    for entry in std::fs::read_dir(out)? {
        let entry = entry?;
        let about = entry.metadata()?;
        if about.is_file() {
            files.push((entry.file_name().into(), about.len()));
        }
    }
    files.sort();
    println!();
    for (name, bytes) in &files {
        println!("{bytes:>9} {}", name.display());
    }
    Ok(files.iter().map(|(_, bytes)| bytes).sum())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_is_all_that_is_there() {
        let files = std::fs::read_dir(root().join("site/playground")).unwrap();
        let mut names: Vec<String> = files
            .map(|file| file.unwrap().file_name().to_string_lossy().into_owned())
            .collect();
        names.sort();
        let mut page = PAGE.to_vec();
        page.sort_unstable();
        assert_eq!(names, page);
    }

    #[test]
    fn the_standard_library_is_installed_where_it_is_missing() {
        let names = |install| -> Vec<&str> {
            let steps = plan(Path::new("out"), install);
            steps.iter().map(|step| step.name).collect()
        };
        assert_eq!(names(false), ["module", "glue"]);
        assert_eq!(names(true), ["standard library", "module", "glue"]);
    }
}
