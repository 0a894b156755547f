//! `zonelab bundle`, and `zonelab reproduce` of a bundle.

use std::collections::BTreeMap;
use std::io::{ErrorKind, Read as _};
use std::path::{Path, PathBuf};

use anyhow::anyhow;
use serde_json::{Value, json};
use tempfile::TempDir;
use zonelab_lab::bundle::{Bundle, Change, Difference, Limits, RECIPE, Recipe, compare};
use zonelab_lab::output::{self, MANIFEST, Manifest};
use zonelab_lab::session;

use crate::console;
use crate::exit::{Exit, Failure};
use crate::files::Files;
use crate::reproduce::Again;
use crate::results::TOOL;

/// How file names of bundles end.
const SUFFIX: &str = ".tar.gz";
/// Version of what `--json` prints.
const SCHEMA: u32 = 1;

/// Options of `bundle`.
#[derive(clap::Args)]
#[command(after_help = HELP)]
pub(crate) struct Args {
    /// The directory of results
    results: PathBuf,
    /// The file to write [default: the name of the results with .tar.gz]
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Replace another file of that name
    #[arg(long)]
    force: bool,
    /// As JSON
    #[arg(long)]
    json: bool,
}

const HELP: &str = "\
`zonelab reproduce FILE` runs it again, anywhere, and compares every file byte by byte: exit
code 0 if all are the same, 1 with a list of files and rows that differ, 3 for a damaged bundle.
docs/bundle.md explains it.";

/// Packs results into one file.
///
/// # Errors
/// They are not complete, do not say how they were made, or cannot be read or written.
pub(crate) fn bundle(args: &Args) -> Result<Exit, Failure> {
    let results = packable(&args.results)?;
    let (manifest, files) = results;
    let bundle = Bundle {
        tool: manifest.tool,
        results: files,
    };
    let bytes = bundle.to_bytes().map_err(Failure::input)?;
    let path = args
        .out
        .clone()
        .map_or_else(|| default(&args.results), Ok)?;
    match session::read_whole(&path) {
        Ok(there) if there != bytes && !args.force => {
            return Err(Failure::environment(anyhow!(
                "{} is there and is something else: write elsewhere with `--out FILE`, or \
                 replace it with `--force`",
                path.display()
            )));
        }
        Err(error) if error.kind() != ErrorKind::NotFound && !args.force => {
            return Err(Failure::environment(anyhow!(
                "{}: {error}: write elsewhere with `--out FILE`, or replace it with `--force`",
                path.display()
            )));
        }
        _ => output::replace(&path, &bytes).map_err(Failure::environment)?,
    }
    let (files, size) = (bundle.results.len(), bytes.len());
    if args.json {
        let value = json!({
            "schema": SCHEMA, "bundle": path, "made_by": bundle.tool, "files": files,
            "bytes": size,
        });
        console::print(&format!("{value:#}\n"))?;
        return Ok(Exit::Done);
    }
    let path = path.display();
    console::print(&format!(
        "{path}: {files} files of results in {size} bytes; `zonelab reproduce {path}` checks it\n"
    ))?;
    Ok(Exit::Done)
}

/// The file in the current directory that a bundle goes to. Of `results/NAME/HASH`, it has
/// both names.
fn default(results: &Path) -> Result<PathBuf, Failure> {
    let whole = results
        .canonicalize()
        .map_err(|error| unreadable(results, &error))?;
    let parent = whole.parent().filter(|parent| output::is_of_many(parent));
    let names = [parent.unwrap_or(Path::new("")), &whole];
    let names = names.map(|path| path.file_name().map(|name| name.to_string_lossy()));
    let names: Vec<_> = names.iter().flatten().map(|name| &**name).collect();
    if names.is_empty() {
        return Err(Failure::usage("name the file with `--out FILE`".to_owned()));
    }
    Ok(PathBuf::from(format!("{}{SUFFIX}", names.join("-"))))
}

fn unreadable(path: &Path, error: &std::io::Error) -> Failure {
    Failure::input(anyhow!("{}: {error}", path.display()))
}

/// Why there are no results in `path`, and where they may be: in a directory for each
/// configuration, the newest of which `latest` leads to.
fn no_results(path: &Path) -> String {
    let latest = path.join("latest");
    let meant = [latest.clone(), Path::new("results").join(&latest)];
    let meant = meant.iter().find(|path| path.join(MANIFEST).exists());
    let why = match path.is_dir() {
        true => format!("there are no results in it (no {MANIFEST})"),
        false => "there is no such directory".to_owned(),
    };
    let path = path.display();
    match meant {
        Some(meant) => format!("{path}: {why}; did you mean {}?", meant.display()),
        None => format!("{path}: {why}; results of `zonelab run` are in results/NAME/latest"),
    }
}

/// The manifest of a directory of results, and every file of them.
fn packable(path: &Path) -> Result<(Manifest, BTreeMap<String, Vec<u8>>), Failure> {
    let wrong = |what: &str| Failure::input(anyhow!("{}: {what}", path.display()));
    let read = |name: &str| {
        let file = path.join(name);
        session::read_whole(&file).map_err(|error| unreadable(&file, &error))
    };
    if path.is_file() {
        return Err(wrong(
            "this is a file: name the directory of results that is to be packed",
        ));
    }
    if !path.join(MANIFEST).exists() {
        return Err(Failure::input(anyhow!(no_results(path))));
    }
    let bytes = read(MANIFEST)?;
    let manifest: Manifest = serde_json::from_slice(&bytes)
        .map_err(|error| wrong(&format!("{MANIFEST} is not that of results: {error}")))?;
    if !manifest.complete {
        return Err(wrong(
            "these results are not complete: give their command again, and let it come to its end",
        ));
    }
    let mut files = BTreeMap::from([(MANIFEST.to_owned(), bytes)]);
    for name in &manifest.files {
        files.insert(name.clone(), read(name)?);
    }
    if !files.contains_key(RECIPE) {
        return Err(wrong(&format!(
            "there is no {RECIPE}, which says how the results were made: they are of an earlier \
             version, of a device in real time, of several searches in one directory, or of a \
             command that writes none"
        )));
    }
    Ok((manifest, files))
}

/// Whether a word of `reproduce` names a bundle: a file, there or not. Ids have no such
/// characters.
pub(crate) fn is_bundle(word: &str) -> bool {
    word.contains(['.', '/'])
}

/// How a bundle is run again.
pub(crate) struct Rerun<'a> {
    /// The file.
    pub(crate) file: &'a str,
    /// Where the results go; `None`: to a directory that is removed if they are the same.
    pub(crate) out: Option<&'a Path>,
    /// Threads; 0: one per core.
    pub(crate) threads: Option<u16>,
    pub(crate) quiet: bool,
    pub(crate) json: bool,
}

/// Runs what a bundle has again, and compares the results.
///
/// # Errors
/// The bundle is damaged, or its command fails.
pub(crate) fn reproduce(
    rerun: &Rerun<'_>,
    run: impl FnOnce(&[String], &Again<'_>) -> Result<Exit, Failure>,
) -> Result<Exit, Failure> {
    let bundle = read(rerun.file)?;
    let recipe = bundle.results.get(RECIPE).map_or(&b""[..], Vec::as_slice);
    let wrong = |what: String| Failure::input(anyhow!("{}: {what}", rerun.file));
    let recipe = Recipe::from_json(recipe).map_err(|error| wrong(error.to_string()))?;
    let gathered = recipe.gathered(&bundle.results);
    let gathered =
        gathered.map_err(|name| wrong(format!("{name}, which the command read, is missing")))?;
    if bundle.tool != TOOL {
        tell!(
            "zonelab: {} was made by {}, and this is {TOOL}: results may differ",
            rerun.file,
            bundle.tool
        );
    }
    let here = std::env::current_dir().map_err(Failure::environment)?;
    let files = Files::packed(gathered, &here);
    let scratch = scratch()?;
    let out = rerun.out.unwrap_or_else(|| scratch.path());
    let again = Again {
        files: &files,
        out,
        threads: rerun.threads,
        quiet: rerun.quiet || rerun.json,
    };
    if run(&recipe.words, &again)? == Exit::Interrupted {
        return Ok(Exit::Interrupted);
    }
    let (_, made) = packable(out)?;
    let differences = compare(&bundle.results, &made);
    if differences.is_empty() {
        show(rerun, &bundle, &[], Path::new(""))?;
        return Ok(Exit::Done);
    }
    // To look at what is different.
    let kept = match rerun.out {
        Some(out) => out.to_owned(),
        None => scratch.keep(),
    };
    show(rerun, &bundle, &differences, &kept)?;
    Ok(Exit::ExpectationFailed)
}

/// A directory for results that are removed again.
fn scratch() -> Result<TempDir, Failure> {
    let made = tempfile::Builder::new()
        .prefix("zonelab-reproduce-")
        .tempdir();
    made.map_err(|error| {
        let what = anyhow!("cannot create a directory for temporary files: {error}");
        Failure::environment(what)
    })
}

fn read(file: &str) -> Result<Bundle, Failure> {
    let path = Path::new(file);
    let limits = Limits::default();
    let wrong = |error: std::io::Error| unreadable(path, &error);
    let mut bytes = Vec::new();
    let most = limits.bytes.saturating_add(1);
    let mut opened = session::open_ordinary(path).map_err(wrong)?.take(most);
    opened.read_to_end(&mut bytes).map_err(wrong)?;
    if bytes.len() as u64 > limits.bytes {
        return Err(Failure::input(anyhow!(
            "{file}: more than {} bytes: too large for a bundle",
            limits.bytes
        )));
    }
    Bundle::read(&bytes, limits).map_err(|error| Failure::input(anyhow!("{file}: {error}")))
}

fn show(
    rerun: &Rerun<'_>,
    bundle: &Bundle,
    differences: &[Difference],
    kept: &Path,
) -> Result<(), Failure> {
    let files = bundle.results.len();
    if rerun.json {
        let value = json!({
            "schema": SCHEMA,
            "bundle": rerun.file,
            "made_by": bundle.tool,
            "compared_by": TOOL,
            "files": files,
            "same": differences.is_empty(),
            "differences": differences.iter().map(as_json).collect::<Vec<_>>(),
        });
        return console::print(&format!("{value:#}\n"));
    }
    let file = rerun.file;
    if differences.is_empty() {
        return console::print(&format!(
            "{file}: all {files} files are the same, byte by byte\n"
        ));
    }
    let mut text = String::new();
    for difference in differences {
        text.push_str(&format!("{difference}\n"));
    }
    text.push_str(&format!(
        "{file}: {} of {files} files differ\n",
        differences.len()
    ));
    text.push_str(&format!("what was made again is in {}\n", kept.display()));
    console::print(&text)
}

fn as_json(difference: &Difference) -> Value {
    let Difference { file, change } = difference;
    match change {
        Change::Missing => json!({ "file": file, "change": "missing" }),
        Change::New => json!({ "file": file, "change": "new" }),
        Change::Bytes { at } => json!({ "file": file, "change": "bytes", "at": at }),
        Change::Lines { first, count } => {
            let first = first.iter().map(|(number, packed, again)| {
                json!({ "line": number, "packed": packed, "again": again })
            });
            let first: Vec<Value> = first.collect();
            json!({ "file": file, "change": "lines", "count": count, "first": first })
        }
    }
}
