//! `zonelab ftl dump`.

use serde_json::{Map, Value, json};
use zonelab_ftl::durable::look::Purpose;
use zonelab_ftl::format::journal::JournalBlock;
use zonelab_ftl::{Durable, Look, MapChange};

use super::ground::Ground;
use super::{Said, state_name};
use crate::exit::Failure;

/// Options of `ftl dump`.
#[derive(clap::Args)]
pub(super) struct DumpArgs {
    /// The map: logical blocks that follow each other on the drive, too
    #[arg(long)]
    map: bool,
    /// Blocks of the journal that a mount repeats
    #[arg(long)]
    journal: bool,
    /// Zones of the drive
    #[arg(long)]
    zones: bool,
    /// Most lines of each
    #[arg(long, value_name = "N", default_value_t = u64::MAX, hide_default_value = true)]
    limit: u64,
}

impl DumpArgs {
    /// Whether a part is wanted: without any, all are.
    const fn wants(&self, part: bool) -> bool {
        part || !(self.map || self.journal || self.zones)
    }
}

/// A list as it is shown.
struct List {
    key: &'static str,
    title: String,
    lines: Vec<(String, Value)>,
    is_cut: bool,
}

impl List {
    fn new(
        key: &'static str,
        title: &str,
        lines: impl Iterator<Item = (String, Value)>,
        limit: u64,
    ) -> Self {
        let limit = usize::try_from(limit).unwrap_or(usize::MAX);
        let mut lines: Vec<_> = lines.take(limit.saturating_add(1)).collect();
        let is_cut = lines.len() > limit;
        lines.truncate(limit);
        Self {
            key,
            title: title.to_owned(),
            lines,
            is_cut,
        }
    }

    fn text(&self) -> String {
        let mut text = format!("{}\n", self.title);
        for (line, _) in &self.lines {
            text += &format!("  {line}\n");
        }
        if self.is_cut {
            text += "  ... (--limit)\n";
        }
        text
    }
}

pub(super) fn dump(mut ground: Ground, args: &DumpArgs) -> Result<Said, Failure> {
    let nsid = ground.nsid;
    let look = ground.ask(async move |io| Durable::look(&io, nsid).await);
    let look = ground.end(look)?;
    let mut lists = Vec::new();
    if args.wants(args.zones) {
        let title = "zone  use       state      written / capacity   valid";
        lists.push(List::new("zones", title, zones(&look), args.limit));
    }
    if args.wants(args.map) {
        let title = "logical blocks -> zone, block of the drive";
        let extents = look.extents().map(|extent| extent_line(&look, &extent));
        lists.push(List::new("map", title, extents, args.limit));
    }
    if args.wants(args.journal) {
        let title = "journal: block, commit, epoch, changes";
        let records = look.journal.iter().map(|record| record_line(&look, record));
        lists.push(List::new("journal", title, records, args.limit));
    }
    let text: Vec<String> = lists.iter().map(List::text).collect();
    let mut json = Map::new();
    json.insert("schema".to_owned(), json!(1));
    for list in lists {
        let values = list.lines.into_iter().map(|(_, value)| value).collect();
        json.insert(list.key.to_owned(), Value::Array(values));
    }
    Ok(Said::done(text.concat(), Value::Object(json)))
}

fn zones(look: &Look) -> impl Iterator<Item = (String, Value)> + '_ {
    let valid = look.valid_blocks();
    (0..).zip(&look.reported).map(move |(number, zone)| {
        let purpose = Purpose::of(&look.shape, number);
        let valid = match purpose {
            Purpose::Data(zone) => valid.get(zone.0 as usize).copied(),
            _ => None,
        };
        let (name, state) = (purpose.name(), state_name(zone.state));
        let written = format!("{} / {}", zone.written, zone.capacity);
        let shown = valid.map_or_else(String::new, |valid| valid.to_string());
        let line = format!("{number:>4}  {name:<8}  {state:<9}  {written:>18}  {shown:>6}");
        let value = json!({
            "zone": number, "use": name, "state": state, "written": zone.written,
            "capacity": zone.capacity, "valid": valid,
        });
        (line.trim_end().to_owned(), value)
    })
}

/// Logical blocks, as the first and how many.
fn blocks_text(change: &MapChange) -> String {
    let (first, last) = (change.first.0, change.first.0 + (change.count - 1));
    match change.count {
        1 => first.to_string(),
        _ => format!("{first} to {last}"),
    }
}

/// A run of the map, or a change of it.
fn extent_line(look: &Look, change: &MapChange) -> (String, Value) {
    let shape = &look.shape;
    let place = change.to.map(|to| {
        let (zone, _) = shape.place_of(to);
        (shape.zone_of(zone), shape.lba_of(to).0)
    });
    let blocks = blocks_text(change);
    let to = match place {
        Some((zone, lba)) => format!("zone {zone}, block {lba}"),
        None => "nowhere".to_owned(),
    };
    let value = json!({
        "logical": change.first.0, "count": change.count,
        "zone": place.map(|(zone, _)| zone), "lba": place.map(|(_, lba)| lba),
    });
    (format!("{blocks} -> {to}"), value)
}

fn record_line(look: &Look, record: &JournalBlock) -> (String, Value) {
    let changes: Vec<_> = record
        .changes
        .iter()
        .map(|of| extent_line(look, of))
        .collect();
    let mut line = format!(
        "{}, {}, {}, {}",
        record.sequence,
        record.commit,
        record.epoch,
        changes.len()
    );
    for (text, _) in &changes {
        line += &format!("\n    {text}");
    }
    let values: Vec<Value> = changes.into_iter().map(|(_, value)| value).collect();
    let value = json!({
        "sequence": record.sequence, "commit": record.commit, "epoch": record.epoch,
        "changes": values,
    });
    (line, value)
}
