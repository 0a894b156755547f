//! Text tables for a terminal.
//!
//! [`comparison`] shows rows of comparison, [`page()`] what they come to, and
//! [`markdown()`] the same for documents; [`Table`] lays out any other table.
//! The functions read neither the environment nor the terminal: width and
//! colour come from the caller in a [`Style`], who knows about `NO_COLOR` and
//! whether the output is a terminal. Control characters in texts are replaced,
//! so that no input file can steer the terminal.

mod differences;
mod markdown;
mod page;
mod quantity;
#[cfg(test)]
mod tests;

pub use differences::differences;
pub use markdown::markdown;
pub use page::{lines as summary_lines, page};
use quantity::value;
pub use quantity::{measured, microseconds, number, percent};

use crate::experiment::is_word;
use crate::rows::{Row, Stats, Summary, UNIT_CHANGE, UNIT_ERROR, UNIT_M, Verdict, X};

/// How tables look.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub struct Style {
    /// Greatest width of a line in characters; none for as wide as needed.
    pub width: Option<usize>,
    /// Whether to colour verdicts with ANSI escape sequences.
    pub colour: bool,
}

/// On which side the text of a column stands.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Align {
    /// Texts.
    Left,
    /// Numbers.
    Right,
}

/// A column of a [`Table`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Column {
    /// Heading, with the unit if all cells share one.
    pub header: String,
    /// Side on which header and cells stand.
    pub align: Align,
    /// Width below which the column is never cut to fit a narrow terminal;
    /// none if it is never cut.
    pub least: Option<usize>,
}

impl Column {
    /// A column of texts that may be cut down to eight characters.
    #[must_use]
    pub fn text(header: &str) -> Self {
        Self {
            header: header.to_owned(),
            align: Align::Left,
            least: Some(8),
        }
    }

    /// A column of short words or identifiers, never cut.
    #[must_use]
    pub fn word(header: &str) -> Self {
        Self {
            header: header.to_owned(),
            align: Align::Left,
            least: None,
        }
    }

    /// A column of numbers, never cut.
    #[must_use]
    pub fn number(header: &str) -> Self {
        Self {
            header: header.to_owned(),
            align: Align::Right,
            least: None,
        }
    }
}

/// A cell: its text, and the colour it has on a terminal that shows colours.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Cell {
    text: String,
    colour: Option<Colour>,
}

impl<T: Into<String>> From<T> for Cell {
    fn from(text: T) -> Self {
        Self {
            text: plain(&text.into()).trim().to_owned(),
            colour: None,
        }
    }
}

#[derive(Copy, Clone, Debug, PartialEq, Eq)]
enum Colour {
    Green,
    Yellow,
    Red,
    Dim,
}

impl Colour {
    const fn code(self) -> &'static str {
        match self {
            Self::Green => "32",
            Self::Yellow => "33",
            Self::Red => "31",
            Self::Dim => "2",
        }
    }
}

/// Columns and rows of text.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Table {
    columns: Vec<Column>,
    rows: Vec<Vec<Cell>>,
}

impl Table {
    /// A table without rows.
    #[must_use]
    pub fn new(columns: impl IntoIterator<Item = Column>) -> Self {
        Self {
            columns: columns.into_iter().collect(),
            rows: Vec::new(),
        }
    }

    /// Adds a row. Missing cells are empty, surplus ones are not shown.
    pub fn push(&mut self, cells: impl IntoIterator<Item = Cell>) {
        self.rows.push(cells.into_iter().collect());
    }

    /// The table as lines, each ended by a newline, none ending in a space.
    #[must_use]
    pub fn to_text(&self, style: &Style) -> String {
        let widths = self.widths(style);
        let mut out = String::new();
        let header: Vec<Cell> = self
            .columns
            .iter()
            .map(|c| Cell {
                colour: Some(Colour::Dim),
                ..c.header.as_str().into()
            })
            .collect();
        for row in std::iter::once(&header).chain(&self.rows) {
            out.push_str(&self.line(row, &widths, style));
            out.push('\n');
        }
        out
    }

    /// Width of each column: as wide as its widest cell; if the line is then
    /// too wide, the widest column that may be cut gives way first.
    fn widths(&self, style: &Style) -> Vec<usize> {
        let widest = |n: usize, column: &Column| {
            let cells = self.rows.iter().filter_map(|row| row.get(n));
            cells
                .map(|cell| length(&cell.text))
                .fold(length(&column.header), usize::max)
        };
        let mut widths: Vec<_> = self
            .columns
            .iter()
            .enumerate()
            .map(|(n, column)| widest(n, column))
            .collect();
        let Some(limit) = style.width else {
            return widths;
        };
        let gaps = GAP.len() * widths.len().saturating_sub(1);
        while widths.iter().sum::<usize>() + gaps > limit {
            let can_give = |n: &usize| {
                self.columns[*n]
                    .least
                    .is_some_and(|least| widths[*n] > least)
            };
            let Some(n) = (0..widths.len())
                .filter(can_give)
                .max_by_key(|n| widths[*n])
            else {
                break;
            };
            widths[n] -= 1;
        }
        widths
    }

    fn line(&self, row: &[Cell], widths: &[usize], style: &Style) -> String {
        let empty = Cell::default();
        let mut out = String::new();
        // Spaces are written when a text follows them: no line ends in one.
        let mut pending = 0;
        for (n, (column, width)) in self.columns.iter().zip(widths).enumerate() {
            let cell = row.get(n).unwrap_or(&empty);
            let text = cut(&cell.text, *width);
            let pad = width - length(&text);
            let (before, after) = if column.align == Align::Right {
                (pad, 0)
            } else {
                (0, pad)
            };
            pending += before + if n > 0 { GAP.len() } else { 0 };
            if !text.is_empty() {
                out.extend(std::iter::repeat_n(' ', pending));
                out.push_str(&coloured(&text, cell.colour, style));
                pending = 0;
            }
            pending += after;
        }
        out
    }
}

/// Between two columns.
const GAP: &str = "  ";

/// Length on the terminal, counting every character as one column.
fn length(text: &str) -> usize {
    text.chars().count()
}

/// `text`, cut to `width` characters with "…" at the end.
fn cut(text: &str, width: usize) -> String {
    if length(text) <= width {
        return text.to_owned();
    }
    let mut out: String = text.chars().take(width.saturating_sub(1)).collect();
    out.truncate(out.trim_end().len());
    out.push('…');
    out.chars().take(width).collect()
}

/// `text` with control characters replaced.
fn plain(text: &str) -> String {
    text.chars()
        .map(|c| if c.is_control() { ' ' } else { c })
        .collect()
}

fn coloured(text: &str, colour: Option<Colour>, style: &Style) -> String {
    match colour {
        Some(colour) if style.colour => format!("\u{1b}[{}m{text}\u{1b}[0m", colour.code()),
        _ => text.to_owned(),
    }
}

/// The rows of comparison with their verdicts, grouped by id, each group under
/// a line that summarises it.
///
/// The rows should be judged ([`Row::judged`]) and marked
/// ([`crate::rows::Misfits::apply`]).
#[must_use]
pub fn comparison(rows: &[Row], summary: &Summary, style: &Style) -> String {
    let mut out = String::new();
    for (id, stats) in &summary.by_id {
        out.push_str(&paragraph(&figure_line(id, stats), style));
        let own = rows.iter().filter(|row| row.id == *id);
        let (checks, values): (Vec<_>, Vec<_>) = own.partition(|row| row.is_statement());
        if !values.is_empty() {
            out.push_str(&group_table(&values).to_text(style));
        }
        if !checks.is_empty() {
            out.push_str(&check_table(&checks).to_text(style));
        }
        out.push('\n');
    }
    if rows.iter().any(Row::passes_by_bracket) {
        let note = "±1pt: the published percentile lies between ours one point lower and higher";
        out.push_str(&paragraph(note, style));
    }
    out
}

/// What became of a figure, in a line: "C10a: 42 rows, 40 ok, 1 MISFIT; |error|
/// median 0.4 %, P90 2.1 %".
#[must_use]
pub fn figure_line(id: &str, stats: &Stats) -> String {
    format!("{id}: {}", sentence(stats))
}

/// The magnitude of an error in per cent; a dash if there is none.
pub(crate) fn share(value: Option<f64>) -> String {
    value.map_or_else(|| "-".to_owned(), |value| format!("{:.1} %", value * 100.0))
}

/// A value of a statement as a person reads it: shares in per cent.
pub fn sized(value: Option<f64>, unit: &str) -> String {
    match (value, unit) {
        (None, _) => "-".to_owned(),
        (Some(value), UNIT_CHANGE) => percent(value),
        (Some(value), UNIT_ERROR) => share(Some(value)),
        (Some(value), _) => number(value),
    }
}

/// The same, and times in units that fit them.
fn sized_as_read(value: Option<f64>, unit: &str) -> String {
    match value {
        Some(us) if unit == "us" => microseconds(us),
        value => sized(value, unit),
    }
}

/// Our value of a statement, and half the width of its interval if it has one.
fn sized_within(row: &Row) -> String {
    let half = row.statistics.and_then(|of| of.half_width);
    match (half, row.unit.as_str()) {
        (None, unit) => sized_as_read(Some(row.ours), unit),
        (Some(half), UNIT_CHANGE | UNIT_ERROR) => {
            let half = number(half * 100.0);
            format!(
                "{} ± {half} %",
                sized(Some(row.ours), &row.unit).trim_end_matches(" %")
            )
        }
        (half, unit) => measured(row.ours, half, unit),
    }
}

/// The same of a value that misses what it would take by `miss`, relative to that.
/// An error that misses by less than is usually shown is shown more exactly: 3.03 %
/// is not 3.0 % where 3 % are allowed.
pub(crate) fn missed(value: Option<f64>, unit: &str, miss: Option<f64>) -> String {
    const LITTLE: f64 = 0.02;
    match (value, miss) {
        (Some(value), Some(miss)) if unit == UNIT_ERROR && miss < LITTLE => {
            format!("{:.3} %", value * 100.0)
        }
        _ => sized(value, unit),
    }
}

/// `text` as one paragraph: words that do not fit go to the next line.
fn paragraph(text: &str, style: &Style) -> String {
    let mut out = String::new();
    let mut column = 0;
    for word in plain(text).split(' ').filter(|word| !word.is_empty()) {
        let fits = style
            .width
            .is_none_or(|width| column + 1 + length(word) <= width);
        if column > 0 {
            out.push_str(if fits { " " } else { "\n  " });
            column = if fits { column + 1 } else { 2 };
        }
        out.push_str(word);
        column += length(word);
    }
    out.push('\n');
    out
}

fn group_table(rows: &[&Row]) -> Table {
    let xs = x_column(rows);
    let mut columns = vec![Column::word("id"), Column::text("series")];
    columns.extend(xs.as_ref().map(|(column, _)| column.clone()));
    columns.push(Column {
        least: Some(12),
        ..Column::text("metric")
    });
    let is_compared = rows.iter().any(|row| row.published.is_some());
    // Without anything published, the verdict of a point is that it is shown.
    let is_judged = is_compared || rows.iter().any(|row| row.verdict() != Verdict::Info);
    columns.extend(is_compared.then(|| Column::number("published")));
    columns.push(Column::number("ours"));
    columns.extend(is_compared.then(|| Column::number("error")));
    columns.extend(is_judged.then(|| Column::word("verdict")));
    let mut table = Table::new(columns);
    for (n, row) in rows.iter().enumerate() {
        let optional = |text: Option<String>| Cell::from(text.unwrap_or_else(|| "-".to_owned()));
        let mut cells: Vec<Cell> = vec![row.id.as_str().into(), row.series.as_str().into()];
        cells.extend(xs.as_ref().and_then(|(_, cells)| cells.get(n).cloned()));
        cells.push(metric(row).into());
        let published = || optional(row.published.map(|of| value(of, &row.unit)));
        cells.extend(is_compared.then(published));
        let half = row.statistics.and_then(|of| of.half_width);
        cells.push(measured(row.ours, half, &row.unit).into());
        cells.extend(is_compared.then(|| optional(row.rel_error.map(percent))));
        cells.extend(is_judged.then(|| verdict_cell(row)));
        table.push(cells);
    }
    table
}

/// Statements, which are too long for the metric's column.
fn check_table(rows: &[&Row]) -> Table {
    let is_published = rows.iter().any(|row| row.published.is_some());
    let mut columns = vec![Column::word("id"), Column::text("statement")];
    columns.extend(is_published.then(|| Column::number("published")));
    columns.extend([
        Column::number("ours"),
        Column::word("needs"),
        Column::word("verdict"),
    ]);
    let mut table = Table::new(columns);
    for row in rows {
        let needs = row
            .statement
            .map(|bound| bound.words(&row.unit))
            .unwrap_or_default();
        let mut cells: Vec<Cell> = vec![row.id.as_str().into(), row.metric.as_str().into()];
        cells.extend(is_published.then(|| sized_as_read(row.published, &row.unit).into()));
        cells.extend([sized_within(row).into(), needs.into(), verdict_cell(row)]);
        table.push(cells);
    }
    table
}

/// The metric with its unit. M^Inter has a name for a unit.
fn metric(row: &Row) -> String {
    if row.unit.is_empty() || row.unit == UNIT_M {
        row.metric.clone()
    } else {
        format!("{} ({})", row.metric, row.unit)
    }
}

/// The column for x and its cells; none if no row has an x. Its header may be
/// cut, its cells not.
fn x_column(rows: &[&Row]) -> Option<(Column, Vec<Cell>)> {
    rows.iter().find_map(|row| row.x.as_ref())?;
    let name = common_x(rows);
    let text = |x: &X| match name {
        Some(_) => coordinate(x),
        None => format!("{} {}", x.name, coordinate(x)),
    };
    let cells: Vec<Cell> = rows
        .iter()
        .map(|row| row.x.as_ref().map(text).unwrap_or_default().into())
        .collect();
    let least = cells.iter().map(|cell| length(&cell.text)).max();
    let header = name.unwrap_or("x").to_owned();
    let align = if name.is_some() {
        Align::Right
    } else {
        Align::Left
    };
    Some((
        Column {
            header,
            align,
            least,
        },
        cells,
    ))
}

/// The name of x if all rows that have one share it: it is then the header.
fn common_x<'a>(rows: &[&'a Row]) -> Option<&'a str> {
    let mut names = rows
        .iter()
        .filter_map(|row| row.x.as_ref())
        .map(|x| x.name.as_str());
    let first = names.next()?;
    names.all(|name| name == first).then_some(first)
}

/// Where a row lies: a number, or the word that stands in the experiment.
fn coordinate(x: &X) -> String {
    if let Some(shown) = &x.shown {
        return shown.clone();
    }
    if !x.label.is_empty() && is_word(&x.label) {
        return x.label.clone();
    }
    short(x.value)
}

/// A coordinate: as it is if it is a small integer, otherwise as a number.
fn short(value: f64) -> String {
    if value.fract() == 0.0 && value.abs() < 1e9 {
        format!("{value:.0}")
    } else {
        number(value)
    }
}

fn verdict_cell(row: &Row) -> Cell {
    let verdict = row.verdict();
    let mut text = verdict.word().to_owned();
    if row.passes_by_bracket() {
        text.push_str(" ±1pt");
    }
    Cell {
        text,
        colour: Some(colour_of(verdict)),
    }
}

const fn colour_of(verdict: Verdict) -> Colour {
    match verdict {
        Verdict::Ok => Colour::Green,
        Verdict::Misfit | Verdict::Missed => Colour::Yellow,
        Verdict::Fail => Colour::Red,
        Verdict::Joint | Verdict::Input | Verdict::Info => Colour::Dim,
    }
}

/// "42 rows, 40 ok, 1 MISFIT, 1 FAIL; |error| median 0.4 %, P90 2.1 %".
fn sentence(stats: &Stats) -> String {
    counted(stats) + &errors(stats)
}

/// "42 rows, 40 ok, 1 MISFIT, 1 FAIL".
fn counted(stats: &Stats) -> String {
    let mut out = format!(
        "{} {}",
        stats.count,
        if stats.count == 1 { "row" } else { "rows" }
    );
    for verdict in Verdict::ALL {
        let count = stats.of_verdict(verdict);
        if count > 0 {
            out.push_str(&format!(", {count} {}", verdict.word()));
        }
    }
    out
}

fn errors(stats: &Stats) -> String {
    let (Some(median), Some(p90)) = (stats.median_error, stats.p90_error) else {
        return String::new();
    };
    format!(
        "; |error| median {:.1} %, P90 {:.1} %",
        median * 100.0,
        p90 * 100.0
    )
}
