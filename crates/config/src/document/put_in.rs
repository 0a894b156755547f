//! `$name` in strings: values that a program puts in after a document was parsed.

use toml::de::DeValue;

use super::Document;
use crate::nearest::nearest;
use crate::node::{Node, TableNode, Value};
use crate::units::{quote, quote_short};

/// A value that stands for `$name`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PutIn {
    /// The name, without the dollar sign: letters, digits and `_`, no digit first.
    pub name: String,
    /// The value, as it would stand in the document, without quotes.
    pub text: String,
    /// In the document it would stand without quotes: a number, `true` or `false`.
    pub is_bare: bool,
}

/// A place where a value was put in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PutInAt {
    /// The key, by its path.
    pub path: String,
    /// The name that stood there.
    pub name: String,
}

/// Whether a text can stand behind a dollar sign.
#[must_use]
pub fn is_placeholder_name(text: &str) -> bool {
    !text.is_empty() && name_length(text) == text.len()
}

impl Document {
    /// Puts values in for `$name` and `${name}` in the strings below the keys for which
    /// `takes` says so. A string that is nothing else becomes the value with its type;
    /// inside a longer string the text of the value is put in. `$$` is a dollar sign.
    ///
    /// Gives the places where something was put in. A name that has no value is reported.
    pub fn put_in(&mut self, values: &[PutIn], takes: &dyn Fn(&str) -> bool) -> Vec<PutInAt> {
        let mut root = std::mem::take(&mut self.root);
        let mut pass = Pass {
            document: self,
            values,
            takes,
            done: Vec::new(),
        };
        pass.table(&mut root, "");
        let done = pass.done;
        self.root = root;
        done
    }
}

/// Puts values in for `$name` and `${name}` in a text; `$$` is a dollar sign.
///
/// # Errors
/// A name that has no value.
pub(crate) fn put_into(text: &str, values: &[PutIn]) -> Result<String, Unnamed> {
    let mut whole = String::new();
    for part in parts(text) {
        match part {
            Part::Text(text) => whole.push_str(&text),
            Part::Name(name) => match values.iter().find(|value| value.name == name) {
                Some(value) => whole.push_str(&value.text),
                None => return Err(Unnamed::new(&name, values)),
            },
        }
    }
    Ok(whole)
}

/// A name that has no value.
pub(crate) struct Unnamed {
    pub(crate) what: String,
    pub(crate) valid: String,
}

impl Unnamed {
    fn new(name: &str, values: &[PutIn]) -> Self {
        let known = || values.iter().map(|value| value.name.as_str());
        let valid = match (nearest(name, known()), known().next()) {
            (Some(near), _) => format!("did you mean {}?", quote(&format!("${near}"))),
            (None, Some(_)) => {
                let names: Vec<_> = known().map(|name| quote(&format!("${name}"))).collect();
                format!("write one of {}; a dollar sign is \"$$\"", names.join(", "))
            }
            (None, None) => "a dollar sign is \"$$\"".to_owned(),
        };
        let what = format!("nothing is called {}", quote_short(&format!("${name}")));
        Self { what, valid }
    }
}

/// One pass over a document.
struct Pass<'a> {
    document: &'a Document,
    values: &'a [PutIn],
    takes: &'a dyn Fn(&str) -> bool,
    done: Vec<PutInAt>,
}

impl Pass<'_> {
    fn table(&mut self, table: &mut TableNode, path: &str) {
        for (key, entry) in &mut table.entries {
            let dot = if path.is_empty() { "" } else { "." };
            self.node(&mut entry.node, &format!("{path}{dot}{key}"));
        }
    }

    fn node(&mut self, node: &mut Node, path: &str) {
        match &mut node.value {
            Value::Table(table) => self.table(table, path),
            Value::Array(items) => {
                for (index, item) in items.iter_mut().enumerate() {
                    self.node(item, &format!("{path}.{index}"));
                }
            }
            Value::Text(text) if text.contains('$') && (self.takes)(path) => {
                let parts = parts(text);
                if let Some(value) = self.value(node, &parts, path) {
                    node.value = value;
                }
            }
            _ => {}
        }
    }

    /// What becomes of a string; `None` if a name in it has no value, which is reported.
    fn value(&mut self, node: &Node, parts: &[Part], path: &str) -> Option<Value> {
        if let [Part::Name(name)] = parts {
            let PutIn { text, is_bare, .. } = self.named(node, name, path)?;
            let literal = is_bare.then(|| DeValue::parse(text).ok()).flatten();
            let origin = node.origin;
            return Some(literal.map_or_else(
                || Value::Text(text.clone()),
                |literal| Node::new(&literal, &|_| origin).value,
            ));
        }
        let mut whole = String::new();
        for part in parts {
            match part {
                Part::Text(text) => whole.push_str(text),
                Part::Name(name) => whole.push_str(&self.named(node, name, path)?.text),
            }
        }
        Some(Value::Text(whole))
    }

    fn named(&mut self, node: &Node, name: &str, path: &str) -> Option<&PutIn> {
        let Some(value) = self.values.iter().find(|value| value.name == name) else {
            let Unnamed { what, valid } = Unnamed::new(name, self.values);
            let place = self.document.place_of(node.origin);
            self.document.add(place, path, what, valid);
            return None;
        };
        self.done.push(PutInAt {
            path: path.to_owned(),
            name: name.to_owned(),
        });
        Some(value)
    }
}

/// A part of a string.
#[derive(Debug, PartialEq, Eq)]
enum Part {
    Text(String),
    Name(String),
}

/// Takes a string apart at its names.
fn parts(text: &str) -> Vec<Part> {
    let mut parts = Vec::new();
    let mut plain = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('$') {
        plain.push_str(before);
        let braced = after.strip_prefix('{').and_then(|of| of.split_once('}'));
        let (name, behind) = match braced.filter(|(name, _)| is_placeholder_name(name)) {
            Some(found) => found,
            None => after.split_at(name_length(after)),
        };
        rest = behind;
        if name.is_empty() {
            plain.push('$');
            rest = after.strip_prefix('$').unwrap_or(after);
            continue;
        }
        if !plain.is_empty() {
            parts.push(Part::Text(std::mem::take(&mut plain)));
        }
        parts.push(Part::Name(name.to_owned()));
    }
    plain.push_str(rest);
    if !plain.is_empty() {
        parts.push(Part::Text(plain));
    }
    parts
}

/// Bytes of the name that a text begins with; 0 if it begins with none.
fn name_length(text: &str) -> usize {
    let first_fits = text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
    let end = text.find(|c: char| !(c.is_ascii_alphanumeric() || c == '_'));
    if first_fits {
        end.unwrap_or(text.len())
    } else {
        0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(name: &str, text: &str, is_bare: bool) -> PutIn {
        let (name, text) = (name.to_owned(), text.to_owned());
        PutIn {
            name,
            text,
            is_bare,
        }
    }

    /// The document with values put in everywhere but at `title`, as JSON, or what is wrong.
    fn put(text: &str) -> Result<String, String> {
        let values = [
            value("x", "8", true),
            value("size", "16KiB", false),
            value("on", "true", true),
            value("share", "0.5", true),
        ];
        let mut document = Document::parse("t.toml", text, &[]).unwrap();
        document.put_in(&values, &|path| path != "title");
        let json = document.to_json().to_string();
        let all = document.root().keys().len();
        document
            .finish(Ok(all))
            .map(|_| json)
            .map_err(|errors| errors.to_string())
    }

    #[test]
    fn a_whole_string_becomes_the_value_with_its_type() {
        let text = "a = \"$x\"\nb = '${size}'\nc = \"$on\"\nd = [\"$share\"]";
        let json = r#"{"a":8,"b":"16KiB","c":true,"d":[0.5]}"#;
        assert_eq!(put(text).as_deref(), Ok(json));
    }

    #[test]
    fn inside_a_string_the_text_is_put_in() {
        let text = "a = \"zipf:$share\"\nb = \"${x}KiB and $x.\"\nc = \"0..=$x\"";
        let json = r#"{"a":"zipf:0.5","b":"8KiB and 8.","c":"0..=8"}"#;
        assert_eq!(put(text).as_deref(), Ok(json));
    }

    #[test]
    fn other_dollars_and_other_keys_are_left_alone() {
        let text = "title = \"$x\"\na = \"$5 $ ${ ${} $$x $\"";
        let json = r#"{"a":"$5 $ ${ ${} $x $","title":"$x"}"#;
        assert_eq!(put(text).as_deref(), Ok(json));
    }

    #[test]
    fn a_name_without_a_value_is_reported_at_its_line() {
        assert_eq!(
            put("a = 1\n[b]\nc = [\"x\", \"of $sise\"]"),
            Err("t.toml:3: b.c.1: nothing is called \"$sise\"; did you mean \"$size\"?".to_owned())
        );
        let says = put("a = \"$zebra\"").unwrap_err();
        assert!(says.contains("write one of \"$x\", \"$size\""), "{says}");
    }
}
