//! The page of `zonelab serve`, in a browser, while a host uses the drive.
//!
//! `cargo xtask test web` builds the program first and names it in `ZONELAB`.

use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;
use zonelab_web_tests::{Page, View};

/// The drive: 64 zones of 16 MiB, 10 open and 12 active, blocks of 4 KiB, 8 dies.
const PROFILE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/examples/live.toml");
/// How often a condition is looked at, some thirty times a second.
const LOOKS: u32 = 1000;
/// 25 blocks.
const BYTES: usize = 25 * 4096;

fn program() -> Result<PathBuf> {
    let program = std::env::var_os("ZONELAB").map(PathBuf::from);
    program.context("ZONELAB is to name the program: cargo xtask test web")
}

/// A drive that is served, and ends with this value.
struct Served {
    process: Child,
    url: String,
    web: String,
    data: PathBuf,
}

impl Served {
    fn start(web: &str) -> Result<Self> {
        Self::start_with(web, &[])
    }

    /// The same with more options.
    fn start_with(web: &str, options: &[&str]) -> Result<Self> {
        let mut process = Command::new(program()?)
            .args([
                "serve",
                PROFILE,
                "--listen",
                "127.0.0.1:0",
                "--web",
                web,
                "--json",
            ])
            .args(options)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()?;
        let output = process.stdout.take().context("no output")?;
        let mut line = String::new();
        BufReader::new(output).read_line(&mut line)?;
        let listens: Value = serde_json::from_str(&line).context("it does not listen")?;
        let text = |key: &str| {
            listens[key]
                .as_str()
                .context("no address")
                .map(str::to_owned)
        };
        let url = format!("tcp://127.0.0.1:{}/{}", listens["port"], text("nqn")?);
        let name = format!("zonelab-web-data-{}", process.id());
        let data = std::env::temp_dir().join(name);
        std::fs::write(&data, vec![7; BYTES])?;
        let web = text("web")?;
        Ok(Self {
            process,
            url,
            web,
            data,
        })
    }

    /// `zonelab nvme ARGS...`, which succeeds.
    fn nvme(&self, args: &[&str]) -> Result<()> {
        let mut command = Command::new(program()?);
        command.arg("nvme").args(args).args(["--device", &self.url]);
        let output = command.stdin(Stdio::null()).output()?;
        ensure!(output.status.success(), "{args:?}: {output:?}");
        Ok(())
    }

    fn write(&self, block: &str) -> Result<()> {
        let data = self.data.display().to_string();
        self.nvme(&["write", "--start-block", block, "--data", &data])
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.process.kill();
        let _ = self.process.wait();
        let _ = std::fs::remove_file(&self.data);
    }
}

fn text(page: &mut Page, selector: &str) -> Result<String> {
    let name = serde_json::to_string(selector)?;
    let text = page.eval(&format!("document.querySelector({name})?.innerText ?? ''"))?;
    Ok(text.as_str().unwrap_or_default().to_owned())
}

/// Waits until the text of an element has all of `words`.
fn shows(page: &mut Page, selector: &str, words: &[&str]) -> Result<()> {
    let mut last = String::new();
    for _ in 0..LOOKS {
        last = text(page, selector)?;
        if words.iter().all(|word| last.contains(word)) {
            return Ok(());
        }
        page.settle()?;
    }
    bail!("{selector} never shows {words:?} but {last}")
}

/// Waits until an element is there.
fn appears(page: &mut Page, selector: &str) -> Result<()> {
    let name = serde_json::to_string(selector)?;
    for _ in 0..LOOKS {
        if page.eval(&format!("!!document.querySelector({name})"))? == true {
            return Ok(());
        }
        page.settle()?;
    }
    bail!("there is never {selector}")
}

const LIVE: (&str, &[&str]) = ("#link", &["Live"]);
const MAP: &str = "#zones canvas";

/// The colour at the foot of the cell of a zone, and that of a variable.
fn foot(page: &mut Page, zone: u32, variable: &str) -> Result<(Value, Value)> {
    let script = format!(
        "(() => {{ const c = document.querySelector('{MAP}'); const d = devicePixelRatio; \
         const cell = {CELL}; const columns = Math.round(c.clientWidth / cell); \
         const x = ({zone} % columns) * cell + cell / 2; \
         const y = Math.floor({zone} / columns) * cell + cell - 3; \
         const k = document.createElement('canvas').getContext('2d'); \
         k.drawImage(c, x * d, y * d, 1, 1, 0, 0, 1, 1); \
         const p = k.getImageData(0, 0, 1, 1).data; \
         const b = document.createElement('i'); \
         b.style.color = getComputedStyle(document.documentElement).getPropertyValue('{variable}'); \
         document.body.append(b); const is = getComputedStyle(b).color; b.remove(); \
         return [`rgb(${{p[0]}}, ${{p[1]}}, ${{p[2]}})`, is]; }})()"
    );
    let both = page.eval(&script)?;
    Ok((both[0].clone(), both[1].clone()))
}

/// Pixels from one cell of the map to the next: 64 zones have the largest.
const CELL: u32 = 40;

fn is_coloured(page: &mut Page, zone: u32, variable: &str) -> Result<()> {
    let (shown, meant) = foot(page, zone, variable)?;
    ensure!(
        shown == meant,
        "zone {zone} is {shown}, {variable} is {meant}"
    );
    Ok(())
}

#[test]
fn the_map_follows_the_drive() -> Result<()> {
    let served = Served::start("127.0.0.1:0")?;
    let mut page = Page::open_url(&served.web, View::DESK)?;
    shows(&mut page, LIVE.0, LIVE.1)?;
    shows(&mut page, "#zone-legend", &["empty 64"])?;
    is_coloured(&mut page, 0, "--zE")?;

    served.write("0")?;
    served.nvme(&["zns", "finish-zone", "--start-lba", "0x1000"])?;
    served.nvme(&["zns", "open-zone", "--start-lba", "0x2000"])?;
    let states = [
        "empty 61",
        "implicitly opened 1",
        "explicitly opened 1",
        "full 1",
    ];
    shows(&mut page, "#zone-legend", &states)?;
    for (zone, variable) in [(0, "--zI"), (1, "--zF"), (2, "--zX"), (3, "--zE")] {
        is_coloured(&mut page, zone, variable)?;
    }
    shows(&mut page, "#facts", &["2 of 10", "2 of 12"])?;
    shows(&mut page, "#latency tr[data-name=write]", &["write"])?;

    // Each die by cause (c1: host-write, c2: finish-fill), and all over time.
    for drawn in [
        "#dies .c1",
        "#dies .c2",
        "#load polyline",
        "#throughput polyline",
    ] {
        appears(&mut page, drawn)?;
    }
    page.hover_at(MAP, (f64::from(CELL) / 2.0, f64::from(CELL) / 2.0))?;
    let tip = text(&mut page, "#zones .tip")?;
    for word in [
        "Zone 0: implicitly opened",
        "LBA 0x0",
        "+25 blocks",
        "100.0 KiB of 16.00 MiB",
    ] {
        ensure!(tip.contains(word), "{word} in {tip}");
    }
    // The keyboard goes on from there, and keeps the figures of a zone.
    page.eval(&format!("document.querySelector('{MAP}').focus()"))?;
    page.press("ArrowRight")?;
    ensure!(text(&mut page, "#zones .tip")?.contains("Zone 1: full"));
    page.press("Enter")?;
    shows(&mut page, "#pinned", &["Zone 1: full", "LBA 0x1000"])?;

    served.nvme(&["zns", "reset-zone", "--all"])?;
    shows(&mut page, "#zone-legend", &["empty 64"])?;
    shows(&mut page, "#pinned", &["Zone 1: empty"])?;
    is_coloured(&mut page, 0, "--zE")?;
    is_coloured(&mut page, 2, "--zE")?;
    ensure!(page.complaints().is_empty(), "{:?}", page.complaints());
    let outside = page.requests();
    let outside: Vec<_> = outside
        .iter()
        .filter(|url| !url.starts_with(&served.web))
        .collect();
    ensure!(outside.is_empty(), "{outside:?}");
    Ok(())
}

/// The layer has a section of its own, and only where there is one.
#[test]
fn the_layer_is_shown_beside_the_drive() -> Result<()> {
    let served = Served::start_with("127.0.0.1:0", &["--ftl"])?;
    let mut page = Page::open_url(&served.web, View::DESK)?;
    shows(&mut page, LIVE.0, LIVE.1)?;
    shows(
        &mut page,
        "#layer",
        &["well", "672.1 MiB", "of 57", "mounts"],
    )?;
    // In an order that no zone takes.
    for block in ["5000", "100", "5000"] {
        served.write(block)?;
    }
    shows(&mut page, "#zone-legend", &["implicitly opened"])?;
    // Data without metadata: what the journal adds shows once it is written.
    shows(&mut page, "#layer", &["write amplification\n1"])?;
    for drawn in ["#layer-traffic polyline", "#collected polyline"] {
        appears(&mut page, drawn)?;
    }
    ensure!(page.complaints().is_empty(), "{:?}", page.complaints());
    let without = Served::start("127.0.0.1:0")?;
    let mut page = Page::open_url(&without.web, View::DESK)?;
    shows(&mut page, LIVE.0, LIVE.1)?;
    let sections = page.eval("document.querySelectorAll('#layer').length")?;
    ensure!(sections == 0, "{sections} sections");
    Ok(())
}

#[test]
fn a_lost_connection_is_said_and_found_again() -> Result<()> {
    let served = Served::start("127.0.0.1:0")?;
    let mut page = Page::open_url(&served.web, View::DESK)?;
    shows(&mut page, LIVE.0, LIVE.1)?;
    let address = served
        .web
        .trim_start_matches("http://")
        .trim_end_matches('/')
        .to_owned();
    drop(served);
    shows(&mut page, "#link", &["Connection lost", "Trying again"])?;
    let again = Served::start(&address)?;
    shows(&mut page, LIVE.0, LIVE.1)?;
    again.write("0")?;
    shows(&mut page, "#zone-legend", &["implicitly opened 1"])
}

/// Texts whose colour is too near to that of the page: contrast below 4.5 (WCAG
/// 2.1, success criterion 1.4.3).
const FAINT: &str = "(() => {
    const channel = (c) => { const s = c / 255; return s <= 0.03928 ? s / 12.92 : ((s + 0.055) / 1.055) ** 2.4; };
    const light = (colour) => { const [r, g, b] = colour.match(/[\\d.]+/g).map(Number);
        return 0.2126 * channel(r) + 0.7152 * channel(g) + 0.0722 * channel(b); };
    const page = light(getComputedStyle(document.body).backgroundColor);
    const ratio = (l) => (Math.max(l, page) + 0.05) / (Math.min(l, page) + 0.05);
    return [...document.querySelectorAll('h1, h2, p, dt, dd, th, td, a, label, footer')]
        .filter((n) => n.innerText.trim() && ratio(light(getComputedStyle(n).color)) < 4.5)
        .map((n) => n.outerHTML.slice(0, 80));
})()";

#[test]
fn narrow_and_dark_pages_are_readable() -> Result<()> {
    let served = Served::start("127.0.0.1:0")?;
    served.write("0")?;
    let narrow = View {
        width: 400,
        dark: true,
        ..View::PHONE
    };
    for (view, background) in [
        (narrow, "rgb(22, 24, 28)"),
        (View::DESK, "rgb(255, 255, 255)"),
    ] {
        let mut page = Page::open_url(&served.web, view)?;
        shows(&mut page, LIVE.0, LIVE.1)?;
        shows(&mut page, "#zone-legend", &["implicitly opened 1"])?;
        let body = page.eval("getComputedStyle(document.body).backgroundColor")?;
        ensure!(body == background, "{body}");
        let width = page.eval("document.documentElement.scrollWidth")?;
        ensure!(width == view.width, "{width} for {}", view.width);
        let outside = page.eval(
            "[...document.querySelectorAll('main *')].filter((n) => !n.closest('.scroll, svg') \
             && n.getBoundingClientRect().right > innerWidth + 0.5).map((n) => n.outerHTML.slice(0, 80))",
        )?;
        ensure!(outside == Value::Array(Vec::new()), "{outside}");
        let faint = page.eval(FAINT)?;
        ensure!(faint == Value::Array(Vec::new()), "{faint}");
        ensure!(page.complaints().is_empty(), "{:?}", page.complaints());
        if let Some(directory) = std::env::var_os("ZONELAB_REPORT").map(PathBuf::from) {
            let name = format!("live-{}.png", view.width);
            page.screenshot(&directory.join(name), Some("main"))?;
        }
    }
    Ok(())
}
