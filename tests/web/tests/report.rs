//! The report in a browser: what a reader sees, and what happens on a click.
//!
//! `cargo xtask test web` makes the report of `reproduce --quick` first and
//! names its directory in `ZONELAB_REPORT`. Pictures of it are left beside it.

mod support;

use std::collections::BTreeSet;

use anyhow::{Context as _, Result};
use serde_json::Value;
use support::{Results, digits, error, unspaced};
use zonelab_web_tests::{Page, View};

/// Selector of our mark `n` (from 0) of a series in the figure of an experiment.
fn dot(page: &mut Page, id: &str, series: &str, n: usize) -> Result<String> {
    // Numbered by hand: `:nth-of-type` would count hollow marks too.
    let script = format!(
        "document.querySelectorAll('.figure[data-experiment=\"{id}\"] g.series').forEach((g) => \
         g.querySelectorAll('.dot').forEach((d, n) => {{ d.dataset.n = n; }}))"
    );
    page.eval(&script)?;
    Ok(format!(
        ".figure[data-experiment='{id}'] g[data-series='{series}'] .dot[data-n='{n}']"
    ))
}

fn tip(page: &mut Page, id: &str) -> Result<String> {
    let script = format!(
        "(() => {{ const t = document.querySelector(\".figure[data-experiment='{id}'] .tip\"); \
         return t.hidden ? '' : t.innerText; }})()"
    );
    Ok(page.eval(&script)?.as_str().unwrap_or_default().to_owned())
}

fn count(page: &mut Page, selector: &str) -> Result<u64> {
    let name = serde_json::to_string(selector)?;
    let many = page.eval(&format!("document.querySelectorAll({name}).length"))?;
    Ok(many.as_u64().unwrap_or_default())
}

/// The text of the first element of a selector; empty if there is none.
fn text(page: &mut Page, selector: &str) -> Result<String> {
    let name = serde_json::to_string(selector)?;
    let text = page.eval(&format!("document.querySelector({name})?.innerText ?? ''"))?;
    Ok(text.as_str().unwrap_or_default().to_owned())
}

/// Opens what is inside every run, and every explanation.
fn open_everything(page: &mut Page) -> Result<()> {
    page.eval("document.querySelectorAll('details').forEach((d) => { d.open = true; })")?;
    page.settle()?;
    page.eval("document.querySelectorAll('details').forEach((d) => { d.open = true; })")?;
    page.eval("document.querySelectorAll('#rows .open').forEach((b) => b.click())")?;
    page.settle()
}

#[test]
fn every_figure_is_drawn_and_nothing_is_fetched() -> Result<()> {
    let results = Results::load()?;
    let mut page = Page::open(&results.report(), View::DESK)?;
    assert_eq!(page.complaints(), [""; 0]);
    assert_eq!(page.requests(), [""; 0]);
    let figures = results.figures()?;
    assert!(!figures.is_empty());
    assert_eq!(
        count(&mut page, "figure.still")?,
        0,
        "each replaced by a drawing"
    );
    let mut panels_of_all = 0;
    for id in figures {
        let figure = format!(".figure[data-experiment='{id}']");
        let svg = std::fs::read_to_string(results.file(&format!("{id}.svg")))?;
        let panels = svg.matches("class=\"frame\"").count() as u64;
        assert_eq!(
            count(&mut page, &figure)?,
            panels,
            "{id}: all of its panels"
        );
        panels_of_all += panels;
        let dots =
            count(&mut page, &format!("{figure} .dot"))? - samples(&mut page, &figure, "dot")?;
        let drawn = svg.matches("(zonelab): ").count() as u64;
        assert_eq!(dots, drawn, "{id}: as many as in the static figure");
        // Of several panels some draw percentiles, and a point that is measured for
        // a statement alone may have no place in the figure.
        if panels == 1 {
            assert!(dots <= results.points_of(&id).count() as u64, "{id}");
        }
        let published = svg.matches("(published): ").count() as u64;
        let rings =
            count(&mut page, &format!("{figure} .ring"))? - samples(&mut page, &figure, "ring")?;
        assert_eq!(rings, published, "{id}: as many as in the static figure");
        let series = results.series_of(&id);
        assert_eq!(
            count(&mut page, &format!("{figure} g.series"))?,
            series.len() as u64 * panels
        );
        assert_eq!(
            count(&mut page, &format!("{figure} .legend button"))?,
            series.len() as u64 * panels
        );
        assert!(
            count(&mut page, &format!("{figure} .chart .tick"))? >= 4,
            "{id} has axes"
        );
    }
    assert_eq!(count(&mut page, "figure.figure")?, panels_of_all);
    assert_eq!(
        count(&mut page, "section.experiment")?,
        results.experiments().len() as u64
    );
    page.screenshot(&results.file("desk.png"), None)
}

/// Marks in the legend of a figure, which are no data.
fn samples(page: &mut Page, figure: &str, class: &str) -> Result<u64> {
    count(page, &format!("{figure} .legend .{class}"))
}

#[test]
fn the_pointer_shows_the_numbers_of_the_result_files() -> Result<()> {
    let results = Results::load()?;
    let mut page = Page::open(&results.report(), View::DESK)?;
    for (series, job, x, n) in [
        ("no finish", "read alone", "64", 6),
        ("16 KiB", "read", "8", 3),
        ("256 KiB", "read", "64", 6),
        ("256 KiB, dynamic", "read", "32", 5),
    ] {
        let selector = dot(&mut page, "C10b", series, n)?;
        page.hover(&selector)?;
        let shown = tip(&mut page, "C10b")?;
        let point = results.point("C10b", series, x);
        let metrics = &support::job(point, job)["metrics"];
        let words: Vec<&str> = shown.split_whitespace().collect();
        let shows = |what: &str| unspaced(&shown).contains(&unspaced(what));
        assert!(
            shows(series) && shows(&format!("concurrency {x}")),
            "{shown}"
        );
        for metric in ["kiops", "lat_p95_us"] {
            let ours = digits(&metrics[metric]);
            assert!(words.contains(&&*ours), "{series} {x}: {ours} in {shown}");
            let row = results.row("C10b", series, x, metric);
            if let Some(published) = row["published"].as_f64() {
                let published = digits(&published.into());
                assert!(words.contains(&&*published), "{published} in {shown}");
                assert!(shows(&error(&row["rel_error"])), "{row} in {shown}");
            } else {
                assert!(words.contains(&"–"), "nothing was published: {shown}");
            }
        }
    }
    page.screenshot(&results.file("pointer.png"), None)?;
    page.eval("scrollTo(0, 0)")?;
    page.hover("h1")?;
    assert_eq!(
        tip(&mut page, "C10b")?,
        "",
        "it goes when the pointer leaves"
    );
    assert_eq!(page.complaints(), [""; 0]);
    Ok(())
}

#[test]
fn the_keyboard_goes_from_point_to_point() -> Result<()> {
    let results = Results::load()?;
    let mut page = Page::open(&results.report(), View::DESK)?;
    page.eval("document.querySelector(\".figure[data-experiment='C10b'] .chart > svg\").focus()")?;
    let mut seen = Vec::new();
    for key in [
        "ArrowRight",
        "ArrowRight",
        "ArrowDown",
        "ArrowLeft",
        "ArrowUp",
    ] {
        page.press(key)?;
        let shown = tip(&mut page, "C10b")?;
        seen.push(shown.lines().take(2).collect::<Vec<_>>().join(", "));
    }
    let expected = [
        "no finish, concurrency 1",
        "no finish, concurrency 2",
        "16 KiB, concurrency 2",
        "16 KiB, concurrency 1",
        "no finish, concurrency 1",
    ];
    assert_eq!(seen, expected);
    page.press("Enter")?;
    let details = text(
        &mut page,
        "section.experiment:has([data-experiment='C10b']) details.point",
    )?;
    assert!(
        details.contains("Where the time of the flash went"),
        "{details}"
    );
    page.press("Escape")?;
    assert_eq!(tip(&mut page, "C10b")?, "");
    Ok(())
}

#[test]
fn axes_and_series_can_be_switched() -> Result<()> {
    let results = Results::load()?;
    let mut page = Page::open(&results.report(), View::DESK)?;
    let figure = ".figure[data-experiment='C10b']";
    let ticks = "[...document.querySelectorAll(\".figure[data-experiment='C10b'] .chart .tick\")]\
                 .map((t) => t.textContent).join(' ')";
    let before = page.eval(ticks)?;
    page.click(&format!("{figure} input[data-axis=y]"))?;
    let linear = page.eval(ticks)?;
    assert_ne!(before, linear);
    assert!(
        linear.as_str().unwrap_or_default().contains("0 10 20"),
        "{linear}"
    );
    page.click(&format!("{figure} input[data-axis=x]"))?;
    assert_ne!(page.eval(ticks)?, linear);

    let button = format!("{figure} .legend button[data-series='256 KiB']");
    let group = format!("{figure} g[data-series='256 KiB']");
    assert_eq!(count(&mut page, &group)?, 1);
    page.click(&button)?;
    assert_eq!(count(&mut page, &group)?, 0);
    let others = results.series_of("C10b").len() as u64 - 1;
    assert_eq!(count(&mut page, &format!("{figure} g.series"))?, others);
    page.click(&button)?;
    assert_eq!(count(&mut page, &group)?, 1);
    assert_eq!(page.complaints(), [""; 0]);
    Ok(())
}

#[test]
fn rows_are_sorted_filtered_and_explained() -> Result<()> {
    let results = Results::load()?;
    let mut page = Page::open(&results.report(), View::DESK)?;
    let rows = results.rows();
    let visible = "#rows tbody tr[data-row]";
    assert_eq!(count(&mut page, visible)?, rows.len() as u64);

    // By error, the greatest first.
    let error_head = "#rows th:nth-child(8) button";
    page.click(error_head)?;
    page.click(error_head)?;
    let shown = page.eval(
        "[...document.querySelectorAll('#rows tbody tr[data-row]')].map((r) => r.cells[7].innerText)",
    )?;
    let shown: Vec<&str> = shown
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect();
    let mut errors: Vec<f64> = rows
        .iter()
        .filter_map(|row| row["rel_error"].as_f64())
        .collect();
    errors.sort_by(|a, b| b.abs().total_cmp(&a.abs()));
    assert_eq!(shown.len(), rows.len());
    for (cell, expected) in shown.iter().zip(&errors) {
        assert_eq!(
            unspaced(cell).trim_start_matches(['+', '−']),
            unspaced(&error(&expected.abs().into())).trim_start_matches('+')
        );
    }
    assert!(
        shown[errors.len()..].iter().all(|cell| *cell == "–"),
        "rows without an error are last"
    );
    page.click(error_head)?;
    let first = page.eval("document.querySelector('#rows tbody tr').dataset.row")?;
    assert_eq!(first, "0", "and a third time in their own order");

    // By words.
    page.click("#rows input[type=search]")?;
    page.type_text("c10b KIOPS 64")?;
    let matching = rows.iter().filter(|row| {
        row["id"] == "C10b"
            && row["metric"] == "kiops"
            && (row["x"] == 64.0 || row["series"].as_str().is_some_and(|s| s.contains("64")))
    });
    assert_eq!(count(&mut page, visible)?, matching.count() as u64);
    page.eval("(() => { const s = document.querySelector('#rows input[type=search]'); s.value = ''; s.dispatchEvent(new Event('input')); })()")?;

    // By status.
    let verdicts = rows.iter().filter_map(|row| row["verdict"].as_str());
    let others: BTreeSet<&str> = verdicts.filter(|verdict| *verdict != "MISFIT").collect();
    for verdict in others {
        let status = verdict.to_lowercase();
        page.click(&format!("#rows input[value={status}]"))?;
    }
    let is_misfit = |row: &&Value| row["verdict"] == "MISFIT";
    let misfits: Vec<_> = rows.iter().filter(is_misfit).collect();
    assert!(!misfits.is_empty());
    assert_eq!(count(&mut page, visible)?, misfits.len() as u64);
    let button = "#rows tbody tr[data-status=misfit] button";
    assert_eq!(text(&mut page, "#rows tr.why:not([hidden])")?, "");
    page.click(button)?;
    let why = text(&mut page, "#rows tr.why:not([hidden])")?;
    let misfit = misfits[0]["reason"].as_str().unwrap_or_default();
    let cause = unspaced(&format!("Cause: {misfit}"));
    assert!(unspaced(&why).starts_with(&cause), "{why}");
    page.click(button)?;
    assert_eq!(text(&mut page, "#rows tr.why:not([hidden])")?, "");
    assert_eq!(page.complaints(), [""; 0]);
    Ok(())
}

#[test]
fn a_matrix_has_a_heat_map_and_says_why() -> Result<()> {
    let results = Results::load()?;
    let mut page = Page::open(&results.report(), View::DESK)?;
    let ids = results.matrices()?;
    assert!(!ids.is_empty());
    for id in ids {
        let matrix = format!("section.experiment figure.matrix[data-experiment='{id}']");
        let file = results.file(&format!("{id}-matrix.json"));
        let of_file: Value = serde_json::from_str(&std::fs::read_to_string(file)?)?;
        let cells = of_file["matrix"]["cells"].as_array().map_or(0, Vec::len) as u64;
        assert!(cells > 0, "{id}");
        assert_eq!(
            count(&mut page, &format!("{matrix} tbody tr"))?,
            cells,
            "{id}"
        );
        let script = format!("document.querySelector(\"{matrix} svg\").textContent");
        let drawn = page.eval(&script)?;
        let drawn = drawn.as_str().unwrap_or_default();
        for cell in of_file["matrix"]["cells"].as_array().into_iter().flatten() {
            let name = cell["foreground"].as_str().unwrap_or_default();
            assert!(drawn.contains(name), "{name} in {drawn}");
        }
    }
    Ok(())
}

#[test]
fn real_drives_are_summed_up() -> Result<()> {
    let results = Results::load()?;
    let mut page = Page::open(&results.report(), View::DESK)?;
    let head = unspaced(&text(&mut page, "#head")?);
    let summary = results.summary();
    let bars = summary["drive"]["bars"].as_array();
    let bars = bars.context("there are rows of a real drive")?;
    assert_eq!(bars.len(), 4, "two of each group");
    for bar in bars {
        let value = bar["value"].as_f64().unwrap_or(f64::NAN);
        let says = bar["says"].as_str().unwrap_or_default();
        assert!(head.contains(&unspaced(says)), "{says} in {head}");
        let shown = unspaced(&format!("{:.1} %", value * 100.0));
        assert!(head.contains(&shown), "{says}: {shown} in {head}");
    }
    Ok(())
}

#[test]
fn a_point_shows_where_its_time_went() -> Result<()> {
    let results = Results::load()?;
    let mut page = Page::open(&results.report(), View::DESK)?;
    let section = "section.experiment:has([data-experiment='C10b']) details.point";
    assert_eq!(
        count(&mut page, &format!("{section} .inside"))?,
        0,
        "nothing is drawn unseen"
    );
    let selector = dot(&mut page, "C10b", "16 KiB", 3)?;
    page.click(&selector)?;
    assert_eq!(count(&mut page, &format!("{section}[open] .inside"))?, 1);
    let chosen = page.eval(&format!(
        "[...document.querySelectorAll(\"{section} select\")].map((s) => s.selectedOptions[0].text).join(', ')"
    ))?;
    assert_eq!(chosen, "16 KiB, 8");

    let drive = &results.point("C10b", "16 KiB", "8")["drive"];
    let of = |name: &str| drive[name].as_f64().unwrap_or_default();
    let idle = count(&mut page, &format!("{section} .bars rect.idle"))?;
    assert_eq!(
        idle as f64,
        of("channels") + of("units"),
        "a bar for each resource"
    );
    let mut lines = Vec::new();
    for (cause, channel_ns) in drive["channel_busy_ns"].as_object().into_iter().flatten() {
        let share = |ns: f64, many: &str| ns / (of("simulated_ns") * of(many)) * 100.0;
        let unit_ns = drive["unit_busy_ns"][cause].as_f64().unwrap_or_default();
        let channel_ns = channel_ns.as_f64().unwrap_or_default();
        if channel_ns + unit_ns > 0.0 {
            let shown = |percent: f64| match percent {
                p if p > 0.0 && p < 0.01 => "< 0.01 %".to_owned(),
                p => format!("{p:.2} %"),
            };
            let line = format!(
                "{cause} {} {}",
                shown(share(channel_ns, "channels")),
                shown(share(unit_ns, "units"))
            );
            lines.push(unspaced(&line));
        }
    }
    let table = unspaced(&text(&mut page, &format!("{section} .causes"))?);
    assert!(lines.len() >= 2, "reads beside finishes");
    for line in lines {
        assert!(table.contains(&line), "{line} in {table}");
    }

    let inside = text(&mut page, section)?;
    assert!(
        inside.contains("zonelab run C10b --set 'axis.values=[8]' --quick --seed 1"),
        "{inside}"
    );
    let latency = format!("{section} .parts > div:nth-child(3) polyline.line");
    assert!(
        count(&mut page, &latency)? >= 1,
        "the distribution of reads"
    );
    let throughput = format!("{section} .parts > div:nth-child(4) polyline.line");
    assert!(count(&mut page, &throughput)? >= 1);
    page.click(&format!("{section} .inside details summary"))?;
    let toml = text(
        &mut page,
        &format!("{section} .inside details[open] .source"),
    )?;
    assert!(toml.contains("granularity = \"16KiB\""), "{toml}");

    // Another series at the same axis value.
    page.eval(&format!(
        "(() => {{ const s = document.querySelector(\"{section} select\"); s.selectedIndex = 0; \
         s.dispatchEvent(new Event('change')); }})()"
    ))?;
    page.settle()?;
    let table = text(&mut page, &format!("{section} .causes"))?;
    assert!(!table.contains("finish-fill"), "{table}");
    assert_eq!(page.complaints(), [""; 0]);
    page.screenshot(&results.file("point.png"), Some(section))
}

#[test]
fn every_point_can_be_looked_into() -> Result<()> {
    let results = Results::load()?;
    let mut page = Page::open(&results.report(), View::DESK)?;
    open_everything(&mut page)?;
    let script = "(() => { let n = 0; document.querySelectorAll('details.point').forEach((d) => { \
                  const [series, value] = d.querySelectorAll('select'); \
                  for (const s of series.options) { series.value = s.value; series.dispatchEvent(new Event('change')); \
                  for (const v of [...value.options]) { value.value = v.value; value.dispatchEvent(new Event('change')); \
                  n += d.querySelectorAll('.inside').length; } } }); return n; })()";
    let seen = page.eval(script)?;
    assert_eq!(seen.as_u64(), Some(results.points().len() as u64));
    page.settle()?;
    assert_eq!(page.complaints(), [""; 0]);
    assert_eq!(text(&mut page, "body")?.matches("NaN").count(), 0);
    assert_eq!(text(&mut page, "body")?.matches("undefined").count(), 0);
    assert_eq!(text(&mut page, "body")?.matches("[object").count(), 0);
    Ok(())
}

#[test]
fn a_telephone_shows_it_without_scrolling_sideways() -> Result<()> {
    let results = Results::load()?;
    let mut page = Page::open(&results.report(), View::PHONE)?;
    let width = "document.documentElement.scrollWidth";
    assert_eq!(page.eval(width)?, 360);
    page.screenshot(&results.file("phone.png"), None)?;
    open_everything(&mut page)?;
    assert_eq!(page.eval(width)?, 360, "with everything open");
    let outside = page.eval(
        "[...document.querySelectorAll('main *')].filter((n) => !n.closest('.scroll, .matrix, pre, svg') \
         && n.getBoundingClientRect().right > innerWidth + 0.5).map((n) => n.outerHTML.slice(0, 80))",
    )?;
    assert_eq!(outside, Value::Array(Vec::new()));
    let selector = dot(&mut page, "C10b", "16 KiB", 3)?;
    page.hover(&selector)?;
    assert!(!tip(&mut page, "C10b")?.is_empty());
    assert_eq!(page.eval(width)?, 360, "with a tooltip");
    page.screenshot(&results.file("phone-pointer.png"), None)?;
    assert_eq!(page.complaints(), [""; 0]);
    Ok(())
}

#[test]
fn a_finger_looks_first_and_chooses_next() -> Result<()> {
    let results = Results::load()?;
    let mut page = Page::open(&results.report(), View::PHONE)?;
    let selector = dot(&mut page, "C10b", "no finish", 6)?;
    let opened = "section.experiment:has([data-experiment='C10b']) details.point[open]";
    page.tap(&selector)?;
    assert!(tip(&mut page, "C10b")?.contains("concurrency 64"));
    assert_eq!(count(&mut page, opened)?, 0, "the first tap only shows");
    page.tap(&selector)?;
    assert_eq!(count(&mut page, opened)?, 1);
    Ok(())
}

#[test]
fn dark_pages_are_dark() -> Result<()> {
    let results = Results::load()?;
    let colours = "(() => { const of = (s, p) => getComputedStyle(document.querySelector(s))[p]; return \
                   [of('body', 'backgroundColor'), of('body', 'color'), of('g.series', 'color'), \
                   of('.chart .tick', 'fill')]; })()";
    let mut light = Page::open(&results.report(), View::DESK)?;
    let mut dark = Page::open(&results.report(), View::NIGHT)?;
    let (light, shown) = (light.eval(colours)?, dark.eval(colours)?);
    assert_eq!(light[0], "rgb(255, 255, 255)");
    assert_eq!(shown[0], "rgb(22, 24, 28)");
    for n in 0..4 {
        assert_ne!(light[n], shown[n], "{n}");
    }
    assert_eq!(dark.complaints(), [""; 0]);
    dark.screenshot(&results.file("night.png"), None)
}

#[test]
fn without_script_the_figures_stay() -> Result<()> {
    let results = Results::load()?;
    let mut page = Page::open_without_script(&results.report(), View::DESK)?;
    let stills = results.figures()?.len() as u64;
    assert_eq!(count(&mut page, "figure.still svg.zl")?, stills);
    assert!(text(&mut page, "noscript")?.contains("rows.csv"));
    page.screenshot(&results.file("without-script.png"), None)
}

#[test]
fn on_paper_there_is_nothing_to_press() -> Result<()> {
    let results = Results::load()?;
    let mut page = Page::open(&results.report(), View::DESK)?;
    page.print_media()?;
    let pressed = page.eval(
        "[...document.querySelectorAll('.tools, button.plain, .tip')].filter((n) => n.offsetParent).length",
    )?;
    assert_eq!(pressed, 0);
    let cut = page.eval("(() => { const s = document.querySelector('#rows .scroll'); return s.scrollHeight - s.clientHeight; })()")?;
    assert!(
        cut.as_f64().is_some_and(|cut| cut <= 1.0),
        "the whole table: {cut}"
    );
    Ok(())
}
