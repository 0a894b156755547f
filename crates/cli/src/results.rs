//! Result files: rows, points, figures, the report.

use std::path::Path;
use std::rc::Rc;

use serde_json::Value;
use zonelab_lab::bundle::{RECIPE, Recipe};
use zonelab_lab::difference::Difference;
use zonelab_lab::figure::Width;
use zonelab_lab::output::{Existing, Manifest, Place, Put, ResultDir};
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
    manifest: Manifest,
    pub(crate) seed: u64,
    pub(crate) force: bool,
    /// All that the measurements depend on, besides the seed.
    pub(crate) configuration: Value,
    /// Where the only trace goes, if not among the results.
    pub(crate) trace_file: Option<&'a Path>,
    /// Traces are not compressed. Of a file that was named, its name says that.
    pub(crate) uncompressed: bool,
    /// How wide figures are, if not as their experiments say.
    figure_width: Option<Width>,
}

/// What results are results of.
pub(crate) struct Subject<'a> {
    /// Their directory is below `results/NAME`.
    pub(crate) name: &'a str,
    /// The file, as it was named, or [`zonelab_lab::output::BUILTIN`].
    pub(crate) source: &'a str,
    /// All that the measurements depend on, besides the seed.
    pub(crate) configuration: Value,
    /// What else decides what is written: by what it is judged, and what there is of it.
    pub(crate) decides: Value,
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
        out: Option<&Path>,
        of: Subject<'_>,
        (seed, force): (u64, bool),
        (trace_file, uncompressed): (Option<&'a Path>, bool),
    ) -> Self {
        let identity = format!("{}\n{}", of.configuration, of.decides);
        let manifest = Manifest::new(TOOL, identity.as_bytes(), seed);
        Self {
            place: Place::new(out, of.name, &manifest).of(of.source),
            manifest,
            seed,
            force,
            configuration: of.configuration,
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

    /// Opens the directory for results that are whole, or for a part of them.
    fn open(&self, is_whole: bool) -> Result<ResultDir, Failure> {
        let (manifest, existing) = (self.manifest.clone(), self.existing());
        let dir = match is_whole {
            true => ResultDir::create(&self.place, manifest, existing),
            false => ResultDir::create_part(&self.place, manifest, existing),
        };
        dir.map_err(Failure::environment)
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
    ResultDir::check(to.path(), &to.manifest, to.existing()).map_err(Failure::environment)
}

/// Opens a directory of results in which `kept`, a file that is no result,
/// stays as long as the configuration is the same.
///
/// # Errors
/// The directory holds other results and `force` is not set, or it cannot be
/// written.
pub(crate) fn open_kept(
    place: impl Into<Place>,
    manifest: Manifest,
    force: bool,
    kept: &str,
) -> Result<ResultDir, Failure> {
    let place = place.into();
    let path = place.path();
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
    ResultDir::hold(place, manifest, existing).map_err(Failure::environment)
}

/// Writes files, which are all of the results, or a part of them.
///
/// # Errors
/// The directory holds other results, or cannot be written.
pub(crate) fn put_all(
    to: &Destination<'_>,
    files: &[(&str, &[u8])],
    is_whole: bool,
) -> Result<Put, Failure> {
    let mut dir = to.open(is_whole)?;
    for (name, bytes) in files {
        dir.write(name, bytes).map_err(Failure::environment)?;
    }
    end(dir, is_whole)
}

/// Ends the writing of results that are whole, or of a part of them. That `latest` cannot
/// lead to them is said, and does not make them fail.
///
/// # Errors
/// They cannot be written.
pub(crate) fn end(dir: ResultDir, is_whole: bool) -> Result<Put, Failure> {
    let put = match is_whole {
        true => dir.finish().map_err(Failure::environment)?,
        false => dir.leave(),
    };
    warn(&put);
    Ok(put)
}

/// Says why `latest` does not lead to results that are whole.
pub(crate) fn warn(put: &Put) {
    if let Some(warning) = put.warning() {
        tell!("zonelab: warning: {warning}");
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
pub(crate) fn write(
    to: &Destination<'_>,
    outcome: Outcome<'_>,
) -> Result<(Put, Vec<String>), Failure> {
    let Outcome { finished, rows, .. } = outcome;
    let mut dir = to.open(outcome.complete)?;
    let path = dir.path().to_owned();
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
        Ok(path.join(name))
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
    Ok((end(dir, outcome.complete)?, texts.figure_names))
}
