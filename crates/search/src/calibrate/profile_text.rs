//! The text of a profile, with single values replaced and all else kept.

use toml_edit::{DocumentMut, Item, Table, Value};
use zonelab_config::{Errors, Problem};

/// The text of a profile.
#[derive(Clone, Debug)]
pub(super) struct ProfileText {
    document: DocumentMut,
}

impl ProfileText {
    /// Reads TOML; `file` is its name in messages.
    ///
    /// # Errors
    /// It is no TOML.
    pub(super) fn parse(file: &str, text: &str) -> Result<Self, Errors> {
        let document = text
            .parse()
            .map_err(|error: toml_edit::TomlError| Problem::of_file(file, error.message(), ""))?;
        Ok(Self { document })
    }

    /// The value at a path, as text without quotes; `None` if the file does not
    /// state it or it is a table, list or truth value.
    pub(super) fn value(&self, path: &str) -> Option<String> {
        let mut keys = path.split('.');
        let mut item = self.document.get(keys.next()?)?;
        let mut element: Option<&Value> = None;
        for key in keys {
            if let Some(value) = element {
                element = Some(value_below(value, key)?);
            } else if let Some(value) = item.as_value() {
                element = Some(value_below(value, key)?);
            } else {
                item = item.get(key)?;
            }
        }
        text_of(element.or_else(|| item.as_value())?)
    }

    /// Replaces the value at a path, or adds it where the file does not state
    /// it. Comments, order and spacing stay.
    pub(super) fn set(&mut self, path: &str, text: &str) {
        let value: Value = match text.parse::<i64>() {
            Ok(number) => number.into(),
            Err(_) => text.into(),
        };
        let keys: Vec<&str> = path.split('.').collect();
        let Some((last, parents)) = keys.split_last() else {
            return;
        };
        let mut item = self.document.as_item_mut();
        for key in parents {
            item = match item {
                Item::Value(Value::Array(_)) => return,
                _ => &mut item[*key],
            };
            if item.is_none() {
                *item = Item::Table(Table::new());
            }
        }
        match item {
            Item::Value(Value::Array(list)) => {
                if let Some(old) = last
                    .parse()
                    .ok()
                    .and_then(|index: usize| list.get_mut(index))
                {
                    put(old, value);
                }
            }
            _ => match item.get_mut(last).and_then(Item::as_value_mut) {
                Some(old) => put(old, value),
                None => item[*last] = Item::Value(value),
            },
        }
    }

    /// The text.
    pub(super) fn print(&self) -> String {
        self.document.to_string()
    }
}

/// Replaces a value and keeps the spaces and comments around it.
fn put(old: &mut Value, mut new: Value) {
    *new.decor_mut() = old.decor().clone();
    *old = new;
}

fn value_below<'v>(value: &'v Value, key: &str) -> Option<&'v Value> {
    match value {
        Value::Array(list) => list.get(key.parse().ok()?),
        Value::InlineTable(table) => table.get(key),
        _ => None,
    }
}

fn text_of(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.value().clone()),
        Value::Integer(number) => Some(number.value().to_string()),
        Value::Float(number) => Some(number.value().to_string()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "# A drive.\nname = \"x\"\n\n[media]\nread = \"60us\"   # data sheet\n\
                        times = [\"1us\", \"2us\"] # by level\n[front_end]\ncores = 2\n";

    #[test]
    fn only_values_change() {
        let mut text = ProfileText::parse("x.toml", TEXT).unwrap();
        assert_eq!(text.value("media.read").unwrap(), "60us");
        assert_eq!(text.value("media.times.1").unwrap(), "2us");
        assert_eq!(text.value("front_end.cores").unwrap(), "2");
        for absent in [
            "media",
            "media.write",
            "media.times.2",
            "media.read.0",
            "",
            ".",
        ] {
            assert_eq!(text.value(absent), None, "{absent}");
        }
        text.set("media.read", "61.5us");
        text.set("media.times.1", "3us");
        text.set("front_end.cores", "3");
        text.set("front_end.read", "4us");
        text.set("finish.pause", "1us");
        let expected = TEXT
            .replace("\"60us\"", "\"61.5us\"")
            .replace("\"2us\"", "\"3us\"")
            .replace("cores = 2\n", "cores = 3\nread = \"4us\"\n")
            + "\n[finish]\npause = \"1us\"\n";
        assert_eq!(text.print(), expected);
    }
}
