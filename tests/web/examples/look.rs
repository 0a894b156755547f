//! Takes pictures of a report: `cargo run --example look -- REPORT DIRECTORY`.
use anyhow::{Context, Result};
use std::path::Path;
use zonelab_web_tests::{Page, View};

fn main() -> Result<()> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [report, out, rest @ ..] = &args[..] else { anyhow::bail!("look REPORT DIRECTORY [SELECTOR...]") };
    for (name, view) in [("desk", View::DESK), ("night", View::NIGHT), ("phone", View::PHONE)] {
        let mut page = Page::open(Path::new(report), view).context("open")?;
        if rest.is_empty() {
            page.screenshot(&Path::new(out).join(format!("{name}.png")), None)?;
        }
        for (n, what) in rest.iter().enumerate() {
            if let Some(script) = what.strip_prefix("js:") { println!("{}", page.eval(script)?); page.settle()?; }
            else if let Some(s) = what.strip_prefix("hover:") { page.hover(s)?; }
            else if let Some(s) = what.strip_prefix("click:") { page.click(s)?; }
            else if what == "window" { page.screenshot(&Path::new(out).join(format!("{name}-{n}.png")), None)?; }
            else { page.screenshot(&Path::new(out).join(format!("{name}-{n}.png")), Some(what))?; }
        }
        println!("{name}: {:?} {:?}", page.complaints(), page.requests());
    }
    Ok(())
}
