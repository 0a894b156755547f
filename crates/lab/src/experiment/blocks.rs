//! Jobs on blocks, of namespaces that have no zones.

use std::ops::Range;

use zonelab_config::{Item, Reported, Table, units};
use zonelab_host::workload::distribution::Distribution;

/// A million parts per million.
const WHOLE: u32 = 1_000_000;

/// Reads or writes of the blocks of a conventional namespace.
#[derive(Clone, Debug, PartialEq)]
pub struct BlocksTemplate {
    /// Writes; else reads.
    pub is_write: bool,
    /// The part of the namespace that all threads of the job work on, in parts per
    /// million of its blocks.
    pub part_ppm: Range<u32>,
    /// How likely each place is; `None`: in order, each thread through a share of the part.
    pub distribution: Option<Distribution>,
    /// All threads together move so many times the size of the part; `None`: for as long
    /// as the job has time.
    pub passes: Option<u32>,
}

/// What a job does to blocks, if the table says `blocks`.
pub(super) fn blocks(table: &Table<'_>) -> Result<Option<BlocksTemplate>, Reported> {
    let Some(part_ppm) = table.get("blocks", part).optional()? else {
        return Ok(None);
    };
    let is_write = table
        .choice("work", &[("write", true), ("read", false)])
        .required();
    let random = table.bool("random").or(true);
    let passes = table.u32("passes").within(1..=1_000_000).optional();
    let distribution = match random? {
        true => Some(
            table
                .get("distribution", distribution)
                .or(Distribution::Uniform)?,
        ),
        false => {
            table.refuse("distribution", "only at random: random = true")?;
            None
        }
    };
    Ok(Some(BlocksTemplate {
        is_write: is_write?,
        part_ppm,
        distribution,
        passes: passes?,
    }))
}

/// `"0%..25%"`: from the first block to the end of the first quarter.
fn part(item: &Item<'_>) -> Result<Range<u32>, Reported> {
    let text = item.str()?;
    let part = text.split_once("..").and_then(|(first, end)| {
        let (first, end) = (units::parse_percent(first), units::parse_percent(end));
        let part = first.ok()?..end.ok()?;
        (!part.is_empty() && part.end <= WHOLE).then_some(part)
    });
    part.ok_or_else(|| {
        item.fail(
            format!("\"{text}\" is no part of a namespace"),
            "write \"0%..100%\" for all of it, \"0%..25%\" for its first quarter",
        )
    })
}

/// `"uniform"`, `"zipf:0.99"` or `"hot:20%:80%"`.
fn distribution(item: &Item<'_>) -> Result<Distribution, Reported> {
    let text = item.str()?;
    let share = |text: &str| Some(f64::from(units::parse_percent(text).ok()?) / 1e6);
    let parts: Vec<&str> = text.split(':').collect();
    let distribution = match parts[..] {
        ["uniform"] => Some(Distribution::Uniform),
        ["zipf", theta] => {
            let theta = theta.parse().ok();
            let theta = theta.filter(|theta| (0.01..=100.0).contains(theta));
            theta.map(|theta| Distribution::Zipf { theta })
        }
        ["hot", hot, operations] => {
            let hot = share(hot).filter(|hot| *hot > 0.0 && *hot < 1.0);
            hot.zip(share(operations))
                .map(|(hot, operations)| Distribution::HotCold { hot, operations })
        }
        _ => None,
    };
    distribution.ok_or_else(|| {
        item.fail(
            format!("\"{text}\" is no distribution"),
            "write \"uniform\", \"zipf:0.99\" (the exponent, 0.01 to 100) or \"hot:20%:80%\" \
             (a share of the blocks below 100 %, and of the operations that they get)",
        )
    })
}
