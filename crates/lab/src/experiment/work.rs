//! Reading what a job does.

use zonelab_config::{Reported, Table};
use zonelab_device::Nanos;

use super::blocks::blocks;
use super::read::{LONGEST, time};
use super::soft::soft;
use super::{Amount, FillTemplate, WorkTemplate};

/// What a job does: `work`, and the keys that belong to it.
pub(super) fn work(table: &Table<'_>) -> Result<WorkTemplate, Reported> {
    #[derive(Clone, Copy, PartialEq)]
    enum Kind {
        Write,
        Append,
        Read,
        Finish,
        Reset,
        Open,
        Close,
    }
    if let Some(blocks) = blocks(table)? {
        return Ok(WorkTemplate::Blocks(blocks));
    }
    let names = [
        ("write", Kind::Write),
        ("append", Kind::Append),
        ("read", Kind::Read),
        ("finish", Kind::Finish),
        ("reset", Kind::Reset),
        ("open", Kind::Open),
        ("close", Kind::Close),
    ];
    match table.choice("work", &names).required()? {
        kind @ (Kind::Write | Kind::Append) => {
            let open_zones = table.u32("open_zones").within(1..=65_536).or(1);
            let repeat = table.bool("repeat").or(false);
            let reset_first = table.bool("reset_first").or(false);
            let open_first = table.bool("open_first").or(false);
            let shared = table.bool("shared").or(false);
            Ok(WorkTemplate::Write {
                shared: shared?,
                append: kind == Kind::Append,
                open_zones: open_zones?,
                repeat: repeat?,
                reset_first: reset_first?,
                open_first: open_first?,
            })
        }
        Kind::Read => Ok(WorkTemplate::Read {
            random: table.bool("random").or(true)?,
        }),
        Kind::Finish => {
            let (fill, soft) = (fill(table), soft(&table.table("soft")));
            let fill = fill?;
            Ok(match soft? {
                Some(soft) => WorkTemplate::SoftFinish { fill, soft },
                None => WorkTemplate::Finish { fill },
            })
        }
        Kind::Open => Ok(WorkTemplate::Open { fill: fill(table)? }),
        Kind::Close => Ok(WorkTemplate::Close { fill: fill(table)? }),
        Kind::Reset => {
            let shuffled = table.bool("shuffled").or(false);
            let finish_first = table.bool("finish_first").or(false);
            let fill = fill(table);
            Ok(WorkTemplate::Reset {
                shuffled: shuffled?,
                fill: FillTemplate {
                    finish_first: finish_first?,
                    ..fill?
                },
            })
        }
    }
}

/// How a zone is prepared.
fn fill(table: &Table<'_>) -> Result<FillTemplate, Reported> {
    let amount = table
        .get("fill", |item| {
            if item.is_integer() {
                return item.u64().map(Amount::Blocks);
            }
            let text = item.str()?;
            if let Ok(ppm) = zonelab_config::units::parse_percent(text) {
                return Ok(Amount::Ppm(ppm));
            }
            item.size_bytes().map(Amount::Bytes)
        })
        .or(Amount::Bytes(0));
    let block_bytes = table
        .size_bytes("fill_block")
        .within(1..=1 << 31)
        .or(256 << 10);
    let open_first = table.bool("open_first").or(false);
    let settle = time(table, "settle", LONGEST).or(0);
    Ok(FillTemplate {
        amount: amount?,
        block_bytes: block_bytes?,
        open_first: open_first?,
        finish_first: false,
        settle: Nanos(settle?),
    })
}
