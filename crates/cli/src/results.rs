//! Result files: rows, points, figures, the report.

use std::path::Path;
use std::rc::Rc;

use serde_json::Value;
use zonelab_lab::bundle::{RECIPE, Recipe};
use zonelab_lab::difference::Difference;
use zonelab_lab::figure::Width;
use zonelab_lab::output::{Existing, Manifest, Place, ResultDir};
use zonelab_lab::published::References;
use zonelab_lab::results::Written;
pub(crate) use zonelab_lab::results::{Configuration, Finished, configuration};
use zonelab_lab::rows::{Misfits, Row, Summary};
use zonelab_lab::session::Gathered;

use crate::exit::Failure;
use crate::host_state::{self, HostState};
use crate::report::{self, Invocation};
use crate::trace;

/// Program and version that wrote the results.
pub(crate) const TOOL: &str = concat!("zonelab ", env!("CARGO_PKG_VERSION"));

/// Where results go, and what they are results of.
pub(crate) struct Destination<'a> {
    pub(crate) place: Place,
    pub(crate) seed: u64,
    pub(crate) force: bool,
    /// All that the results depend on, besides the seed.
    pub(crate) configuration: Value,
    /// Where the only trace goes, if not among the results.
    pub(crate) trace_file: Option<&'a Path>,
    /// Traces are not compressed. Of a file that was named, its name says that.
    pub(crate) uncompressed: bool,
    /// How wide figures are, if not as their experiments say.
    figure_width: Option<Width>,
}

/// What there is to write.
pub(crate) struct Outcome<'a> {
    pub(crate) finished: &'a [Finished],
    pub(crate) rows: &'a [Row],
    /// Differences between series, of all experiments.
    pub(crate) differences: &'a [Difference],
    /// What the rows come to.
    pub(crate) summary: &'a Summary,
    pub(crate) references: &'a References,
    /// The drive of each point of each experiment, as TOML.
    pub(crate) drives: &'a [Vec<Rc<str>>],
    /// The list that marked the rows.
    pub(crate) misfits: &'a Misfits,
    /// The command that was given.
    pub(crate) invocation: &'a Invocation,
    /// What a reader must know first.
    pub(crate) notices: Vec<String>,
    /// Whether every point was run.
    pub(crate) complete: bool,
    /// What failed on the device, after which no point was run.
    pub(crate) lost: Option<&'a str>,
    /// The state of the host that it ran on in real time.
    pub(crate) host: Option<&'a HostState>,
    /// How the same results are made, if they are the same again.
    pub(crate) recipe: Option<(Recipe, Gathered)>,
}

impl<'a> Destination<'a> {
    /// The directory that was named by `--out`, or one below `results/NAME`.
    pub(crate) fn new(
        (out, name): (Option<&Path>, &str),
        (seed, force): (u64, bool),
        configuration: Value,
        (trace_file, uncompressed): (Option<&'a Path>, bool),
    ) -> Self {
        let manifest = Manifest::new(TOOL, configuration.to_string().as_bytes(), seed);
        Self {
            place: Place::new(out, name, &manifest),
            seed,
            force,
            configuration,
            trace_file,
            uncompressed,
            figure_width: None,
        }
    }

    /// The same with figures of another width than their experiments say.
    pub(crate) fn with_figures(self, figure_width: Option<Width>) -> Self {
        Self {
            figure_width,
            ..self
        }
    }
}

impl Destination<'_> {
    pub(crate) fn path(&self) -> &Path {
        self.place.path()
    }

    fn manifest(&self) -> Manifest {
        Manifest::new(TOOL, self.configuration.to_string().as_bytes(), self.seed)
    }

    const fn existing(&self) -> Existing {
        if self.force {
            Existing::Replace
        } else {
            Existing::Keep
        }
    }
}

/// Checks that results can be written, and changes nothing that is there.
///
/// # Errors
/// The directory holds other results, or cannot be written.
pub(crate) fn prepare(to: &Destination<'_>) -> Result<(), Failure> {
    ResultDir::check(to.path(), &to.manifest(), to.existing()).map_err(Failure::environment)
}

/// Opens a directory of results in which `kept`, a file that is no result,
/// stays as long as the configuration is the same.
///
/// # Errors
/// The directory holds other results and `force` is not set, or it cannot be
/// written.
pub(crate) fn open_kept(
    path: &Path,
    manifest: Manifest,
    force: bool,
    kept: &str,
) -> Result<ResultDir, Failure> {
    let existing = match ResultDir::check(path, &manifest, Existing::Keep) {
        Ok(()) => Existing::Keep,
        Err(error) if !force => return Err(Failure::environment(error)),
        Err(_) => {
            match std::fs::remove_file(path.join(kept)) {
                Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                    return Err(Failure::environment(error));
                }
                _ => {}
            }
            Existing::Replace
        }
    };
    ResultDir::create(path, manifest, existing).map_err(Failure::environment)
}

/// Writes files, which are all of the results.
///
/// # Errors
/// The directory holds other results, or cannot be written.
pub(crate) fn put_all(to: &Destination<'_>, files: &[(&str, &[u8])]) -> Result<(), Failure> {
    let mut dir =
        ResultDir::create(to.path(), to.manifest(), to.existing()).map_err(Failure::environment)?;
    for (name, bytes) in files {
        dir.write(name, bytes).map_err(Failure::environment)?;
    }
    link(&to.place);
    dir.finish().map_err(Failure::environment)
}

/// Lets `latest` lead to results. That it cannot does not keep them from being written: it
/// is said, and that is all.
pub(crate) fn link(place: &Place) {
    if let Err(error) = place.link() {
        tell!("zonelab: warning: {error}");
    }
}

/// The files that say how results are made, with what their command read.
///
/// # Errors
/// There is no current directory.
pub(crate) fn written(
    recipe: &mut Recipe,
    read: Gathered,
) -> Result<Vec<(String, Vec<u8>)>, Failure> {
    let here = std::env::current_dir().map_err(Failure::environment)?;
    let mut files = recipe.take(read, &here);
    files.push((RECIPE.to_owned(), recipe.to_json().into_bytes()));
    Ok(files)
}

/// Writes everything that was measured, and gives the names of the figures.
///
/// # Errors
/// The directory holds other results, or cannot be written.
pub(crate) fn write(to: &Destination<'_>, outcome: Outcome<'_>) -> Result<Vec<String>, Failure> {
    let Outcome { finished, rows, .. } = outcome;
    let mut dir =
        ResultDir::create(to.path(), to.manifest(), to.existing()).map_err(Failure::environment)?;
    let put = |dir: &mut ResultDir, name: &str, contents: &str| {
        dir.write(name, contents.as_bytes())
            .map_err(Failure::environment)
    };
    if let Some((mut recipe, read)) = outcome.recipe {
        for (name, bytes) in written(&mut recipe, read)? {
            dir.write(&name, &bytes).map_err(Failure::environment)?;
        }
    }
    let written = Written {
        finished,
        rows,
        summary: outcome.summary,
        differences: outcome.differences,
        references: outcome.references,
        configuration: &to.configuration,
        seed: to.seed,
        lost: outcome.lost,
        figure_width: to.figure_width,
    };
    let texts = written.texts().map_err(Failure::input)?;
    for (name, text) in &texts.files {
        put(&mut dir, name, text)?;
    }
    if let Some(host) = outcome.host {
        put(&mut dir, host_state::FILE, &host.to_json())?;
    }
    trace::write(finished, (to.trace_file, to.uncompressed), |name, bytes| {
        dir.write(name, bytes).map_err(Failure::environment)?;
        Ok(to.path().join(name))
    })?;
    let parts = report::Parts {
        tool: TOOL,
        invocation: outcome.invocation,
        rows,
        summary: outcome.summary,
        misfits: outcome.misfits,
        notices: outcome.notices,
        drives: outcome.drives,
    };
    put(
        &mut dir,
        report::FILE,
        &report::html(parts, finished, &texts.figures),
    )?;
    if outcome.complete {
        dir.finish().map_err(Failure::environment)?;
    }
    link(&to.place);
    Ok(texts.figure_names)
}
