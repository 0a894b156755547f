//! Python objects as TOML and as settings, JSON as Python objects.

use pyo3::IntoPyObjectExt as _;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PyFloat, PyInt, PyList, PyMapping, PySequence, PyString};
use serde_json::Value as Json;
use toml_edit::{Array, ArrayOfTables, DocumentMut, InlineTable, Item, Table, Value};

use crate::errors;

/// Greatest depth of tables in tables: deeper ones contain themselves.
const DEPTH_MAX: usize = 32;

/// A dictionary as TOML text, as `zonelab` reads it from files.
///
/// Dictionaries become tables and lists of dictionaries arrays of tables.
///
/// # Errors
/// `InvalidInput`: a value that TOML does not have, with the path of its key.
#[pyfunction]
pub(crate) fn to_toml(data: &Bound<'_, PyMapping>) -> PyResult<String> {
    let mut document = DocumentMut::new();
    *document.as_table_mut() = table(data, "", 0)?;
    Ok(document.to_string())
}

fn table(data: &Bound<'_, PyMapping>, path: &str, depth: usize) -> PyResult<Table> {
    let mut table = Table::new();
    table.set_implicit(true);
    for (key, value) in entries(data, path, depth)? {
        let path = join(path, &key);
        let value = if let Ok(inner) = value.cast::<PyMapping>() {
            Item::Table(self::table(inner, &path, depth + 1)?)
        } else if let Some(rows) = tables(&value)? {
            let mut array = ArrayOfTables::new();
            for (n, row) in rows.iter().enumerate() {
                array.push(self::table(row, &join(&path, &n.to_string()), depth + 1)?);
            }
            Item::ArrayOfTables(array)
        } else {
            Item::Value(scalar_or_array(&value, &path, depth + 1)?)
        };
        table.insert(&key, value);
    }
    Ok(table)
}

/// The keys and values of a mapping.
fn entries<'py>(
    data: &Bound<'py, PyMapping>,
    path: &str,
    depth: usize,
) -> PyResult<Vec<(String, Bound<'py, PyAny>)>> {
    if depth > DEPTH_MAX {
        return Err(errors::invalid(format!(
            "{path}: too many tables in tables"
        )));
    }
    let mut entries = Vec::with_capacity(data.len()?);
    for item in data.items()? {
        let (key, value): (Bound<'py, PyAny>, Bound<'py, PyAny>) = item.extract()?;
        let key: String = key.extract().map_err(|_| {
            let place = if path.is_empty() { "" } else { ": " };
            errors::invalid(format!("{path}{place}the key {key} is no text"))
        })?;
        entries.push((key, value));
    }
    Ok(entries)
}

/// A list that has nothing but dictionaries, and one at least.
fn tables<'py>(value: &Bound<'py, PyAny>) -> PyResult<Option<Vec<Bound<'py, PyMapping>>>> {
    let Some(items) = items(value)? else {
        return Ok(None);
    };
    let tables: Option<Vec<_>> = items
        .into_iter()
        .map(|item| item.cast_into::<PyMapping>().ok())
        .collect();
    Ok(tables.filter(|tables| !tables.is_empty()))
}

/// The elements of a list, a tuple or the like; `None` for everything else.
fn items<'py>(value: &Bound<'py, PyAny>) -> PyResult<Option<Vec<Bound<'py, PyAny>>>> {
    if value.is_instance_of::<PyString>() {
        return Ok(None);
    }
    // What numpy has is no sequence, and says itself how it becomes a list.
    let list = match value.cast::<PySequence>() {
        Ok(sequence) => sequence.to_list()?,
        Err(_) => match value.getattr("tolist") {
            Ok(tolist) => match tolist.call0()?.cast_into::<PyList>() {
                Ok(list) => list,
                Err(_) => return Ok(None),
            },
            Err(_) => return Ok(None),
        },
    };
    Ok(Some(list.iter().collect()))
}

fn scalar_or_array(value: &Bound<'_, PyAny>, path: &str, depth: usize) -> PyResult<Value> {
    if depth > DEPTH_MAX {
        return Err(errors::invalid(format!("{path}: too many lists in lists")));
    }
    if let Some(items) = items(value)? {
        let mut array = Array::new();
        for (n, item) in items.iter().enumerate() {
            array.push(scalar_or_array(
                item,
                &join(path, &n.to_string()),
                depth + 1,
            )?);
        }
        return Ok(Value::Array(array));
    }
    if let Ok(data) = value.cast::<PyMapping>() {
        let mut table = InlineTable::new();
        for (key, value) in entries(data, path, depth)? {
            let value = scalar_or_array(&value, &join(path, &key), depth + 1)?;
            table.insert(&key, value);
        }
        return Ok(Value::InlineTable(table));
    }
    scalar(value).ok_or_else(|| {
        let kind = value.get_type();
        let kind = kind.name().map(|name| name.to_string());
        let kind = kind.unwrap_or_else(|_| "object".to_owned());
        errors::invalid(format!(
            "{path}: TOML has no {kind}; give a text, a number, True or False, a list or a \
             dictionary, or leave the key out"
        ))
    })
}

fn scalar(value: &Bound<'_, PyAny>) -> Option<Value> {
    if let Ok(text) = value.cast::<PyString>() {
        return Some(text.to_str().ok()?.into());
    }
    if let Ok(flag) = value.cast::<PyBool>() {
        return Some(flag.is_true().into());
    }
    // A bool of numpy is none of Python's, and would be taken for a number.
    if let Ok(flag) = value.extract::<bool>() {
        return Some(flag.into());
    }
    if value.is_instance_of::<PyFloat>() {
        return Some(value.extract::<f64>().ok()?.into());
    }
    if value.is_instance_of::<PyInt>() || value.hasattr("__index__").unwrap_or(false) {
        return Some(value.extract::<i64>().ok()?.into());
    }
    if let Ok(path) = value.call_method0("__fspath__") {
        return Some(path.extract::<String>().ok()?.into());
    }
    let number = value.call_method0("__float__").ok()?;
    Some(number.extract::<f64>().ok()?.into())
}

fn join(path: &str, key: &str) -> String {
    match path {
        "" => key.to_owned(),
        _ => format!("{path}.{key}"),
    }
}

/// Settings as `--set` takes them: from `"key=value"` texts, or from a dictionary whose
/// values are what they would be in the file. `None` as a value takes the key out.
pub(crate) fn settings(set: Option<&Bound<'_, PyAny>>) -> PyResult<Vec<String>> {
    let Some(set) = set else {
        return Ok(Vec::new());
    };
    if let Ok(text) = set.cast::<PyString>() {
        return Ok(vec![text.to_str()?.to_owned()]);
    }
    if let Ok(data) = set.cast::<PyMapping>() {
        return entries(data, "", 0)?
            .into_iter()
            .map(|(key, value)| Ok(format!("{key}={}", setting(&value, &key)?)))
            .collect();
    }
    let texts: PyResult<Vec<String>> = set.try_iter()?.map(|text| text?.extract()).collect();
    texts.map_err(|_| {
        errors::usage("set: give texts like \"drive.media.read=60us\", or a dictionary of them")
    })
}

fn setting(value: &Bound<'_, PyAny>, key: &str) -> PyResult<String> {
    if value.is_none() {
        return Ok(String::new());
    }
    // Texts in quotes: a text that looks like a number is a text.
    Ok(scalar_or_array(value, key, 0)?.to_string())
}

/// JSON as Python has it.
pub(crate) fn from_json(py: Python<'_>, json: &Json) -> PyResult<Py<PyAny>> {
    match json {
        Json::Null => Ok(py.None()),
        Json::Bool(flag) => flag.into_py_any(py),
        Json::Number(number) => match (number.as_u64(), number.as_i64()) {
            (Some(number), _) => number.into_py_any(py),
            (None, Some(number)) => number.into_py_any(py),
            (None, None) => number.as_f64().into_py_any(py),
        },
        Json::String(text) => text.into_py_any(py),
        Json::Array(items) => {
            let items: Vec<_> = items
                .iter()
                .map(|item| from_json(py, item))
                .collect::<PyResult<_>>()?;
            items.into_py_any(py)
        }
        Json::Object(entries) => {
            let dict = PyDict::new(py);
            for (key, value) in entries {
                dict.set_item(key, from_json(py, value)?)?;
            }
            dict.into_py_any(py)
        }
    }
}
