//! Structures as lists of fields, for people and as JSON.

use serde_json::{Map, Value};

/// How a field is shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Shown {
    /// A number in decimal.
    Number(u128),
    /// A number in hexadecimal; in JSON a number.
    Hex(u64),
    /// Text.
    Text(String),
}

/// Fields in the order of the specification, with their abbreviations.
#[derive(Clone, Debug, Default)]
pub(super) struct Fields {
    rows: Vec<(String, Shown)>,
}

impl Fields {
    pub(super) fn number(&mut self, name: &str, value: impl Into<u128>) -> &mut Self {
        self.push(name, Shown::Number(value.into()))
    }

    pub(super) fn hex(&mut self, name: &str, value: impl Into<u64>) -> &mut Self {
        self.push(name, Shown::Hex(value.into()))
    }

    pub(super) fn text(&mut self, name: &str, value: impl Into<String>) -> &mut Self {
        self.push(name, Shown::Text(value.into()))
    }

    fn push(&mut self, name: &str, value: Shown) -> &mut Self {
        self.rows.push((name.to_owned(), value));
        self
    }

    /// A line for each, the values in one column.
    pub(super) fn to_text(&self) -> String {
        self.to_text_with(|_, _| String::new())
    }

    /// The same, with what `more` says of a field below its line.
    pub(super) fn to_text_with(&self, more: impl Fn(&str, &Shown) -> String) -> String {
        let widest = self.rows.iter().map(|(name, _)| name.len()).max();
        let width = widest.unwrap_or(0).max(9);
        let lines = self.rows.iter().map(|(name, value)| {
            let line = match value {
                Shown::Number(value) => format!("{name:<width$} : {value}\n"),
                Shown::Hex(value) => format!("{name:<width$} : {value:#x}\n"),
                Shown::Text(value) => format!("{name:<width$} : {value}\n"),
            };
            line + &more(name, value)
        });
        lines.collect()
    }

    /// An object. Numbers that a double cannot hold are still numbers, up to 64
    /// bits, and text above.
    pub(super) fn to_json(&self) -> Value {
        let mut object = Map::new();
        for (name, value) in &self.rows {
            let value = match value {
                Shown::Number(value) => match u64::try_from(*value) {
                    Ok(value) => value.into(),
                    Err(_) => value.to_string().into(),
                },
                Shown::Hex(value) => (*value).into(),
                Shown::Text(value) => value.as_str().into(),
            };
            object.insert(name.clone(), value);
        }
        Value::Object(object)
    }

    /// As `--json` says, under `title`.
    pub(super) fn render(&self, json: bool, title: &str) -> String {
        match json {
            true => pretty(&self.to_json()),
            false => format!("{title}:\n{}", self.to_text()),
        }
    }
}

/// JSON with line breaks.
pub(crate) fn pretty(value: &Value) -> String {
    let text = serde_json::to_string_pretty(value).unwrap_or_default();
    format!("{text}\n")
}

/// Bytes as offset, hexadecimal and text.
pub(crate) fn dump(bytes: &[u8]) -> String {
    let mut text = String::new();
    for (line, chunk) in bytes.chunks(16).enumerate() {
        let hex: String = chunk.iter().map(|byte| format!(" {byte:02x}")).collect();
        let printed = chunk.iter().map(|byte| match byte {
            0x20..=0x7e => char::from(*byte),
            _ => '.',
        });
        let printed: String = printed.collect();
        text.push_str(&format!("{:04x}:{hex:<48} \"{printed}\"\n", line * 16));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_lines_and_an_object() {
        let mut fields = Fields::default();
        fields
            .number("mdts", 5_u8)
            .hex("cntlid", 7_u16)
            .text("mn", "DRIVE")
            .number("tnvmcap", u128::MAX);
        let text = fields.to_text();
        assert_eq!(
            text.lines().take(3).collect::<Vec<_>>(),
            ["mdts      : 5", "cntlid    : 0x7", "mn        : DRIVE"]
        );
        let json = fields.to_json();
        assert_eq!(json["cntlid"], 7);
        assert_eq!(json["tnvmcap"], u128::MAX.to_string());
    }

    #[test]
    fn a_dump_shows_offset_bytes_and_text() {
        let text = dump(b"zones of a drive!");
        let lines: Vec<_> = text.lines().collect();
        assert!(lines[0].starts_with("0000: 7a 6f 6e 65"));
        assert!(lines[0].ends_with("\"zones of a drive\""));
        assert!(lines[1].starts_with("0010: 21 ") && lines[1].ends_with("\"!\""));
    }
}
