//! The playground: what it gives is what the command writes, and one can use it by hand, by
//! keyboard and on a telephone.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;
use zonelab_web_tests::{Page, Site, View};

/// Looks at the page before something is given up.
const LOOKS: u32 = 6_000;
/// Files of a directory of results that say how and where they were made.
const OF_THE_COMMAND: [&str; 3] = ["manifest.json", "report.html", "inputs.json"];
/// Milliseconds until the first curve of a page, with three times as many for a busy machine.
const FIRST_CURVE_MS: f64 = 6_000.0;

fn site() -> Result<Site> {
    let directory = std::env::var_os("ZONELAB_PLAYGROUND")
        .context("ZONELAB_PLAYGROUND names no playground: run `cargo xtask test web`")?;
    Site::serve(Path::new(&directory))
}

fn text(page: &mut Page, selector: &str) -> Result<String> {
    let name = serde_json::to_string(selector)?;
    let text = page.eval(&format!("document.querySelector({name})?.innerText ?? ''"))?;
    Ok(text.as_str().unwrap_or_default().to_owned())
}

/// Waits until an expression is true.
fn until(page: &mut Page, expression: &str) -> Result<()> {
    for _ in 0..LOOKS {
        if page.eval(expression)? == true {
            return Ok(());
        }
        page.settle()?;
    }
    let status = text(page, "#setup")?;
    bail!("{expression} never holds: {status}")
}

const DONE: &str = "document.querySelector('#status').innerText.startsWith('Done')";

/// Does something that makes the page run, and waits until that is done.
fn ran(page: &mut Page, action: &str) -> Result<()> {
    page.eval(&format!(
        "document.querySelector('#status').innerText = ''; {action}; null"
    ))?;
    until(page, DONE)
}

/// The result files that the page offers.
fn results(page: &mut Page) -> Result<BTreeMap<String, String>> {
    let files = page.eval(
        "new Promise((done) => dispatchEvent(new CustomEvent('zonelab-results', { detail: done }))) \
         .then((files) => Object.fromEntries(files))",
    )?;
    Ok(serde_json::from_value(files)?)
}

/// A directory that is removed at the end.
struct Scratch(PathBuf);

impl Scratch {
    fn new(name: &str) -> Result<Self> {
        let name = format!("zonelab-playground-{name}-{}", std::process::id());
        let path = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&path)?;
        Ok(Self(path))
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Gives the command that the page shows, with the files that it offers, and compares results.
fn equals_the_command(page: &mut Page, name: &str) -> Result<usize> {
    let ours = results(page)?;
    let scratch = Scratch::new(name)?;
    for editor in ["experiment", "drive"] {
        let text = page.eval(&format!("document.querySelector('#{editor}').value"))?;
        let path = scratch.0.join(format!("{editor}.toml"));
        std::fs::write(path, text.as_str().unwrap_or_default())?;
    }
    let shown = text(page, "#command")?;
    let program = std::env::var("ZONELAB").context("ZONELAB names no command")?;
    let line = shown.replacen("zonelab", &program, 1) + " --quiet --out out";
    let mut command = Command::new("sh");
    let output = command
        .args(["-c", &line])
        .current_dir(&scratch.0)
        .output()?;
    // 1: an expectation of a short run does not hold.
    ensure!(
        matches!(output.status.code(), Some(0 | 1)),
        "{line}: {output:?}"
    );
    let mut theirs = BTreeMap::new();
    for entry in std::fs::read_dir(scratch.0.join("out"))? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        if entry.file_type()?.is_file() && !OF_THE_COMMAND.contains(&name.as_str()) {
            theirs.insert(name, std::fs::read_to_string(entry.path())?);
        }
    }
    let names = |files: &BTreeMap<String, String>| files.keys().cloned().collect::<Vec<_>>();
    ensure!(
        names(&ours) == names(&theirs),
        "{:?}, {:?}",
        names(&ours),
        names(&theirs)
    );
    for (file, text) in &theirs {
        let differs = ours[file].lines().zip(text.lines()).find(|(a, b)| a != b);
        ensure!(ours[file] == *text, "{name}: {file} differs: {differs:?}");
    }
    let bytes = theirs.values().map(String::len).sum();
    println!(
        "{name}: {} files, {bytes} bytes equal those of `{shown}`",
        theirs.len()
    );
    Ok(bytes)
}

#[test]
fn every_starting_point_gives_the_bytes_of_the_command() -> Result<()> {
    let site = site()?;
    let mut page = Page::open_url(site.url(), View::DESK)?;
    until(&mut page, DONE)?;
    let first = page.eval("performance.getEntriesByName('first-curve')[0]?.startTime")?;
    let first = first.as_f64().context("there is no curve")?;
    println!("first curve after {first:.0} ms");
    ensure!(first < FIRST_CURVE_MS, "first curve after {first} ms");
    let starts =
        page.eval("[...document.querySelectorAll('#start option')].map((o) => o.value)")?;
    let starts: Vec<String> = serde_json::from_value(starts)?;
    ensure!(starts.len() >= 10, "{starts:?}");
    equals_the_command(&mut page, &starts[0])?;
    for start in &starts[1..] {
        let choose = format!(
            "document.querySelector('#start').value = '{start}'; \
             document.querySelector('#start').dispatchEvent(new Event('change'))"
        );
        ran(&mut page, &choose).with_context(|| start.clone())?;
        equals_the_command(&mut page, start)?;
    }
    ensure!(page.complaints().is_empty(), "{:?}", page.complaints());
    let outside: Vec<String> = page.requests();
    let is_own = |url: &&String| url.starts_with(site.url()) || url.starts_with("data:");
    let outside: Vec<_> = outside.iter().filter(|url| !is_own(url)).collect();
    ensure!(outside.is_empty(), "{outside:?}");
    Ok(())
}

/// Where the curve of the last series is drawn.
const CURVE: &str =
    "document.querySelector('#chart g[data-series=\"beside a finish\"] .line').getAttribute('d')";

#[test]
fn a_slider_moves_the_curve_by_keyboard_and_a_link_says_it_all() -> Result<()> {
    let site = site()?;
    let mut page = Page::open_url(site.url(), View::NIGHT)?;
    until(&mut page, DONE)?;
    let kiops = "document.querySelector('#table tbody tr:last-child td:last-child').textContent";
    page.eval(
        "document.querySelector('#y').value = 'kiops'; \
         document.querySelector('#y').dispatchEvent(new Event('change'))",
    )?;
    let (curve, before) = (page.eval(CURVE)?, page.eval(kiops)?);
    page.eval(
        "document.querySelector('#control-granularity').focus(); \
         document.querySelector('#status').innerText = ''; null",
    )?;
    page.press_number("ArrowLeft", 37)?;
    until(&mut page, DONE)?;
    let said = "document.querySelector('#control-granularity').getAttribute('aria-valuetext')";
    ensure!(page.eval(said)? == "128KiB", "{}", page.eval(said)?);
    let after = page.eval(kiops)?;
    ensure!(
        page.eval(CURVE)? != curve && after != before,
        "{before} {after}"
    );
    let number = |value: &Value| value.as_str().and_then(|text| text.parse::<f64>().ok());
    // Smaller device writes leave the reads more.
    ensure!(number(&after) > number(&before), "{before} {after}");
    let kept = page.eval("document.querySelectorAll('#chart .before').length")?;
    ensure!(kept == 2, "{kept} lines of the run before");
    equals_the_command(&mut page, "slider")?;
    let command = text(&mut page, "#command")?;
    ensure!(
        command.contains("drive.finish.granularity=128KiB"),
        "{command}"
    );
    // Somebody else opens the link.
    let link = page.eval("location.href")?;
    let link = link.as_str().context("there is no link")?;
    let mut other = Page::open_url(link, View::DESK)?;
    until(&mut other, DONE)?;
    ensure!(text(&mut other, "#command")? == command);
    ensure!(other.eval(said)? == "128KiB" && other.eval(kiops)? != before);
    ensure!(results(&mut other)? == results(&mut page)?);
    ensure!(page.complaints().is_empty(), "{:?}", page.complaints());
    Ok(())
}

#[test]
fn what_is_wrong_is_said_with_its_line_and_own_files_run() -> Result<()> {
    let site = site()?;
    let mut page = Page::open_url(site.url(), View::DESK)?;
    until(&mut page, DONE)?;
    let edit = |from: &str, to: &str| {
        format!(
            "const e = document.querySelector('#experiment'); e.value = e.value.replace('{from}', '{to}'); \
             e.dispatchEvent(new Event('input'))"
        )
    };
    let wrong = edit("work = \"read\"", "work = \"reed\"");
    page.eval(&format!("{{ {wrong} }} null"))?;
    until(
        &mut page,
        "document.querySelectorAll('#problems p').length > 0",
    )?;
    let problem = text(&mut page, "#problems")?;
    ensure!(
        problem.contains("experiment.toml:") && problem.contains("reed"),
        "{problem}"
    );
    page.click("#problems button")?;
    let selected = page.eval(
        "(() => { const e = document.querySelector('#experiment'); \
         return e.value.slice(e.selectionStart, e.selectionEnd); })()",
    )?;
    ensure!(
        selected.as_str().is_some_and(|line| line.contains("reed")),
        "{selected}"
    );
    let mended = edit("work = \"reed\"", "work = \"read\"");
    ran(&mut page, &format!("{{ {mended} }}"))?;
    ensure!(text(&mut page, "#problems")?.is_empty());
    // A drive of one's own, in place of that of the experiment.
    ran(
        &mut page,
        "{ const d = document.querySelector('#drive'); \
         d.value = d.value.replace(/program = \"700us\"/, 'program = \"900us\"'); \
         d.dispatchEvent(new Event('input')) }",
    )?;
    let command = text(&mut page, "#command")?;
    ensure!(command.contains("profile=drive.toml"), "{command}");
    equals_the_command(&mut page, "own")?;
    // The parts of the drive that were busy, and its zones.
    ensure!(page.eval("document.querySelectorAll('#timeline .b0').length > 0")? == true);
    ensure!(text(&mut page, "#states")?.contains("full"));
    page.eval("document.querySelector('#zones button').focus()")?;
    page.press("ArrowRight")?;
    ensure!(text(&mut page, "#zone")?.starts_with("Zone 1:"));
    // What runs can be stopped, and there is no more of it.
    page.eval("document.querySelector('#run').click(); document.querySelector('#stop').click()")?;
    ensure!(text(&mut page, "#status")? == "Stopped");
    ensure!(page.complaints().is_empty(), "{:?}", page.complaints());
    Ok(())
}

#[test]
fn it_fits_a_telephone_and_every_control_has_a_name() -> Result<()> {
    let site = site()?;
    for dark in [false, true] {
        let view = View {
            width: 390,
            dark,
            ..View::PHONE
        };
        let mut page = Page::open_url(site.url(), view)?;
        until(&mut page, DONE)?;
        page.eval("document.querySelectorAll('details').forEach((d) => { d.open = true; })")?;
        page.settle()?;
        let width = page.eval("document.documentElement.scrollWidth")?;
        ensure!(width == 390, "{width} pixels");
        let outside = page.eval(
            "[...document.querySelectorAll('main *')].filter((n) => \
             !n.closest('.scroll, svg, textarea, select') \
             && n.getBoundingClientRect().right > innerWidth + 0.5).map((n) => n.outerHTML.slice(0, 90))",
        )?;
        ensure!(outside == Value::Array(Vec::new()), "{outside}");
        let nameless = page.eval(
            "[...document.querySelectorAll('input, select, textarea, button, progress')].filter((n) => \
             !n.labels?.length && !n.getAttribute('aria-label') && !n.innerText?.trim()) \
             .map((n) => n.outerHTML.slice(0, 90))",
        )?;
        ensure!(nameless == Value::Array(Vec::new()), "{nameless}");
        if let Some(directory) = std::env::var_os("ZONELAB_REPORT").map(PathBuf::from) {
            let name = format!("playground-390-{}.png", if dark { "dark" } else { "light" });
            page.screenshot(&directory.join(name), Some("main"))?;
        }
        ensure!(page.complaints().is_empty(), "{:?}", page.complaints());
    }
    let mut page = Page::open_url(site.url(), View::DESK)?;
    until(&mut page, DONE)?;
    if let Some(directory) = std::env::var_os("ZONELAB_REPORT").map(PathBuf::from) {
        page.screenshot(&directory.join("playground.png"), Some("main"))?;
    }
    Ok(())
}
