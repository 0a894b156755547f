//! Text tables for a terminal.
//!
//! [`number`] and its neighbours write values as a person reads them. The functions read
//! neither the environment nor the terminal: width and colour come from the caller in a
//! [`Style`], who knows about `NO_COLOR` and whether the output is a terminal. Control
//! characters in texts are replaced, so that no input file can steer the terminal.

mod quantity;
#[cfg(test)]
mod tests;

pub use quantity::{measured, microseconds, number, percent, time, value};

use std::borrow::Cow;

use unicode_width::UnicodeWidthStr as _;

/// How tables look.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub struct Style {
    /// Greatest width of a line in characters; none for as wide as needed.
    pub width: Option<usize>,
    /// Whether to colour verdicts, and with which mark.
    pub colour: Option<Mark>,
}

/// A number that nobody can guess who wrote a file, in each colour of a table: an ANSI escape
/// sequence is `ESC [`, this mark, and the rest. Who writes the text to a terminal takes out
/// the mark, and knows that every other escape sequence is not of a table.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Mark(pub u64);

impl std::fmt::Display for Mark {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:016x}:", self.0)
    }
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

impl Cell {
    /// The cell in a colour.
    #[must_use]
    pub const fn coloured(mut self, colour: Colour) -> Self {
        self.colour = Some(colour);
        self
    }

    /// Columns of the terminal that its text takes.
    #[must_use]
    pub fn width(&self) -> usize {
        self.text.width()
    }

    /// Adds its text to a line as it is written to a terminal, cut to `width` columns or
    /// filled up to them.
    fn show(&self, (align, width): (Align, usize), style: &Style, line: &mut String) {
        let text = cut(&self.text, width);
        let gap = " ".repeat(width.saturating_sub(text.width()));
        if align == Align::Right {
            line.push_str(&gap);
        }
        match self.colour.zip(style.colour) {
            Some((colour, mark)) if !text.is_empty() => {
                let code = colour.code();
                line.push_str(&format!("\u{1b}[{mark}{code}m{text}\u{1b}[{mark}0m"));
            }
            _ => line.push_str(&text),
        }
        if align == Align::Left {
            line.push_str(&gap);
        }
    }
}

impl<T: Into<String>> From<T> for Cell {
    fn from(text: T) -> Self {
        Self {
            text: plain(&text.into()).trim().to_owned(),
            colour: None,
        }
    }
}

/// The colour of a text.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Colour {
    /// Good.
    Green,
    /// Known not to be good.
    Yellow,
    /// Bad.
    Red,
    /// Beside the point.
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
        if self.columns.is_empty() {
            return String::new();
        }
        let header: Vec<Cell> = self
            .columns
            .iter()
            .map(|c| Cell::from(c.header.as_str()).coloured(Colour::Dim))
            .collect();
        let (widths, missing) = (self.widths(style), Cell::default());
        let mut out = String::new();
        for row in std::iter::once(&header).chain(&self.rows) {
            let mut line = String::new();
            for (n, (column, width)) in self.columns.iter().zip(&widths).enumerate() {
                if n > 0 {
                    line.push_str(&" ".repeat(GAP));
                }
                let cell = row.get(n).unwrap_or(&missing);
                cell.show((column.align, *width), style, &mut line);
            }
            out.push_str(line.trim_end());
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
                .map(Cell::width)
                .fold(column.header.width(), usize::max)
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
        let gaps = GAP * widths.len().saturating_sub(1);
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
}

/// Columns of the terminal between two columns of a table.
const GAP: usize = 2;

/// The beginning of `text` that fits into `width` columns with a mark that something is
/// missing, or all of it.
fn cut(text: &str, width: usize) -> Cow<'_, str> {
    if text.width() <= width {
        return Cow::Borrowed(text);
    }
    // Of each beginning anew: some characters are wider together than by themselves.
    let ends = text.char_indices().map(|(end, _)| end);
    let end = ends.take_while(|end| text[..*end].width() < width).last();
    Cow::Owned(format!("{}…", &text[..end.unwrap_or(0)]))
}

/// `text` with control characters replaced.
fn plain(text: &str) -> String {
    text.chars()
        .map(|c| if c.is_control() { ' ' } else { c })
        .collect()
}

/// `text` as one paragraph: words that do not fit go to the next line.
#[must_use]
pub fn paragraph(text: &str, style: &Style) -> String {
    let mut out = String::new();
    let mut column = 0;
    for word in plain(text).split(' ').filter(|word| !word.is_empty()) {
        let fits = style
            .width
            .is_none_or(|width| column + 1 + word.width() <= width);
        if column > 0 {
            out.push_str(if fits { " " } else { "\n  " });
            column = if fits { column + 1 } else { 2 };
        }
        out.push_str(word);
        column += word.width();
    }
    out.push('\n');
    out
}
