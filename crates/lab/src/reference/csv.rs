//! Comma-separated values after RFC 4180, with a header.

use thiserror::Error;

/// What is wrong with a file of measurements, and where.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{file}:{line}: {}{problem}", column_prefix(column))]
pub struct ReferenceError {
    /// The file as the caller named it.
    pub file: String,
    /// Line on which the row begins, from 1; the header is on line 1.
    pub line: usize,
    /// Name of the column, if the problem is in one.
    pub column: Option<String>,
    /// What is wrong.
    pub problem: String,
}

fn column_prefix(column: &Option<String>) -> String {
    column
        .as_ref()
        .map(|name| format!("column `{name}`: "))
        .unwrap_or_default()
}

/// A file with a header and rows of as many fields.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CsvTable {
    file: String,
    columns: Vec<String>,
    rows: Vec<Fields>,
}

/// The fields of one row, and the line on which it begins.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Fields {
    line: usize,
    fields: Vec<String>,
}

impl CsvTable {
    /// Reads `text`; `file` names it in errors. Lines end in LF or CRLF, a byte
    /// order mark is skipped, and so are empty lines.
    ///
    /// # Errors
    /// A quote that is not closed or stands in the wrong place; a row with
    /// another number of fields than the header; no header, or one that names
    /// a column twice.
    pub fn parse(file: &str, text: &str) -> Result<Self, ReferenceError> {
        let error = |line: usize, problem: String| ReferenceError {
            file: file.to_owned(),
            line,
            column: None,
            problem,
        };
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        let mut rows = Reader::new(text)
            .collect::<Result<Vec<_>, _>>()
            .map_err(|(line, problem)| error(line, problem.to_owned()))?
            .into_iter();
        let Some(Fields {
            fields: columns,
            line,
        }) = rows.next()
        else {
            return Err(error(1, "the file has no header".to_owned()));
        };
        for (n, column) in columns.iter().enumerate() {
            if columns[..n].contains(column) {
                return Err(error(line, format!("the header names `{column}` twice")));
            }
        }
        let rows: Vec<Fields> = rows.collect();
        if let Some(row) = rows.iter().find(|row| row.fields.len() != columns.len()) {
            let problem = format!(
                "{} fields, but the header has {}",
                row.fields.len(),
                columns.len()
            );
            return Err(error(row.line, problem));
        }
        Ok(Self {
            file: file.to_owned(),
            columns,
            rows,
        })
    }

    /// The file, as it was named when it was read.
    #[must_use]
    pub fn file(&self) -> &str {
        &self.file
    }

    /// The names in the header.
    #[must_use]
    pub fn columns(&self) -> &[String] {
        &self.columns
    }

    /// The rows in the order of the file.
    pub fn records(&self) -> impl ExactSizeIterator<Item = Record<'_>> {
        self.rows.iter().map(|row| Record { table: self, row })
    }
}

/// A row of a [`CsvTable`].
#[derive(Copy, Clone, Debug)]
pub struct Record<'t> {
    table: &'t CsvTable,
    row: &'t Fields,
}

impl<'t> Record<'t> {
    /// The file, as it was named when it was read.
    #[must_use]
    pub fn file(&self) -> &'t str {
        &self.table.file
    }

    /// The line of the file on which the row begins, from 1.
    #[must_use]
    pub fn line(&self) -> usize {
        self.row.line
    }

    /// The text of `column`; empty where the value is unknown.
    ///
    /// # Errors
    /// The file has no such column.
    pub fn text(&self, column: &str) -> Result<&'t str, ReferenceError> {
        let index = self.table.columns.iter().position(|name| name == column);
        index
            .and_then(|index| self.row.fields.get(index))
            .map(String::as_str)
            .ok_or_else(|| {
                let known = self.table.columns.join(", ");
                let problem = format!("the file has no such column; it has: {known}");
                ReferenceError {
                    line: 1, // the header
                    ..self.error(column, problem)
                }
            })
    }

    /// The number in `column`, none where it is empty.
    ///
    /// # Errors
    /// There is no such column, or its text is not a finite number.
    pub fn number(&self, column: &str) -> Result<Option<f64>, ReferenceError> {
        let text = self.text(column)?.trim();
        if text.is_empty() {
            return Ok(None);
        }
        match text.parse::<f64>() {
            Ok(value) if value.is_finite() => Ok(Some(value)),
            _ => Err(self.error(column, format!("`{text}` is not a number"))),
        }
    }

    /// An error about `column` of this row.
    #[must_use]
    pub fn error(&self, column: &str, problem: String) -> ReferenceError {
        ReferenceError {
            file: self.table.file.clone(),
            line: self.row.line,
            column: Some(column.to_owned()),
            problem,
        }
    }
}

/// Takes a text apart into rows of fields.
struct Reader<'a> {
    rest: &'a str,
    /// Line of the first character of `rest`.
    line: usize,
}

/// What follows a field.
enum End {
    Field,
    Row,
}

impl<'a> Reader<'a> {
    fn new(text: &'a str) -> Self {
        Self {
            rest: text,
            line: 1,
        }
    }

    /// The next field and what follows it.
    fn field(&mut self) -> Result<(String, End), &'static str> {
        let field = if let Some(quoted) = self.rest.strip_prefix('"') {
            self.rest = quoted;
            self.quoted_field()?
        } else {
            let end = self.rest.find([',', '\n']).unwrap_or(self.rest.len());
            let (field, rest) = self.rest.split_at(end);
            self.rest = rest;
            // The CR of CRLF belongs to the end of the line.
            let field = if rest.starts_with(',') {
                field
            } else {
                field.trim_end_matches('\r')
            };
            if field.contains('"') {
                return Err("a quote inside a field that is not quoted");
            }
            field.to_owned()
        };
        if let Some(rest) = self.rest.strip_prefix(',') {
            self.rest = rest;
            return Ok((field, End::Field));
        }
        let rest = self.rest.strip_prefix('\r').unwrap_or(self.rest);
        if let Some(rest) = rest.strip_prefix('\n') {
            self.rest = rest;
            self.line += 1;
        } else if rest.is_empty() {
            self.rest = rest;
        } else {
            return Err("text after a closing quote");
        }
        Ok((field, End::Row))
    }

    /// The rest of a quoted field; `rest` is behind its closing quote then.
    fn quoted_field(&mut self) -> Result<String, &'static str> {
        let mut field = String::new();
        loop {
            let end = self.rest.find('"').ok_or("a quote is not closed")?;
            field.push_str(&self.rest[..end]);
            self.rest = &self.rest[end + 1..];
            match self.rest.strip_prefix('"') {
                Some(rest) => {
                    field.push('"');
                    self.rest = rest;
                }
                None => break,
            }
        }
        self.line += field.matches('\n').count();
        Ok(field)
    }
}

impl Iterator for Reader<'_> {
    type Item = Result<Fields, (usize, &'static str)>;

    fn next(&mut self) -> Option<Self::Item> {
        while !self.rest.is_empty() {
            let line = self.line;
            let mut fields = Vec::new();
            let is_blank = self.rest.starts_with('\n') || self.rest.starts_with("\r\n");
            loop {
                match self.field() {
                    Ok((field, End::Field)) => fields.push(field),
                    Ok((field, End::Row)) => {
                        fields.push(field);
                        break;
                    }
                    Err(problem) => {
                        self.rest = "";
                        return Some(Err((line, problem)));
                    }
                }
            }
            if !is_blank {
                return Some(Ok(Fields { line, fields }));
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn rows(text: &str) -> Vec<Vec<String>> {
        let table = CsvTable::parse("t.csv", text).unwrap();
        table.rows.into_iter().map(|row| row.fields).collect()
    }

    fn error(text: &str) -> String {
        CsvTable::parse("t.csv", text).unwrap_err().to_string()
    }

    #[test]
    fn fields_quotes_and_line_ends() {
        assert_eq!(rows("a,b\n1,2\n,\n"), [["1", "2"], ["", ""]]);
        assert_eq!(rows("a,b\r\n1,2\r\n\r\n3,4"), [["1", "2"], ["3", "4"]]);
        assert_eq!(
            rows("\u{feff}a,b\n\"x, y\",\"say \"\"hi\"\"\""),
            [["x, y", "say \"hi\""]]
        );
        assert_eq!(rows("a,b\n\"two\nlines\",\"\"\r\n"), [["two\nlines", ""]]);
        assert_eq!(rows("a\n\"\"\n"), [[""]]);
        assert!(rows("a,b").is_empty());
    }

    #[test]
    fn errors_name_file_line_and_column() {
        assert_eq!(error(""), "t.csv:1: the file has no header");
        assert_eq!(
            error("a,b\n1,2\n3\n"),
            "t.csv:3: 1 fields, but the header has 2"
        );
        assert_eq!(error("a,b,a\n"), "t.csv:1: the header names `a` twice");
        assert_eq!(error("a\n\"x\n\ny\n"), "t.csv:2: a quote is not closed");
        assert_eq!(
            error("a\nx\"y\n"),
            "t.csv:2: a quote inside a field that is not quoted"
        );
        assert_eq!(error("a\n\"x\"y\n"), "t.csv:2: text after a closing quote");

        let table = CsvTable::parse("t.csv", "n,x\n\"1\n\",2\n-1,nan\n").unwrap();
        let records: Vec<_> = table.records().collect();
        assert_eq!(
            records[0].number("n"),
            Ok(Some(1.0)),
            "spaces around a number are no error"
        );
        assert_eq!(records[1].line(), 4, "a quoted field may hold lines");
        let text = |result: Result<Option<f64>, ReferenceError>| result.unwrap_err().to_string();
        assert_eq!(
            text(records[1].number("x")),
            "t.csv:4: column `x`: `nan` is not a number"
        );
        assert_eq!(
            text(records[1].number("y")),
            "t.csv:1: column `y`: the file has no such column; it has: n, x"
        );
        let number = records[1].number("x").unwrap_err();
        assert_eq!(number.column.as_deref(), Some("x"));
    }

    proptest! {
        /// What is written after RFC 4180 is read back.
        #[test]
        fn written_tables_are_read_back(
            rows in prop::collection::vec(prop::collection::vec("[ -~\n\"é,]{0,8}", 3), 0..6),
        ) {
            let mut text = String::from("a,b,c\r\n");
            for row in &rows {
                let quoted = row.iter().map(|f| format!("\"{}\"", f.replace('"', "\"\"")));
                text.push_str(&quoted.collect::<Vec<_>>().join(","));
                text.push_str("\r\n");
            }
            let table = CsvTable::parse("t.csv", &text).unwrap();
            let read: Vec<_> = table.rows.into_iter().map(|row| row.fields).collect();
            prop_assert_eq!(read, rows);
        }

        /// No text makes the reader panic or loop.
        #[test]
        fn any_text_is_read_or_refused(text in "[a,\"\r\n é]{0,40}") {
            let _ = CsvTable::parse("t.csv", &text);
        }
    }
}
