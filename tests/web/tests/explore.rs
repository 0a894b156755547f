//! The page of a sweep in a browser, beside what the sweep's summary says.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use anyhow::{Context, Result, ensure};
use serde_json::Value;
use zonelab_web_tests::{Page, View};

/// Points of the sweep.
const POINTS: usize = 24;
/// The example that the documents show.
const SWEEP: &str = "docs/examples/sweep-interference.toml";

/// A sweep that was run.
struct Sweep {
    page: PathBuf,
    summary: Value,
}

/// The sweep of all tests, run once.
fn sweep() -> &'static Sweep {
    static SWEPT: OnceLock<Sweep> = OnceLock::new();
    SWEPT.get_or_init(|| run().expect("the sweep runs"))
}

fn run() -> Result<Sweep> {
    let program = std::env::var("ZONELAB").context("ZONELAB names the program")?;
    let out = Path::new(env!("CARGO_TARGET_TMPDIR")).join("sweep");
    let points = POINTS.to_string();
    let output = Command::new(program)
        .current_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("../.."))
        .args(["sweep", SWEEP, "--quick", "--points", &points])
        .args(["--quiet", "--force", "--out"])
        .arg(&out)
        .output()?;
    ensure!(output.status.success(), "{output:?}");
    Ok(Sweep {
        summary: serde_json::from_slice(&std::fs::read(out.join("sweep.json"))?)?,
        page: out.join("sweep.html"),
    })
}

impl Sweep {
    fn points(&self) -> &[Value] {
        self.summary["points"].as_array().expect("there are points")
    }

    /// Places of the points on the front.
    fn front(&self) -> Vec<usize> {
        let numbered = self.points().iter().enumerate();
        let front = numbered.filter(|(_, point)| point["on_front"] == true);
        front.map(|(place, _)| place).collect()
    }

    /// The place of a key among the values of a point.
    fn key(&self, name: &str) -> usize {
        let keys = self.summary["keys"].as_array().expect("there are keys");
        let found = keys.iter().position(|key| key["name"] == name);
        found.expect("the sweep varies it")
    }

    fn open(&self, view: View) -> Result<Page> {
        let mut page = Page::open(&self.page, view)?;
        page.settle()?;
        Ok(page)
    }
}

/// The text of the first element of a selector.
fn text(page: &mut Page, selector: &str) -> Result<String> {
    let shown = page.eval(&format!("document.querySelector('{selector}').textContent"))?;
    Ok(shown.as_str().unwrap_or_default().to_owned())
}

/// The numbers of the points in the table, in its order.
fn listed(page: &mut Page) -> Result<Vec<usize>> {
    let rows = page.eval(
        "[...document.querySelectorAll('#runs tr[data-row]')].map((r) => Number(r.dataset.row))",
    )?;
    let rows = rows.as_array().context("no rows")?.iter();
    Ok(rows.filter_map(|n| Some(n.as_u64()? as usize)).collect())
}

#[test]
fn every_point_is_there_and_the_front_is_that_of_the_summary() -> Result<()> {
    let sweep = sweep();
    let mut page = sweep.open(View::DESK)?;
    assert_eq!(page.complaints(), [""; 0]);
    assert_eq!(page.requests(), [""; 0]);
    let front = sweep.front();
    let said = format!("{POINTS} of {POINTS} points, {} on the front", front.len());
    assert_eq!(text(&mut page, "#status")?, said);
    let order = listed(&mut page)?;
    let mut first = order[..front.len()].to_vec();
    first.sort_unstable();
    assert_eq!(first, front, "the front comes first");
    let mut all = order;
    all.sort_unstable();
    assert_eq!(all, (0..POINTS).collect::<Vec<_>>());
    page.screenshot(&sweep.page.with_extension("png"), None)?;
    Ok(())
}

#[test]
fn a_filter_keeps_what_fits_and_is_taken_back() -> Result<()> {
    let sweep = sweep();
    let mut page = sweep.open(View::DESK)?;
    page.eval("document.querySelector('#filters').open = true")?;
    let reset = sweep.key("reset");
    // Words stand in the order in which points have them: the first box is that of point 0.
    let word = &sweep.points()[0]["values"][reset];
    page.click(&format!("[data-filter=\"{reset}-0\"]"))?;
    let kept: Vec<usize> = (0..POINTS)
        .filter(|point| sweep.points()[*point]["values"][reset] != *word)
        .collect();
    let mut shown = listed(&mut page)?;
    shown.sort_unstable();
    assert_eq!(shown, kept);
    let begins = format!("{} of {POINTS} points", kept.len());
    assert!(text(&mut page, "#status")?.starts_with(&begins));
    // A field of numbers, on top.
    let rate = sweep.key("reads_per_s");
    page.eval(&format!(
        "(() => {{ const f = document.querySelector('[data-filter=\"{rate}-low\"]'); f.value = '2000'; \
         f.dispatchEvent(new Event('change')); }})()"
    ))?;
    let busy = |point: &&usize| {
        let rate = sweep.points()[**point]["values"][rate].as_str();
        rate.and_then(|text| text.parse::<u32>().ok()) >= Some(2000)
    };
    let both: Vec<usize> = kept.iter().filter(busy).copied().collect();
    let mut shown = listed(&mut page)?;
    shown.sort_unstable();
    assert_eq!(shown, both);
    page.click("#clear")?;
    assert_eq!(listed(&mut page)?.len(), POINTS);
    page.click("#only-front")?;
    assert_eq!(listed(&mut page)?.len(), sweep.front().len());
    assert_eq!(page.complaints(), [""; 0]);
    Ok(())
}

#[test]
fn a_point_leads_to_its_run_and_to_the_command_that_gives_it_again() -> Result<()> {
    let sweep = sweep();
    let mut page = sweep.open(View::DESK)?;
    page.click("#runs [data-point=\"7\"]")?;
    assert!(text(&mut page, "#run h3")?.starts_with("Point 7"));
    let command = text(&mut page, "#run code")?;
    assert!(command.starts_with("zonelab run finish-and-reset.toml --quick --set "));
    assert!(command.ends_with(" --seed 1"), "{command}");
    let point = &sweep.points()[7];
    for (name, key) in [
        ("granularity", "drive.finish.granularity"),
        ("reads_per_s", "job.0.rate_ops"),
    ] {
        let value = point["values"][sweep.key(name)]
            .as_str()
            .unwrap_or_default();
        assert!(
            command.contains(&format!("--set {key}={value}")),
            "{command}"
        );
    }
    // From the keyboard, in the plot: some point, and Enter.
    page.eval("document.querySelector('#scatter').focus()")?;
    page.press("ArrowRight")?;
    page.press("Enter")?;
    page.settle()?;
    let chosen = page.eval("document.querySelectorAll('#runs tr[aria-current]').length")?;
    assert_eq!(chosen, 1);
    assert_eq!(page.complaints(), [""; 0]);
    Ok(())
}

#[test]
fn the_command_of_a_point_gives_what_the_page_says() -> Result<()> {
    let sweep = sweep();
    let mut page = sweep.open(View::DESK)?;
    page.click("#runs [data-point=\"3\"]")?;
    let command = text(&mut page, "#run code")?;
    let program = std::env::var("ZONELAB")?;
    let line = command.replacen("zonelab", "\"$ZONELAB\"", 1);
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/examples");
    let out = Path::new(env!("CARGO_TARGET_TMPDIR")).join("point");
    let output = Command::new("sh")
        .current_dir(examples)
        .env("ZONELAB", program)
        .arg("-c")
        .arg(format!("{line} --json --force --out '{}'", out.display()))
        .output()?;
    ensure!(output.status.success(), "{output:?}");
    let rows: Value = serde_json::from_slice(&output.stdout)?;
    let rows = rows["rows"].as_array().context("no rows")?;
    let ours = rows.iter().find(|row| row["metric"] == "m_inter");
    let ours = ours.context("no interference")?["ours"].as_f64();
    let said = sweep.points()[3]["objectives"][0].as_f64();
    let (ours, said) = (ours.context("no value")?, said.context("no value")?);
    assert!((ours / said - 1.0).abs() < 1e-4, "{ours} beside {said}");
    Ok(())
}

#[test]
fn a_phone_shows_all_of_it_and_scripts_are_not_needed_for_the_front() -> Result<()> {
    let sweep = sweep();
    let mut page = sweep.open(View::PHONE)?;
    assert_eq!(page.eval("document.documentElement.scrollWidth")?, 360);
    assert_eq!(page.complaints(), [""; 0]);
    let mut page = Page::open_without_script(&sweep.page, View::DESK)?;
    let rows =
        page.eval("document.querySelectorAll('noscript table tbody tr, table tbody tr').length")?;
    assert_eq!(rows.as_u64(), Some(sweep.front().len() as u64));
    Ok(())
}
