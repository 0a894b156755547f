//! `--set a.b.c=value`: values from the command line in place of the file's.

use std::str::FromStr;

use toml::de::DeValue;

use crate::document::{PutIn, Unnamed, put_into};
use crate::error::{Elsewhere, Place, Problem};
use crate::nearest::nearest;
use crate::node::{Entry, Node, Origin, TableNode, Value};
use crate::units::shorten;

/// A value from the command line that takes the place of the file's.
///
/// Written `path=value`. The path is keys joined by dots; a number selects an
/// element of an array, from 0 (`job.1.iodepth=4`). The value is TOML, or,
/// if it is not, a string without quotes: `media.read=60us`, `zones.count=48`,
/// `name=x`. Nothing behind `=` removes the key.
///
/// Two are equal if they say the same, wherever they stand.
#[derive(Clone, Debug)]
pub struct Override {
    text: String,
    /// As the user wrote it, for messages.
    written: String,
    /// The file, line and key where it stands, if it is not one of the command line.
    stated: Option<Stated>,
    path: Vec<String>,
    value: Option<String>,
}

impl PartialEq for Override {
    fn eq(&self, other: &Self) -> bool {
        // Path and value are read from the text.
        (&self.text, &self.written) == (&other.text, &other.written)
    }
}

impl Eq for Override {}

/// Where an override stands in a file.
#[derive(Clone, Debug)]
struct Stated {
    file: String,
    line: usize,
    key: String,
}

impl Override {
    /// Keys in a path.
    const DEPTH_MAX: usize = 16;

    /// Reads what follows `--set`.
    ///
    /// # Errors
    /// No `=`, or a path that is not keys joined by dots.
    pub fn parse(text: &str) -> Result<Self, Problem> {
        let wrong = |what: &str| Problem {
            file: String::new(),
            place: Place::Override(format!("--set {}", shorten(text))),
            key: String::new(),
            what: what.to_owned(),
            valid: "write for example `--set media.read=60us`".to_owned(),
        };
        let (path, value) = text
            .split_once('=')
            .ok_or_else(|| wrong("there is no `=`"))?;
        let path: Vec<String> = path.trim().split('.').map(str::to_owned).collect();
        let is_key = |key: &String| {
            let in_key = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
            !key.is_empty() && key.chars().all(in_key)
        };
        if !path.iter().all(is_key) {
            return Err(wrong("what stands before `=` is not keys joined by dots"));
        }
        if path.len() > Self::DEPTH_MAX {
            return Err(wrong("there are too many keys in the path"));
        }
        let value = value.trim();
        let value = (!value.is_empty()).then(|| value.to_owned());
        Ok(Self {
            text: text.to_owned(),
            written: format!("--set {text}"),
            stated: None,
            path,
            value,
        })
    }

    /// The same override, written by another option than `--set`, for messages:
    /// `--records 5`.
    #[must_use]
    pub fn written_as(mut self, option: impl Into<String>) -> Self {
        self.written = option.into();
        self
    }

    /// The same override, which stands at a line of a file, in its key `key`.
    #[must_use]
    pub(crate) fn stated_in(mut self, file: &str, line: usize, key: &str) -> Self {
        self.stated = Some(Stated {
            file: file.to_owned(),
            line,
            key: key.to_owned(),
        });
        self
    }

    /// The same with values put in for `$name` and `${name}` in its value; `$$` is a dollar
    /// sign.
    ///
    /// # Errors
    /// A name that has no value.
    pub fn put_in(&self, values: &[PutIn]) -> Result<Self, Problem> {
        let Some(value) = self.value.as_deref().filter(|value| value.contains('$')) else {
            return Ok(self.clone());
        };
        let file = self.stated.as_ref().map(|of| of.file.clone());
        let put = put_into(value, values).map_err(|Unnamed { what, valid }| Problem {
            file: file.unwrap_or_default(),
            place: self.place(),
            key: self.key(),
            what,
            valid,
        })?;
        Ok(Self {
            text: format!("{}={put}", self.key()),
            written: format!("--set {}={put}", self.key()),
            stated: self.stated.clone(),
            path: self.path.clone(),
            value: Some(put),
        })
    }

    /// Where it stands, for messages: as the user wrote it, `--set media.read=60us`, or at a
    /// line of a file.
    pub(crate) fn place(&self) -> Place {
        match &self.stated {
            None => Place::Override(shorten(&self.written)),
            Some(Stated { file, line, key }) => Place::Elsewhere(Box::new(Elsewhere {
                file: file.clone(),
                line: *line,
                text: format!("{key}: {}", shorten(&self.text)),
                written: shorten(&self.written),
            })),
        }
    }

    /// The path, keys joined by dots.
    #[must_use]
    pub fn key(&self) -> String {
        self.path.join(".")
    }

    /// The override as it was written.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Changes a document. `index` is the override's own, for the origin of its value.
    pub(crate) fn apply(&self, root: &mut TableNode, index: usize) -> Result<(), Refusal> {
        let origin = Origin::Override(index);
        let (last, parents) = self.path.split_last().expect("splitting text gives a part");
        let mut place = Slot::Table(root);
        for (depth, key) in parents.iter().enumerate() {
            place = place.step(
                key,
                &self.path[..depth].join("."),
                origin,
                self.value.is_some(),
            )?;
        }
        let parent = parents.join(".");
        match &self.value {
            None => place.remove(last, &parent),
            Some(value) => place.insert(last, &parent, self.node(value, origin)?, origin),
        }
    }

    fn node(&self, value: &str, origin: Origin) -> Result<Node, Refusal> {
        match DeValue::parse(value) {
            Ok(parsed) => Ok(Node::new(&parsed, &|_| origin)),
            // What begins like a string, array or table was meant as one.
            Err(error) if value.starts_with(['"', '\'', '[', '{']) => Err(Refusal {
                what: format!("the value is not TOML: {}", error.message()),
                valid: "write for example `--set media.read=60us`".to_owned(),
            }),
            Err(_) => Ok(Node {
                origin,
                value: Value::Text(value.to_owned()),
            }),
        }
    }
}

impl FromStr for Override {
    type Err = Problem;
    fn from_str(text: &str) -> Result<Self, Problem> {
        Self::parse(text)
    }
}

/// Why an override does not fit a document.
#[derive(Debug)]
pub(crate) struct Refusal {
    pub(crate) what: String,
    pub(crate) valid: String,
}

/// What a path has reached.
enum Slot<'n> {
    Table(&'n mut TableNode),
    Array(&'n mut Vec<Node>),
}

impl<'n> Slot<'n> {
    /// Follows one key; `path` is the way so far, for messages.
    fn step(self, key: &str, path: &str, origin: Origin, create: bool) -> Result<Self, Refusal> {
        let node = match self {
            Self::Table(table) => {
                if !create && !table.entries.contains_key(key) {
                    return Err(nothing_to_remove(table, key));
                }
                let empty = || Node {
                    origin,
                    value: Value::Table(TableNode::default()),
                };
                let entry = table.entries.entry(key.to_owned());
                &mut entry
                    .or_insert_with(|| Entry {
                        origin,
                        node: empty(),
                    })
                    .node
            }
            Self::Array(items) => element(items, key, path)?,
        };
        let what = node.describe();
        match &mut node.value {
            Value::Table(table) => Ok(Slot::Table(table)),
            Value::Array(items) => Ok(Slot::Array(items)),
            _ => Err(Refusal {
                what: format!("`{}` is {what}", join(path, key)),
                valid: "only tables and arrays have keys below them".to_owned(),
            }),
        }
    }

    fn insert(self, key: &str, path: &str, node: Node, origin: Origin) -> Result<(), Refusal> {
        match self {
            Self::Table(table) => {
                table.entries.insert(key.to_owned(), Entry { origin, node });
            }
            Self::Array(items) => *element(items, key, path)? = node,
        }
        Ok(())
    }

    fn remove(self, key: &str, path: &str) -> Result<(), Refusal> {
        match self {
            Self::Table(table) => match table.entries.remove(key) {
                Some(_) => Ok(()),
                None => Err(nothing_to_remove(table, key)),
            },
            Self::Array(_) => Err(Refusal {
                what: format!("an element of the array `{path}` cannot be removed"),
                valid: format!("set the whole array: `--set {path}=[...]`"),
            }),
        }
    }
}

fn element<'n>(items: &'n mut [Node], key: &str, path: &str) -> Result<&'n mut Node, Refusal> {
    let count = items.len();
    let element = key
        .parse()
        .ok()
        .and_then(|index: usize| items.get_mut(index));
    element.ok_or_else(|| Refusal {
        what: format!("`{path}` is an array of {count} and has no element `{key}`"),
        valid: if count == 0 {
            "it has no elements".to_owned()
        } else {
            format!("elements are 0 to {}", count - 1)
        },
    })
}

fn nothing_to_remove(table: &TableNode, key: &str) -> Refusal {
    let meant = nearest(key, table.entries.keys().map(String::as_str));
    Refusal {
        what: format!("there is no key `{key}` to remove"),
        valid: meant.map_or_else(String::new, |meant| format!("did you mean `{meant}`?")),
    }
}

fn join(path: &str, key: &str) -> String {
    if path.is_empty() {
        key.to_owned()
    } else {
        format!("{path}.{key}")
    }
}
