//! Reports of made-up runs: names that try to break out, zone histories, many
//! resources.

use std::path::PathBuf;

use anyhow::{Context, Result};
use zonelab_config::{Errors, Override};
use zonelab_device::{Nanos, ZoneId};
use zonelab_lab::compare;
use zonelab_lab::conditions::Conditions;
use zonelab_lab::experiment::Experiment;
use zonelab_lab::published::References;
use zonelab_lab::rows::{Misfits, Scope, Summary};
use zonelab_lab::run::{self, DriveMeasured, PointResult, Profiles, RunOptions, ZoneHistory};
use zonelab_nvme::zns::ZoneState;
use zonelab_report::{PointSection, Report, Section};
use zonelab_ssd::account::Cause;
use zonelab_ssd::profile::{self, Profile};
use zonelab_ssd::record::ZoneRecord;
use zonelab_web_tests::{Page, View};

/// A name that ends scripts, comments and attributes, and would run.
const EVIL: &str = "</script><!--'\"><img src=x onerror=hacked()>&amp;${1}";

const EXPERIMENT: &str = r#"
# About @EVIL@
schema = 1
id = "made"
title = '''@EVIL@'''
source = '''@EVIL@'''
kind = "S"
profile = "confznspp"
[axis]
name = "depth"
values = [1, 4]
[[job]]
name = '''@EVIL@'''
work = "write"
threads = "$x"
zones = "0..=9"
block = "16KiB"
runtime = "1s"
ends_run = true
[[series]]
name = '''@EVIL@'''
jobs = ['''@EVIL@''']
[[series]]
name = "__proto__"
jobs = ['''@EVIL@''']
[[compare]]
job = '''@EVIL@'''
metrics = ["kiops"]
[figure]
job = '''@EVIL@'''
x = "axis"
y = "kiops"
"#;

struct Builtin;

impl Profiles for Builtin {
    fn load(&self, name: &str, overrides: &[Override]) -> Result<Profile, Errors> {
        Profile::load(name, overrides, |_| Err(std::io::Error::other("no files")))
    }
}

/// The file of a report of the made-up experiment, after `change` of its results.
fn report(name: &str, change: impl Fn(&mut PointResult)) -> Result<PathBuf> {
    let text = EXPERIMENT.replace("@EVIL@", EVIL);
    let experiment = Experiment::parse("made.toml", &text, &[], None)?;
    let points = run::points("made.toml", &text, &[])?;
    let options = RunOptions {
        seed: 1,
        profiles: &Builtin,
        conditions: &Conditions::default(),
        on_point: &|_, _| (),
        interrupted: &|| false,
        abandoned: &|| false,
    };
    let mut results = run::run(&points, &options)?
        .into_iter()
        .flatten()
        .collect::<Vec<_>>();
    results.iter_mut().for_each(change);
    let references = References::builtin()?;
    let figure = compare::figure(&experiment, &results, &references)?;
    let rows = compare::rows(&experiment, &results, &references)?;
    let misfits = Misfits::default();
    let summary = Summary::of(&rows, Scope::PART, &misfits);
    assert_eq!(rows.len(), 4);
    let point = |result| PointSection {
        result,
        drive: EVIL,
        command: EVIL.to_owned(),
    };
    let report = Report {
        title: EVIL.to_owned(),
        tool: EVIL,
        command: EVIL.to_owned(),
        seed: 1,
        notices: vec![EVIL.to_owned()],
        sections: vec![Section {
            matrix: None,
            differences: Vec::new(),
            experiment: &experiment,
            text: &text,
            command: EVIL.to_owned(),
            figure: figure.as_ref(),
            points: results.iter().map(point).collect(),
        }],
        rows: &rows,
        summary: &summary,
        misfits: &misfits,
    };
    let directory = PathBuf::from(env!("CARGO_TARGET_TMPDIR"));
    let file = directory.join(format!("{name}.html"));
    std::fs::write(&file, report.to_html()).context("cannot write the report")?;
    Ok(file)
}

/// What the drive of a point did.
fn drive(result: &mut PointResult) -> &mut DriveMeasured {
    result.drive.as_mut().expect("the drive is emulated")
}

fn record(at_ms: u64, zone: u32, from: ZoneState, to: ZoneState) -> ZoneRecord {
    ZoneRecord {
        at: Nanos::from_ms(at_ms),
        zone: ZoneId(zone),
        from,
        to,
        written_lbas: 0,
    }
}

#[test]
fn names_stay_names() -> Result<()> {
    assert!(profile::builtin("confznspp").is_some());
    let file = report("names", |_| ())?;
    let mut page = Page::open(&file, View::DESK)?;
    page.eval("document.querySelectorAll('details').forEach((d) => { d.open = true; })")?;
    page.settle()?;
    assert_eq!(page.complaints(), [""; 0]);
    assert_eq!(page.requests(), [""; 0]);
    assert_eq!(
        page.eval("document.querySelectorAll('img, script:not([id]) ~ script').length")?,
        0
    );
    assert_eq!(page.eval("document.title")?, EVIL);
    for selector in [
        "h1",
        "figure .legend .name",
        "#rows tbody td:nth-child(2)",
        ".inside .source",
    ] {
        let shown = page.eval(&format!("document.querySelector('{selector}').textContent"))?;
        assert_eq!(shown, EVIL, "{selector}");
    }
    assert_eq!(
        page.eval("document.querySelectorAll('figure g.series .dot').length")?,
        4
    );
    Ok(())
}

#[test]
fn zone_states_are_painted() -> Result<()> {
    use ZoneState as S;
    let history = ZoneHistory {
        records: vec![
            record(0, 3, S::EMPTY, S::IMPLICITLY_OPENED),
            record(250, 4, S::EMPTY, S::EXPLICITLY_OPENED),
            record(500, 3, S::IMPLICITLY_OPENED, S::FULL),
            record(750, 3, S::FULL, S::EMPTY),
        ],
        dropped: 12_345,
    };
    let file = report("zones", |result| {
        result.took = Nanos::from_ms(1_000);
        drive(result).zone_history = history.clone();
    })?;
    let mut page = Page::open(&file, View::DESK)?;
    page.click("details.point > summary")?;
    let painted = page.eval(
        "[...document.querySelectorAll('.zonemap rect')].map((r) => \
         `${r.getAttribute('class')} ${r.dataset.row}`).join(', ')",
    )?;
    assert_eq!(painted, "zI 0, zF 0, zE 0, zE 1, zX 1");
    let widths = page.eval(
        "(() => { const all = [...document.querySelectorAll('.zonemap rect')].map((r) => r.width.baseVal.value); \
         const row = all[0] + all[1] + all[2]; return all.map((w) => Math.round(w / row * 100)).join(' '); })()",
    )?;
    assert_eq!(widths, "50 25 25 25 75");
    page.hover(".zonemap rect.zF")?;
    let shown = page.eval("document.querySelector('.zonemap .tip').textContent")?;
    assert_eq!(shown, "zone 3: full500.0 ms to 750.0 ms");
    let dropped = page.eval("document.querySelector('.dropped').textContent")?;
    assert!(
        dropped
            .as_str()
            .is_some_and(|text| text.starts_with("12,345 later changes")),
        "{dropped}"
    );
    let legend = page.eval(
        "[...document.querySelectorAll('.zonemap ~ .legend .key')].map((k) => k.textContent).join(', ')",
    )?;
    page.screenshot(&file.with_extension("png"), Some(".zonemap"))?;
    assert_eq!(legend, "empty, implicitly opened, explicitly opened, full");
    assert_eq!(page.complaints(), [""; 0]);
    Ok(())
}

#[test]
fn many_resources_and_much_wear_stay_readable() -> Result<()> {
    let file = report("many", |result| {
        let of = drive(result);
        of.detail.units = (0..500)
            .map(|busy_ns| {
                let mut by_cause = [0; Cause::ALL.len()];
                by_cause[Cause::HostRead as usize] = busy_ns;
                by_cause[Cause::FinishFill as usize] = 1_000;
                by_cause
            })
            .collect();
        of.detail.erasures = (0..1_000)
            .map(|count| (count, u64::from(count % 7)))
            .collect();
        let zones = 0..2_000;
        of.zone_history.records = zones
            .map(|zone| {
                record(
                    u64::from(zone % 900),
                    zone,
                    ZoneState::EMPTY,
                    ZoneState::FULL,
                )
            })
            .collect();
    })?;
    let mut page = Page::open(&file, View::PHONE)?;
    page.eval("document.querySelector('details.point').open = true")?;
    page.settle()?;
    page.settle()?;
    let bars = page.eval("[...document.querySelectorAll('.bars')].map((b) => b.querySelectorAll('rect.idle').length).join(' ')")?;
    assert_eq!(bars, "4 63 0 0", "channels, groups of units, wear, zones");
    let last =
        page.eval("[...document.querySelectorAll('.bars')][1].querySelector('text').textContent")?;
    assert_eq!(last, "units 0–7");
    assert!(
        page.eval("document.querySelectorAll('rect.wear').length")?
            .as_u64()
            .is_some_and(|n| n <= 41)
    );
    let outside = page.eval(
        "[...document.querySelectorAll('main *')].filter((n) => !n.closest('.scroll, pre, svg') \
         && n.getBoundingClientRect().right > innerWidth + 0.5).map((n) => n.outerHTML.slice(0, 80))",
    )?;
    assert_eq!(outside.as_array().map(Vec::len), Some(0), "{outside:?}");
    assert_eq!(page.eval("document.documentElement.scrollWidth")?, 360);
    assert_eq!(page.complaints(), [""; 0]);
    Ok(())
}
