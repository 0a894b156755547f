//! `zonelab check`.

use std::path::Path;

use zonelab_config::{Document, FileKind};
use zonelab_lab::{idle, library};
use zonelab_search::sweep::Source;
use zonelab_ssd::profile::Profile;

use crate::console;
use crate::exit::{Exit, Failure};
use crate::files::{self, Files, ProfileFiles};
use crate::{profiles, session, sweep};

/// Options of `check`.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// A profile or experiment: a file, or the name of a built-in one; or a sweep file
    file: String,
    /// Change a setting of the file
    #[arg(long = "set", value_name = "KEY=VALUE")]
    set: Vec<String>,
    /// As JSON
    #[arg(long)]
    json: bool,
}

/// Checks a file, and prints what follows from it.
///
/// # Errors
/// [`Failure`]: everything that is wrong with it.
pub(crate) fn check(args: &Args) -> Result<Exit, Failure> {
    let name = &args.file;
    if zonelab_ssd::profile::builtin_text(name).is_some() {
        return show(&profiles::load(name, &args.set)?, args.json);
    }
    let builtin = library::text(name).or_else(|| library::example(name));
    let (text, base) = match builtin {
        Some(text) => (text.to_owned(), None),
        None if !Path::new(name).exists() && !name.contains(['/', '.']) => {
            let known: Vec<&str> = zonelab_ssd::profile::builtin_names()
                .chain(library::ids())
                .chain(library::examples().map(|(id, _)| id))
                .collect();
            let near = zonelab_config::nearest(name, known.iter().copied());
            let hint = near
                .map(|near| format!(" (did you mean {near}?)"))
                .unwrap_or_default();
            return Err(Failure::usage(format!(
                "there is no \"{name}\"{hint}: name a file, or one of {}",
                known.join(", ")
            )));
        }
        None => (files::read(name)?, Path::new(name).parent()),
    };
    if Document::parse(name, &text, &[]).is_ok_and(|file| Source::is_sweep(&file)) {
        return sweep::check(name, &text, &args.set, args.json);
    }
    let overrides = files::overrides(&args.set)?;
    let document = Document::parse(name, &text, &overrides).map_err(Failure::input)?;
    if FileKind::of(&document) != Some(FileKind::Experiment) && !document.root().has("id") {
        let profile = Profile::parse(name, &text, &overrides).map_err(Failure::input)?;
        return show(&profile, args.json);
    }
    let files = &Files::default();
    let loaded = session::load(files, (name, &text), &overrides, false)?;
    let profiles = ProfileFiles { files, base };
    session::check(std::slice::from_ref(&loaded), &profiles)?;
    let mut points = loaded.points.iter();
    points
        .try_for_each(|point| point.check_new(&profiles))
        .map_err(Failure::input)?;
    let experiment = &loaded.experiment;
    let warnings = idle::of_points(&loaded.points, &profiles);
    let references = session::references(std::slice::from_ref(&loaded))?;
    references.check(experiment).map_err(Failure::input)?;
    session::look_at(std::slice::from_ref(&loaded), &references)?;
    if args.json {
        let value = serde_json::json!({
            "schema": 1,
            "experiment": experiment.id,
            "series": experiment.series.len(),
            "points": loaded.points.len(),
            "repeats": experiment.repeats,
            "warnings": warnings,
        });
        console::print(&format!("{value}\n"))?;
    } else {
        let times = match experiment.repeats {
            1 => String::new(),
            repeats => format!(", {repeats} times each"),
        };
        console::print(&format!(
            "{name}: experiment {}, \"{}\": {} series at {} values of {}, {} points{times}; all can be run\n",
            experiment.id,
            experiment.title,
            experiment.series.len(),
            experiment.axis.values.len(),
            experiment.axis.name,
            loaded.points.len(),
        ))?;
        for warning in &warnings {
            console::print(&format!("warning: {warning}\n"))?;
        }
    }
    Ok(Exit::Done)
}

fn show(profile: &Profile, json: bool) -> Result<Exit, Failure> {
    let text = if json {
        profiles::as_json(profile)
    } else {
        profiles::as_text(profile)
    };
    console::print(&text)?;
    Ok(Exit::Done)
}
