//! A page to look through many points: parallel coordinates, a scatter plot, the Pareto front,
//! and the run behind each point with the command that gives it again.
//!
//! Like the report it is one file that fetches nothing. The front is computed in the page, since
//! its reader chooses objectives and leaves points out; what is plotted are canvases, which draw
//! thousands of points while a filter is dragged. Everything that a pointer does can be done by
//! the keyboard: filters are fields as well, and points rows of a table.

use serde::Serialize;
use zonelab_lab::space::Quantity;
use zonelab_page as parts;

use crate::sweep::Goal;

/// Version of the embedded data, for who reads them from the file.
const SCHEMA: u32 = 1;

/// Scripts in the order in which they build on each other.
const SCRIPTS: [&str; 5] = [
    parts::BASE,
    parts::SCALE,
    include_str!("page/state.js"),
    include_str!("page/plots.js"),
    include_str!("page/explore.js"),
];

/// What a column is.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Role {
    /// What differs from point to point.
    Input,
    /// What is to be little or much.
    Objective(Goal),
    /// What was measured besides.
    Metric,
}

/// Values of a column, one for each point.
#[derive(Clone, Debug, PartialEq)]
pub enum Values {
    /// Numbers.
    Numbers(Vec<Option<f64>>),
    /// Words.
    Words(Vec<Option<String>>),
}

/// A column.
#[derive(Clone, Debug, PartialEq)]
pub struct Column {
    /// Its name.
    pub name: String,
    /// Unit of its numbers; `ns` and `B` are shown in the unit that fits each value.
    pub unit: String,
    /// What it is.
    pub role: Role,
    /// Its values.
    pub values: Values,
}

/// A point, besides its values.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Point {
    /// The words of the command that are this point's own.
    pub command: String,
    /// What a reader must know of it; empty for nothing.
    pub note: String,
}

/// Points, and what is said of all of them.
#[derive(Clone, Debug, PartialEq)]
pub struct Explorer<'a> {
    /// What it is of, in a word: "Sweep".
    pub kind: &'a str,
    /// Heading.
    pub title: &'a str,
    /// Program and version that made it.
    pub tool: &'a str,
    /// Seed of all of it.
    pub seed: u64,
    /// The command that gives all of it again; empty if it is not known.
    pub command: &'a str,
    /// The command of a point: before and after its own words.
    pub command_of_point: (&'a str, &'a str),
    /// What that command does.
    pub command_note: &'a str,
    /// Where the same numbers are besides.
    pub files_note: &'a str,
    /// What a reader must know first.
    pub notices: &'a [String],
    /// Columns of the same length.
    pub columns: &'a [Column],
    /// One for each value of a column.
    pub points: &'a [Point],
    /// Figures and tables for who reads without scripts, as HTML.
    pub still: &'a str,
}

impl Values {
    /// Values that stand in files as texts: numbers in base units, with the unit, if all of them
    /// say as much of the same quantity.
    #[must_use]
    pub fn of_texts(texts: &[Option<&str>]) -> (Self, String) {
        let parsed = texts.iter().map(|text| text.map(Quantity::of));
        let parsed: Vec<_> = parsed.collect();
        let mut quantities = parsed.iter().flatten();
        let first = quantities
            .next()
            .copied()
            .flatten()
            .map(|(quantity, _)| quantity);
        let same = |of: &Option<(Quantity, u64)>| of.map(|(quantity, _)| quantity) == first;
        if let Some(quantity) = first.filter(|_| quantities.all(same)) {
            let values = parsed
                .iter()
                .map(|of| of.flatten().map(|(_, value)| value as f64));
            let (unit, scale) = match quantity {
                Quantity::Time => ("ns", 1.0),
                Quantity::Size => ("B", 1.0),
                Quantity::Rate => ("MiB/s", 1.0 / 1_048_576.0),
                Quantity::Share => ("%", 1e-4),
                Quantity::Count => ("1", 1.0),
            };
            let values = values.map(|value| value.map(|value| value * scale));
            return (Self::Numbers(values.collect()), unit.to_owned());
        }
        let numbers = texts
            .iter()
            .map(|text| text.map(|text| text.parse::<f64>().ok()));
        let numbers: Vec<_> = numbers.collect();
        if numbers.iter().flatten().all(Option::is_some) {
            let values = numbers.into_iter().map(Option::flatten);
            return (Self::Numbers(values.collect()), "1".to_owned());
        }
        let words = texts.iter().map(|text| text.map(str::to_owned));
        (Self::Words(words.collect()), String::new())
    }
}

/// A word of a command for a POSIX shell.
#[must_use]
pub fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "_@%+=:,./-".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
    }
}

#[derive(Serialize)]
struct Data<'a> {
    schema: u32,
    tool: &'a str,
    seed: u64,
    command: &'a str,
    command_parts: (&'a str, &'a str),
    command_note: &'a str,
    files_note: &'a str,
    notices: &'a [String],
    columns: Vec<ColumnData<'a>>,
    /// Values of each point, by column: numbers, or places of words.
    rows: Vec<Vec<Option<f64>>>,
    commands: Vec<&'a str>,
    notes: Vec<&'a str>,
}

#[derive(Serialize)]
struct ColumnData<'a> {
    name: &'a str,
    unit: &'a str,
    role: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    goal: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    words: Option<Vec<&'a str>>,
}

impl Explorer<'_> {
    /// The page as an HTML document.
    ///
    /// # Panics
    /// Never: there is nothing that JSON cannot say.
    #[must_use]
    pub fn to_html(&self) -> String {
        let columns: Vec<_> = self.columns.iter().map(column).collect();
        let rows = (0..self.points.len()).map(|point| {
            let values = columns.iter().map(|(_, values)| values.get(point).copied());
            values.map(Option::flatten).collect()
        });
        let data = Data {
            schema: SCHEMA,
            tool: self.tool,
            seed: self.seed,
            command: self.command,
            command_parts: self.command_of_point,
            command_note: self.command_note,
            files_note: self.files_note,
            notices: self.notices,
            rows: rows.collect(),
            commands: self.points.iter().map(|of| of.command.as_str()).collect(),
            notes: self.points.iter().map(|of| of.note.as_str()).collect(),
            columns: columns.into_iter().map(|(data, _)| data).collect(),
        };
        let json = serde_json::to_string(&data).expect("all keys are strings");
        let link = |anchor: &str, name: &str| (anchor.to_owned(), name.to_owned());
        let links = [
            link("coordinates", "Parallel coordinates"),
            link("plot", "Scatter plot"),
            link("run", "Run"),
            link("runs", "Points"),
        ];
        parts::document(&parts::Document {
            kind: self.kind,
            title: self.title,
            links: &links,
            style: include_str!("page/explore.css"),
            body: format!(
                "<noscript>\n{}</noscript>\n<div id=\"explorer\"></div>\n",
                self.still
            ),
            end: parts::data_and_scripts(&json, &SCRIPTS),
        })
    }
}

/// A column with its values as numbers.
fn column(of: &Column) -> (ColumnData<'_>, Vec<Option<f64>>) {
    let (words, values) = match &of.values {
        Values::Numbers(values) => {
            let finite = values.iter().map(|value| value.filter(|v| v.is_finite()));
            (None, finite.collect())
        }
        Values::Words(values) => {
            let mut words: Vec<&str> = Vec::new();
            for word in values.iter().flatten() {
                if !words.contains(&word.as_str()) {
                    words.push(word);
                }
            }
            let place = |word: &String| {
                let place = words.iter().position(|known| known == word);
                place.map(|place| place as f64)
            };
            let places = values.iter().map(|word| place(word.as_ref()?)).collect();
            (Some(words), places)
        }
    };
    let (role, goal) = match of.role {
        Role::Input => ("input", None),
        Role::Objective(Goal::Minimize) => ("objective", Some("min")),
        Role::Objective(Goal::Maximize) => ("objective", Some("max")),
        Role::Metric => ("metric", None),
    };
    let data = ColumnData {
        name: &of.name,
        unit: &of.unit,
        role,
        goal,
        words,
    };
    (data, values)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_numbers_if_all_of_them_are() {
        let of = |texts: &[&str]| {
            let texts: Vec<Option<&str>> = texts.iter().map(|text| Some(*text)).collect();
            Values::of_texts(&texts)
        };
        let numbers = |values: &[f64], unit: &str| {
            let values = values.iter().map(|value| Some(*value)).collect();
            (Values::Numbers(values), unit.to_owned())
        };
        assert_eq!(
            of(&["16KiB", "1MiB"]),
            numbers(&[16384.0, 1_048_576.0], "B")
        );
        assert_eq!(of(&["10us", "0s"]), numbers(&[1e4, 0.0], "ns"));
        assert_eq!(of(&["3", "12"]), numbers(&[3.0, 12.0], "1"));
        assert_eq!(of(&["0.5", "2"]), numbers(&[0.5, 2.0], "1"));
        assert!(matches!(of(&["10us", "16KiB"]).0, Values::Words(_)));
        assert!(matches!(of(&["true", "false"]).0, Values::Words(_)));
        let (some, _) = Values::of_texts(&[None, Some("4")]);
        assert_eq!(some, Values::Numbers(vec![None, Some(4.0)]));
    }

    #[test]
    fn words_survive_a_shell() {
        assert_eq!(
            [quoted(""), quoted("$(a)"), quoted("it's")],
            ["''", "'$(a)'", r"'it'\''s'"]
        );
        assert_eq!(quoted("a.b=16KiB"), "a.b=16KiB");
    }

    #[test]
    fn the_page_has_every_value_and_nothing_gets_out_of_its_data() {
        let evil = "</script><!--";
        let columns = [
            Column {
                name: evil.to_owned(),
                unit: "ns".to_owned(),
                role: Role::Input,
                values: Values::Numbers(vec![Some(1.5), Some(f64::NAN), None]),
            },
            Column {
                name: "design".to_owned(),
                unit: String::new(),
                role: Role::Objective(Goal::Maximize),
                values: Values::Words(vec![Some("b".to_owned()), None, Some("b".to_owned())]),
            },
        ];
        let points = [evil, "", "x"].map(|command| Point {
            command: command.to_owned(),
            note: String::new(),
        });
        let page = Explorer {
            kind: "Sweep",
            title: evil,
            tool: "t",
            seed: 1,
            command: "c",
            command_of_point: ("zonelab run x", "--seed 1"),
            command_note: "",
            files_note: "",
            notices: &[],
            columns: &columns,
            points: &points,
            still: "",
        };
        let html = page.to_html();
        assert_eq!(html.matches("</script>").count(), 2);
        let (_, rest) = html.split_once("type=\"application/json\">").unwrap();
        let (data, _) = rest.split_once("</script>").unwrap();
        let data: serde_json::Value = serde_json::from_str(data).unwrap();
        assert_eq!(data["columns"][0]["name"], evil);
        assert_eq!(data["columns"][1]["words"], serde_json::json!(["b"]));
        assert_eq!(data["columns"][1]["goal"], "max");
        let rows = serde_json::json!([[1.5, 0.0], [null, null], [null, 0.0]]);
        assert_eq!(data["rows"], rows);
    }
}
