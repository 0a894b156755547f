//! `zonelab ftl repair`.

use serde_json::{Value, json};
use zonelab_ftl::repair::{CutBack, Repair};

use super::Said;
use super::ground::Ground;
use super::info::slot_name;
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

/// Damage that is still there is an invalid input; what was given up for it is a difference.
const fn exit_of(repair: &Repair) -> Exit {
    match (&repair.damage, repair.is_done) {
        (None, _) => Exit::Done,
        (Some(_), false) => Exit::InvalidInput,
        (Some(_), true) if repair.cut_back.is_empty() => Exit::Done,
        (Some(_), true) => Exit::ExpectationFailed,
    }
}

fn text(name: &str, repair: &Repair) -> String {
    let Some(damage) = &repair.damage else {
        return format!("{name}: it can be mounted, and nothing is to be repaired\n");
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
    if !repair.is_done {
        text += "Nothing was changed. With --force it is done: copy a store before \
                 (cp --sparse=always)\n";
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
        "schema": 1, "device": name, "is_sound": repair.damage.is_none(),
        "is_done": repair.is_done, "damage": repair.damage.as_ref().map(ToString::to_string),
        "checkpoint": repair.checkpoint.map(|(checkpoint, _)| checkpoint),
        "image": repair.checkpoint.map(|(_, slot)| slot_name(slot)),
        "restored_anchors": repair.restored_anchors,
        "restored_image_blocks": repair.restored_image_blocks,
        "restored_journal_blocks": repair.restored_journal_blocks,
        "cut_back": repair.cut_back.iter().map(cut).collect::<Vec<_>>(),
    })
}
