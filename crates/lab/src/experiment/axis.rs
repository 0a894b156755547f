//! What varies from point to point: one axis, or several that are paired or crossed.
//!
//! The first axis is the horizontal one of tables and figures. An axis that is paired
//! with another (`zip`) takes its value at the same position. Any other axis is crossed:
//! every series is repeated for each of its values, and they are part of its name.

use zonelab_config::{Document, Item, PutIn, PutInAt, Reported, Table, is_placeholder_name};

use super::SeriesSpec;
use super::read::tables;

/// Most points of a series and its repetitions, for files with several axes.
const POINTS_MAX: usize = 10_000;

/// The least distance of two quantities at an axis, as a share of its length.
const CLOSEST: f64 = 0.1;

/// What varies along a series.
#[derive(Clone, Debug, PartialEq)]
pub struct Axis {
    /// Where it stands in the file: `axis`, or `axis.0` of several.
    pub key: String,
    /// Name of the quantity, `concurrency`.
    pub name: String,
    /// Its unit, empty if it has none.
    pub unit: String,
    /// Values as they are put in for `"$x"` or `"$name"`.
    pub values: Vec<AxisValue>,
    /// Axes whose values go with those of this one, the first with the first.
    pub zipped: Vec<Self>,
}

/// One value of the axis.
#[derive(Clone, Debug, PartialEq)]
pub struct AxisValue {
    /// As it stands in the file.
    pub text: String,
    /// As a number: bytes for a size, per cent for a percentage. Of words and of `true`
    /// and `false`, the position on the axis, from 1.
    pub number: f64,
    /// It stands in the file without quotes: a number, `true` or `false`.
    pub is_bare: bool,
}

impl AxisValue {
    /// As TOML.
    #[must_use]
    pub fn literal(&self) -> String {
        if self.is_bare {
            self.text.clone()
        } else {
            // Values come from TOML strings without escapes: see `value`.
            format!("\"{}\"", self.text)
        }
    }
}

/// Whether a value of an axis is known by its text only, as `append` is, and not by a
/// quantity that it says.
pub fn is_word(text: &str) -> bool {
    number_of(text).is_none()
}

/// Whether a value of an axis is more than its number: a word, or a quantity with its unit.
pub fn says_more_than_a_number(text: &str) -> bool {
    !text.is_empty() && text.parse::<f64>().is_err()
}

impl Axis {
    /// The axis and those that are paired with it.
    fn all(&self) -> impl Iterator<Item = &Self> {
        std::iter::once(self).chain(&self.zipped)
    }

    /// Its name, with those of the axes that are paired with it: `readers / ramp`.
    #[must_use]
    pub fn heading(&self) -> String {
        let names: Vec<&str> = self.all().map(|axis| axis.name.as_str()).collect();
        names.join(" / ")
    }

    /// A value of it as a person reads it, with those that are paired with it: `4 / 2ms`.
    #[must_use]
    pub fn shown(&self, x: &AxisValue) -> String {
        let mut values = self.values.iter();
        let index = values.position(|value| value.text == x.text);
        let paired = self
            .zipped
            .iter()
            .filter_map(|axis| axis.values.get(index?));
        let texts = std::iter::once(x)
            .chain(paired)
            .map(|value| value.text.as_str());
        texts.collect::<Vec<_>>().join(" / ")
    }

    /// Values with what is written at them in figures, if that is not the number: words,
    /// values that are paired with others, and quantities with their units, unless the axis has
    /// a unit itself. Of quantities that would lie close together, some are left out.
    #[must_use]
    pub fn labels(&self, is_log: bool) -> Vec<(f64, String)> {
        let text = |x: &AxisValue| (x.number, self.shown(x));
        let is_quantity = |x: &&AxisValue| says_more_than_a_number(&x.text) && !is_word(&x.text);
        if !self.zipped.is_empty() {
            return self.values.iter().map(text).collect();
        }
        if !self.unit.is_empty() || !self.values.iter().all(|x| is_quantity(&x)) {
            let words = self.values.iter().filter(|x| is_word(&x.text));
            return words.map(text).collect();
        }
        let place = |x: &AxisValue| {
            if is_log {
                libm::log(x.number)
            } else {
                x.number
            }
        };
        let mut sorted: Vec<&AxisValue> = self.values.iter().collect();
        sorted.sort_by(|a, b| a.number.total_cmp(&b.number));
        let range = sorted.first().zip(sorted.last());
        let range = range.map_or(0.0, |(low, high)| place(high) - place(low));
        let mut kept: Vec<&AxisValue> = Vec::new();
        for x in sorted {
            let last = kept.last().map(|of| place(x) - place(of));
            // A logarithmic axis has no place for 0.
            if !range.is_finite() || last.is_none_or(|gap| gap >= CLOSEST * range) {
                kept.push(x);
            }
        }
        kept.into_iter().map(text).collect()
    }

    /// Settings of the file that leave only the value at `index`.
    #[must_use]
    pub fn settings_of(&self, index: usize) -> Vec<String> {
        let setting = |axis: &Self| {
            let value = axis.values.get(index)?;
            Some(format!("{}.values=[{}]", axis.key, value.literal()))
        };
        self.all().filter_map(setting).collect()
    }
}

/// The axes of a file.
#[derive(Clone, Debug)]
pub(super) struct Axes {
    /// The horizontal one.
    pub(super) first: Axis,
    /// Those for whose values every series is repeated.
    pub(super) crossed: Vec<Axis>,
    /// They stand in the file as `[[axis]]`, so that each has a name of its own there.
    is_list: bool,
}

impl Axes {
    /// Reads them.
    pub(super) fn read(document: &Document) -> Result<Self, Reported> {
        let root = document.root();
        let is_list = root.get("axis", |item| Ok(item.is_array())).or(false)?;
        let axes = if is_list {
            Self::of_list(document, tables(&root, "axis", entry)?)?
        } else {
            Self {
                first: axis(&root.table("axis"))?,
                crossed: Vec::new(),
                is_list,
            }
        };
        for axis in std::iter::once(&axes.first).chain(&axes.crossed) {
            has_distinct_values(document, axis)?;
        }
        Ok(axes)
    }

    fn of_list(document: &Document, entries: Vec<Entry>) -> Result<Self, Reported> {
        let mut leading: Vec<Axis> = Vec::new();
        let mut names: Vec<String> = Vec::new();
        for (index, Entry { axis, zip }) in entries.into_iter().enumerate() {
            let key = format!("axis.{index}");
            check_name(document, &axis.name, &key, &names)?;
            names.push(axis.name.clone());
            let axis = Axis { key, ..axis };
            match zip {
                None => leading.push(axis),
                Some(with) => pair(document, &mut leading, axis, &with)?,
            }
        }
        let mut leading = leading.into_iter();
        let Some(first) = leading.next() else {
            let valid = "write [[axis]] with a name and values, or leave it out";
            return Err(document.report("axis", "there is no axis in the list", valid));
        };
        let axes = Self {
            first,
            crossed: leading.collect(),
            is_list: true,
        };
        let points = axes.combinations().saturating_mul(axes.first.values.len());
        if points > POINTS_MAX {
            let what = format!("the axes make {points} points of every series");
            let valid = format!("at most {POINTS_MAX}; zip = \"NAME\" pairs values");
            return Err(document.report("axis", what, valid));
        }
        Ok(axes)
    }

    /// How often every series is repeated; 1 without crossed axes.
    pub(super) fn combinations(&self) -> usize {
        let lengths = self.crossed.iter().map(|axis| axis.values.len());
        lengths.fold(1, usize::saturating_mul)
    }

    /// The position on each crossed axis; the last axis moves first.
    fn positions(&self, combination: usize) -> Vec<usize> {
        let mut rest = combination;
        let mut positions: Vec<usize> = Vec::with_capacity(self.crossed.len());
        for axis in self.crossed.iter().rev() {
            let length = axis.values.len().max(1);
            positions.push(rest % length);
            rest /= length;
        }
        positions.reverse();
        positions
    }

    /// What stands for their names at the value `x` of the first axis, or at its first
    /// value, and at a combination of the others.
    pub(super) fn put_in(&self, x: Option<&AxisValue>, combination: usize) -> Vec<PutIn> {
        let position = |x: &AxisValue| {
            let mut values = self.first.values.iter();
            values.position(|value| value.text == x.text).unwrap_or(0)
        };
        let index = x.map_or(0, position);
        let mut values = Vec::new();
        if let Some(value) = x.or_else(|| self.first.values.first()) {
            values.push(stands_for("x", value));
            values.extend(named(&self.first, value));
        }
        let others = self.first.zipped.iter().map(|axis| (axis, index));
        let positions = self.positions(combination);
        let crossed = self.crossed.iter().zip(positions);
        let crossed = crossed.flat_map(|(axis, index)| axis.all().map(move |axis| (axis, index)));
        for (axis, index) in others.chain(crossed) {
            values.extend(axis.values.get(index).and_then(|value| named(axis, value)));
        }
        values
    }

    /// Reports an axis that nothing in the file depends on.
    pub(super) fn are_used(&self, document: &Document, used: &[PutInAt]) -> Result<(), Reported> {
        if !self.is_list {
            return Ok(());
        }
        let mut result = Ok(());
        let all = std::iter::once(&self.first).chain(&self.crossed);
        for (n, axis) in all.flat_map(Axis::all).enumerate() {
            let is_own = |at: &PutInAt| at.name == axis.name || (n == 0 && at.name == "x");
            if !used.iter().any(is_own) {
                let name = &axis.name;
                let what = format!("nothing depends on the axis \"{name}\"");
                let valid = format!(
                    "write \"${name}\" as a value of the drive, a job, the host, a fault or a series"
                );
                result = Err(document.report(&axis.key, what, valid));
            }
        }
        result
    }

    /// Series, repeated for each combination of the crossed axes.
    pub(super) fn repeat(&self, series: Vec<SeriesSpec>) -> Vec<SeriesSpec> {
        let combinations = self.combinations();
        let repeat = |spec: SeriesSpec| {
            (0..combinations).map(move |combination| SeriesSpec {
                name: format!("{}{}", spec.name, self.suffix(combination)),
                combination,
                ..spec.clone()
            })
        };
        series.into_iter().flat_map(repeat).collect()
    }

    /// What the name of a series says of the crossed axes: ", block 16KiB".
    fn suffix(&self, combination: usize) -> String {
        let positions = self.positions(combination);
        let value = |(axis, index): (&Axis, usize)| {
            let text = &axis.values.get(index)?.text;
            let gap = if axis.unit.is_empty() { "" } else { " " };
            Some(format!(", {} {text}{gap}{}", axis.name, axis.unit))
        };
        let said = self.crossed.iter().zip(positions);
        said.filter_map(value).collect()
    }
}

/// The keys in which `$name` stands for a value: those that say what a point runs on and
/// what it runs, and not those by which its parts are named and compared.
pub(super) fn takes_values(path: &str) -> bool {
    let keys: Vec<&str> = path.split('.').collect();
    let varies = ["drive", "scheduler", "via", "ftl", "full_zones"];
    match keys.as_slice() {
        ["profile" | "drive" | "host" | "ftl" | "faults", ..] => true,
        ["job" | "scheduler", _, key, ..] => *key != "name",
        ["series", _, key, ..] => varies.contains(key),
        ["matrix", "foreground" | "background", _, key, ..] => !["name", "levels"].contains(key),
        _ => false,
    }
}

/// What stands for the names of axes at the value `x` of the first, and at a combination of
/// the crossed ones.
pub(super) fn values_at(
    (first, crossed): (&Axis, &[Axis]),
    x: &AxisValue,
    combination: usize,
) -> Vec<PutIn> {
    let axes = Axes {
        first: first.clone(),
        crossed: crossed.to_vec(),
        is_list: true,
    };
    axes.put_in(Some(x), combination)
}

fn named(axis: &Axis, value: &AxisValue) -> Option<PutIn> {
    is_placeholder_name(&axis.name).then(|| stands_for(&axis.name, value))
}

fn stands_for(name: &str, value: &AxisValue) -> PutIn {
    PutIn {
        name: name.to_owned(),
        text: value.text.clone(),
        is_bare: value.is_bare,
    }
}

/// An axis of several, with the name of the one that it is paired with.
struct Entry {
    axis: Axis,
    zip: Option<String>,
}

fn entry(table: &Table<'_>) -> Result<Entry, Reported> {
    let name = table.string("name").required();
    let values = table.list("values", |_| Ok(())).required();
    let zip = table.string("zip").optional();
    let axis = axis(table);
    let (_, _, zip, axis) = (name?, values?, zip?, axis?);
    Ok(Entry { axis, zip })
}

/// Names of several axes are placeholders, and so differ.
fn check_name(
    document: &Document,
    name: &str,
    key: &str,
    before: &[String],
) -> Result<(), Reported> {
    let report = |what: String, valid: &str| document.report(&format!("{key}.name"), what, valid);
    if !is_placeholder_name(name) {
        let what = format!("\"{name}\" cannot stand behind a dollar sign");
        return Err(report(what, "letters, digits and _, such as queue_depth"));
    }
    if before.iter().any(|known| known == name) {
        return Err(report(
            format!("\"{name}\" is there already"),
            "names must differ",
        ));
    }
    if name == "x" && !before.is_empty() {
        return Err(report(
            "\"$x\" is the first axis".to_owned(),
            "give it another name",
        ));
    }
    Ok(())
}

/// Pairs an axis with the one called `with`.
fn pair(document: &Document, leading: &mut [Axis], axis: Axis, with: &str) -> Result<(), Reported> {
    let names: Vec<String> = leading.iter().map(|axis| axis.name.clone()).collect();
    let Some(other) = leading.iter_mut().find(|other| other.name == with) else {
        let what =
            format!("no axis before this one that is not paired itself is called \"{with}\"");
        let valid = match names.as_slice() {
            [] => "the first axis stands alone".to_owned(),
            names => format!("choose one of: {}", names.join(", ")),
        };
        return Err(document.report(&format!("{}.zip", axis.key), what, valid));
    };
    let (has, needs) = (axis.values.len(), other.values.len());
    if has != needs {
        let what = format!("{has} values are paired with {needs} of \"{with}\"");
        let valid = "as many of each: the first goes with the first";
        return Err(document.report(&format!("{}.values", axis.key), what, valid));
    }
    other.zipped.push(axis);
    Ok(())
}

/// Points go by the values of an axis.
fn has_distinct_values(document: &Document, axis: &Axis) -> Result<(), Reported> {
    let values = format!("{}.values", axis.key);
    if axis.values.is_empty() {
        let valid = "without the key, there is one point";
        return Err(document.report(&values, "there are no values", valid));
    }
    let mut result = Ok(());
    for (n, value) in axis.values.iter().enumerate() {
        let is_same = |other: &AxisValue| other.text == value.text;
        if axis.values[..n].iter().any(is_same) {
            let what = format!("\"{}\" is there already", value.text);
            result = Err(document.report(&format!("{values}.{n}"), what, "names must differ"));
        }
    }
    result
}

fn axis(table: &Table<'_>) -> Result<Axis, Reported> {
    let name = table.string("name").or("run".to_owned());
    let unit = table.string("unit").or(String::new());
    let values = table.get("values", axis_values).or(vec![AxisValue {
        text: "1".to_owned(),
        number: 1.0,
        is_bare: true,
    }]);
    let (name, unit, values) = (name?, unit?, values?);
    Ok(Axis {
        key: "axis".to_owned(),
        name,
        unit,
        values,
        zipped: Vec::new(),
    })
}

/// Either quantities, or words that are numbered by their position.
fn axis_values(item: &Item<'_>) -> Result<Vec<AxisValue>, Reported> {
    let items = item.items()?;
    let values: Vec<_> = items.iter().map(value).collect();
    let mut values = values.into_iter().collect::<Result<Vec<_>, _>>()?;
    let words = values.iter().filter(|value| is_word(&value.text)).count();
    if words == values.len() {
        for (n, value) in values.iter_mut().enumerate() {
            value.number = (n + 1) as f64;
        }
    } else if words > 0 {
        let mut result = Ok(Vec::new());
        for (item, value) in items.iter().zip(&values) {
            if is_word(&value.text) {
                result = Err(item.fail(
                    format!("\"{}\" is not a number, as others here are", value.text),
                    "write whole numbers, sizes, times, rates or percentages, or only words",
                ));
            }
        }
        return result;
    }
    Ok(values)
}

fn value(item: &Item<'_>) -> Result<AxisValue, Reported> {
    if item.is_integer() {
        let number = item.u64()?;
        return Ok(AxisValue {
            text: number.to_string(),
            number: number as f64,
            is_bare: true,
        });
    }
    if let Some(text) = item.bare() {
        // `true` and `false` get theirs from their position.
        let is_flag = matches!(text.as_str(), "true" | "false");
        let number = if is_flag { 0.0 } else { item.f64()? };
        return Ok(AxisValue {
            text,
            number,
            is_bare: true,
        });
    }
    let text = item.str()?;
    if text.contains(['"', '\\']) || text.chars().any(char::is_control) {
        return Err(item.fail("an axis value cannot hold quotes or backslashes", ""));
    }
    let number = number_of(text).unwrap_or(0.0);
    Ok(AxisValue {
        text: text.to_owned(),
        number,
        is_bare: false,
    })
}

/// The number of a text on an axis: of a size its bytes, of a percentage its per cent.
/// `None` for words.
pub(crate) fn number_of(text: &str) -> Option<f64> {
    use zonelab_config::units::{parse_duration, parse_percent, parse_rate, parse_size};
    if let Ok(ppm) = parse_percent(text) {
        return Some(f64::from(ppm) / 1e4);
    }
    let units = [
        parse_size(text).ok(),
        parse_duration(text).ok(),
        parse_rate(text).ok(),
    ];
    let whole = units.into_iter().flatten().next().map(|units| units as f64);
    whole.or_else(|| text.parse().ok().filter(|n| f64::is_finite(*n)))
}
