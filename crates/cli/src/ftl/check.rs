//! `zonelab ftl check`.

use serde_json::{Value, json};
use zonelab_ftl::check::{Finding, Report};

use super::Said;
use super::ground::Ground;
use crate::exit::{Exit, Failure};

pub(super) fn check(mut ground: Ground) -> Result<Said, Failure> {
    let nsid = ground.nsid;
    let report = ground.ask(async move |io| zonelab_ftl::check::check(&io, nsid).await);
    let name = ground.name.clone();
    let report = ground.end(report)?;
    Ok(Said {
        text: text(&name, &report),
        json: as_json(&name, &report),
        exit: match report.findings.is_empty() {
            true => Exit::Done,
            false => Exit::InvalidInput,
        },
    })
}

fn text(name: &str, report: &Report) -> String {
    let mut text = match &report.facts {
        Some(facts) => format!(
            "{name}: checkpoint {}, journal blocks {} to {}; blocks in the map: {}; footers \
             compared: {}; zones closed without a footer: {}\n",
            facts.checkpoint,
            facts.journal_start,
            facts.journal_next,
            report.mapped_blocks,
            report.footers,
            report.without_footer,
        ),
        None => format!("{name}: the metadata are damaged, so the map was not checked\n"),
    };
    for finding in &report.findings {
        text += &format!("  {finding}\n");
    }
    if report.findings.is_empty() {
        text += "It is sound.\n";
    }
    text
}

pub(super) fn finding_json(finding: &Finding) -> Value {
    let place = finding.place();
    json!({
        "zone": place.map(|(zone, _)| zone), "lba": place.map(|(_, lba)| lba),
        "what": finding.to_string(),
    })
}

fn as_json(name: &str, report: &Report) -> Value {
    json!({
        "schema": 1, "device": name, "is_sound": report.findings.is_empty(),
        "is_map_checked": report.facts.is_some(),
        "mapped_blocks": report.mapped_blocks, "footers": report.footers,
        "zones_without_footer": report.without_footer,
        "findings": report.findings.iter().map(finding_json).collect::<Vec<_>>(),
    })
}
