//! `zonelab profiles`.

use zonelab_lab::run::Profiles as _;
use zonelab_lab::table::{Cell, Column, Table};
use zonelab_ssd::profile::{self, Profile};

use crate::console;
use crate::exit::{Exit, Failure};
use crate::files::{self, Files, ProfileFiles};

/// Options of `profiles`.
#[derive(clap::Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Option<Command>,
    /// The list as JSON
    #[arg(long)]
    json: bool,
}

#[derive(clap::Subcommand)]
enum Command {
    /// Every key of a drive with its value and where that comes from, and
    /// everything that follows
    Show {
        /// A built-in name, or a file
        name: String,
        /// Change a setting: media.read=60us
        #[arg(long = "set", value_name = "KEY=VALUE")]
        set: Vec<String>,
        /// Print the file itself, to copy and change
        #[arg(long, conflicts_with = "json")]
        toml: bool,
        /// As JSON
        #[arg(long)]
        json: bool,
    },
}

/// Lists the built-in drives, or shows one.
///
/// # Errors
/// [`Failure`] with its exit code.
pub(crate) fn profiles(args: &Args) -> Result<Exit, Failure> {
    let Some(Command::Show {
        name,
        set,
        toml,
        json,
    }) = &args.command
    else {
        return list(args.json);
    };
    if *toml && set.is_empty() {
        let text = match profile::builtin_text(name) {
            Some(text) => text.to_owned(),
            None => files::read(name)?,
        };
        console::print(&text)?;
        return Ok(Exit::Done);
    }
    let profile = load(name, set)?;
    let text = match (toml, json) {
        (true, _) => profile::to_toml(&profile.config),
        (_, true) => as_json(&profile),
        _ => as_text(&profile),
    };
    console::print(&text)?;
    Ok(Exit::Done)
}

/// A profile by name or path.
///
/// # Errors
/// There is none, or it is wrong.
pub(crate) fn load(name: &str, set: &[String]) -> Result<Profile, Failure> {
    let overrides = files::overrides(set)?;
    let (files, base) = (&Files::default(), None);
    let profiles = ProfileFiles { files, base };
    profiles.load(name, &overrides).map_err(Failure::input)
}

fn list(is_json: bool) -> Result<Exit, Failure> {
    if is_json {
        let all = profile::builtin_names().filter_map(profile::builtin);
        let profiles: Vec<_> = all.map(|of| of_list(&of)).collect();
        let value = serde_json::json!({ "schema": 1, "profiles": profiles });
        console::print(&format!("{value:#}\n"))?;
        return Ok(Exit::Done);
    }
    let mut table = Table::new([
        Column::word("name"),
        Column::number("zones"),
        Column::number("zone capacity"),
        Column::text("drive"),
    ]);
    for profile in profile::builtin_names().filter_map(profile::builtin) {
        table.push(
            [
                profile.config.name.clone(),
                profile.config.zones.count.to_string(),
                zonelab_config::units::fmt_size(capacity_bytes(&profile)),
                profile.description.clone(),
            ]
            .map(Cell::from),
        );
    }
    console::print(&table.to_text(&console::style()))?;
    console::print("\nzonelab profiles show NAME         everything about one\n")?;
    console::print("zonelab profiles show NAME --toml  its file, to copy and change\n")?;
    Ok(Exit::Done)
}

/// What a host can write to a zone.
fn capacity_bytes(profile: &Profile) -> u64 {
    profile.config.zones.capacity_lbas * u64::from(profile.config.lba_bytes)
}

fn of_list(profile: &Profile) -> serde_json::Value {
    serde_json::json!({
        "name": profile.config.name,
        "zones": profile.config.zones.count,
        "zone_capacity_bytes": capacity_bytes(profile),
        "description": profile.description,
    })
}

/// Every key with its value, section by section.
pub(crate) fn as_text(profile: &Profile) -> String {
    let mut text = String::new();
    let mut section = None;
    let mut table = Table::new(columns());
    for row in profile::describe(profile) {
        if section != Some(row.section) {
            flush(&mut text, section, &table);
            table = Table::new(columns());
            section = Some(row.section);
        }
        table.push([row.key, &row.value, &row.note].map(Cell::from));
    }
    flush(&mut text, section, &table);
    text
}

fn columns() -> [Column; 3] {
    [
        Column::word("key"),
        Column::text("value"),
        Column::text("from"),
    ]
}

fn flush(text: &mut String, section: Option<&str>, table: &Table) {
    if let Some(section) = section {
        let name = if section.is_empty() { "drive" } else { section };
        text.push_str(&format!("[{name}]\n{}\n", table.to_text(&console::style())));
    }
}

/// Every key with its value, as JSON.
pub(crate) fn as_json(profile: &Profile) -> String {
    let rows: Vec<_> = profile::describe(profile)
        .into_iter()
        .map(|row| {
            serde_json::json!({
                "section": row.section, "key": row.key, "value": row.value, "note": row.note,
            })
        })
        .collect();
    let value = serde_json::json!({ "schema": 1, "profile": profile.config.name, "rows": rows });
    format!(
        "{}\n",
        serde_json::to_string_pretty(&value).unwrap_or_default()
    )
}
