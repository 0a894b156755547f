//! `zonelab ftl repair`.

use serde_json::{Value, json};
use zonelab_ftl::check::Finding;
use zonelab_ftl::repair::{CutBack, Repair};

use super::ground::Ground;
use super::info::slot_name;
use super::{Said, check};
use crate::exit::{Exit, Failure};

/// Options of `ftl repair`.
#[derive(clap::Args)]
pub(super) struct RepairArgs {
    /// Do it. Without this nothing is written, and what would be done is said
    #[arg(long)]
    force: bool,
    /// Write nothing, and say what would be done: as without --force
    #[arg(long, conflicts_with = "force")]
    dry_run: bool,
}

impl RepairArgs {
    /// Whether the drive is changed.
    pub(super) const fn writes(&self) -> bool {
        self.force && !self.dry_run
    }
}

pub(super) fn repair(mut ground: Ground, args: &RepairArgs) -> Result<Said, Failure> {
    let (nsid, writes) = (ground.nsid, args.writes());
    let repair = ground.ask(async move |io| zonelab_ftl::repair::repair(&io, nsid, writes).await);
    let name = ground.name.clone();
    let repair = ground.end(repair)?;
    Ok(Said {
        text: text(&name, &repair),
        json: as_json(&name, &repair),
        exit: exit_of(&repair),
    })
}

/// Damage that is still there is an invalid input, as it is to a check; what was given up for
/// it is a difference.
const fn exit_of(repair: &Repair) -> Exit {
    if !repair.findings.is_empty() {
        return Exit::InvalidInput;
    }
    match (&repair.damage, repair.is_done) {
        (None, _) => Exit::Done,
        (Some(_), false) => Exit::InvalidInput,
        (Some(_), true) if repair.cut_back.is_empty() => Exit::Done,
        (Some(_), true) => Exit::ExpectationFailed,
    }
}

fn text(name: &str, repair: &Repair) -> String {
    let Some(damage) = &repair.damage else {
        return match repair.findings.is_empty() {
            true => format!("{name}: it can be mounted, and nothing is to be repaired\n"),
            false => format!("{name}: it can be mounted\n{}", findings_text(repair)),
        };
    };
    let mut text = format!("{name}: {damage}\n");
    let (begin, again) = match repair.is_done {
        true => ("It is repaired", "made again"),
        false => ("It can be repaired", "that can be made again"),
    };
    if let Some((checkpoint, slot)) = repair.checkpoint {
        text += &format!(
            "{begin}, beginning with checkpoint {checkpoint}, image {}\n",
            slot_name(slot)
        );
    }
    for (what, count) in restored(repair) {
        if count > 0 {
            text += &format!("  {what} {again}: {count}\n");
        }
    }
    match repair.cut_back.len() {
        0 => text += "Nothing is cut back: everything that was flushed is there.\n",
        _ => text += "Cut back:\n",
    }
    for cut in &repair.cut_back {
        text += &format!("  {cut}\n");
    }
    text += &findings_text(repair);
    if !repair.is_done {
        text += "Nothing was changed. With --force it is done: copy a store before \
                 (cp --sparse=always)\n";
    }
    text
}

/// What a check finds beside what a mount needs.
fn findings_text(repair: &Repair) -> String {
    if repair.findings.is_empty() {
        return String::new();
    }
    let mut text = "A repair does not mend this, which a check finds:\n".to_owned();
    for finding in &repair.findings {
        text += &format!("  {finding}\n");
    }
    let is_footer = |finding: &Finding| matches!(finding, Finding::Footer { .. });
    if repair.findings.iter().any(is_footer) {
        text += "A mount reads no footers: a damaged one loses nothing, and is written anew when \
                 its zone has been collected.\n";
    }
    text
}

/// What could be made again, and how many.
const fn restored(repair: &Repair) -> [(&'static str, u32); 3] {
    [
        ("anchors", repair.restored_anchors),
        ("blocks of the image", repair.restored_image_blocks),
        ("blocks of the journal", repair.restored_journal_blocks),
    ]
}

fn as_json(name: &str, repair: &Repair) -> Value {
    let cut = |cut: &CutBack| match cut {
        CutBack::Journal { first, count } => {
            json!({ "kind": "journal", "first": first, "count": count, "what": cut.to_string() })
        }
        CutBack::OtherImage {
            first,
            count,
            checkpoint,
        } => json!({
            "kind": "other-image", "first": first, "count": count, "checkpoint": checkpoint,
            "what": cut.to_string(),
        }),
        CutBack::Lost { first, count } => {
            json!({ "kind": "lost", "first": first, "count": count, "what": cut.to_string() })
        }
    };
    json!({
        "schema": 1, "device": name, "is_sound": repair.damage.is_none() && repair.findings.is_empty(),
        "is_done": repair.is_done, "damage": repair.damage.as_ref().map(ToString::to_string),
        "checkpoint": repair.checkpoint.map(|(checkpoint, _)| checkpoint),
        "image": repair.checkpoint.map(|(_, slot)| slot_name(slot)),
        "restored_anchors": repair.restored_anchors,
        "restored_image_blocks": repair.restored_image_blocks,
        "restored_journal_blocks": repair.restored_journal_blocks,
        "findings": repair.findings.iter().map(check::finding_json).collect::<Vec<_>>(),
        "cut_back": repair.cut_back.iter().map(cut).collect::<Vec<_>>(),
    })
}
