//! The report: one HTML file that shows a run, its comparison with what was
//! published, and what every point of it did inside the drive.
//!
//! The file is complete in itself: styles, script and data are in it, nothing
//! is fetched, and its content security policy forbids to. The data are one
//! block of JSON, in which every character that means something in HTML is
//! escaped: no name in an experiment can end it. The script draws from that
//! block and sets text only as text.
//!
//! Like every result, it is a function of what was run: no date, no host.

mod data;
mod differences;
mod point;
mod wear;
mod zones;

#[cfg(test)]
mod tests;

use zonelab_lab::difference::Difference;
use zonelab_lab::experiment::Experiment;
use zonelab_lab::figure::Figure;
use zonelab_lab::matrix::Matrix;
use zonelab_lab::rows::{Misfits, Row, Summary, Verdict};
use zonelab_lab::run::PointResult;

/// What a report shows.
pub struct Report<'a> {
    /// Heading.
    pub title: String,
    /// Program and version that made it.
    pub tool: &'a str,
    /// The command that gives the same results.
    pub command: String,
    /// Seed of the run.
    pub seed: u64,
    /// What a reader must know first: that the run was cut short, or that
    /// published values are not judged.
    pub notices: Vec<String>,
    /// The experiments, in order.
    pub sections: Vec<Section<'a>>,
    /// Rows of all experiments, judged and marked.
    pub rows: &'a [Row],
    /// What they come to.
    pub summary: &'a Summary,
    /// The list that marked them.
    pub misfits: &'a Misfits,
}

/// An experiment in a report.
pub struct Section<'a> {
    /// The experiment.
    pub experiment: &'a Experiment,
    /// Its file.
    pub text: &'a str,
    /// The command that gives the same results of this experiment alone.
    pub command: String,
    /// Its figure.
    pub figure: Option<&'a Figure>,
    /// Its matrix of interference.
    pub matrix: Option<&'a Matrix>,
    /// Differences between its series.
    pub differences: Vec<Difference>,
    /// Its points.
    pub points: Vec<PointSection<'a>>,
}

/// A point in a report.
pub struct PointSection<'a> {
    /// What it measured.
    pub result: &'a PointResult,
    /// The drive that it ran on, resolved, as TOML.
    pub drive: &'a str,
    /// The command that runs it again.
    pub command: String,
}

/// With more experiments than this, the bar names none of them.
const SECTIONS_NAMED: usize = 8;

/// Scripts in the order in which they build on each other.
const SCRIPTS: [&str; 10] = [
    zonelab_page::BASE,
    zonelab_page::SCALE,
    zonelab_page::CHART,
    zonelab_page::BARS,
    include_str!("page/zones.js"),
    include_str!("page/wear.js"),
    include_str!("page/rows.js"),
    include_str!("page/point.js"),
    include_str!("page/experiment.js"),
    include_str!("page/main.js"),
];

impl Report<'_> {
    /// The report as an HTML document.
    #[must_use]
    pub fn to_html(&self) -> String {
        let data = serde_json::to_string(&data::Data::of(self))
            // Serialising to memory fails only for maps with odd keys.
            .expect("all keys are strings");
        let figures: String = self
            .sections
            .iter()
            .filter_map(|section| Some((section.figure?, &section.experiment.id)))
            .map(|(figure, id)| {
                let id = zonelab_page::html(id);
                let svg = figure.to_svg();
                format!("<figure class=\"still\" data-experiment=\"{id}\">\n{svg}</figure>\n")
            })
            .collect();
        let matrices = self.sections.iter().filter_map(|section| section.matrix);
        let figures = matrices.fold(figures, |all, matrix| all + &matrix_figure(matrix));
        let figures = self.sections.iter().fold(figures, |all, section| {
            all + &differences::figure(&section.experiment.id, &section.differences)
        });
        zonelab_page::document(&zonelab_page::Document {
            kind: "Report",
            title: &self.title,
            links: &self.links(),
            style: "",
            body: zonelab_page::fill(include_str!("page/report.html"), &[("FIGURES", figures)]),
            end: zonelab_page::data_and_scripts(&data, &SCRIPTS),
        })
    }

    /// The parts of the page: of a few experiments each is one.
    fn links(&self) -> Vec<(String, String)> {
        let link = |anchor: &str, name: &str| (anchor.to_owned(), name.to_owned());
        let head = if self.is_compared() {
            "summary"
        } else {
            "head"
        };
        let mut links = vec![link(head, "Summary")];
        if !self.summary.missing.is_empty() {
            links.push(link("gaps", "Known gaps"));
        }
        if self.sections.len() <= SECTIONS_NAMED {
            let sections = self.sections.iter().enumerate();
            links.extend(
                sections
                    .map(|(index, section)| (format!("e{index}"), section.experiment.id.clone())),
            );
        } else {
            links.push(link("experiments", "Experiments"));
        }
        if !self.rows.is_empty() {
            links.push(link("rows", "Rows"));
        }
        links
    }

    /// Whether anything is compared with what was published, or has to hold.
    fn is_compared(&self) -> bool {
        let is = |row: &Row| row.published.is_some() || row.verdict() != Verdict::Info;
        self.rows.iter().any(is)
    }
}

/// The heat map of a matrix, and why its cells are what they are.
fn matrix_figure(matrix: &Matrix) -> String {
    let why: String = matrix
        .cells
        .iter()
        .filter_map(|cell| cell.explanation.as_ref())
        .map(|of| {
            let [series, x, text] =
                [&of.series, &of.x, &of.text].map(|text| zonelab_page::html(text));
            format!("<tr><th scope=\"row\">{series}</th><td>{x}</td><td>{text}</td></tr>\n")
        })
        .collect();
    let (id, svg) = (zonelab_page::html(&matrix.id), matrix.heat_map().to_svg());
    format!(
        "<figure class=\"matrix\" data-experiment=\"{id}\">\n{svg}<table>\n<thead><tr>\
         <th>cell</th><th>at</th><th>what the foreground waits for, against alone</th></tr></thead>\n\
         <tbody>\n{why}</tbody>\n</table>\n</figure>\n"
    )
}
