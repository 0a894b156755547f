//! Many commands in columns, so that a million of them are one call.

use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyString};
use zonelab_device::Nanos;

use super::state::{State, Target};
use crate::commands::{Kind, blocks};
use crate::errors;

/// A column: one value for all, or one for each.
enum Column<T> {
    All(T),
    Each(Vec<T>),
}

impl<T: Copy> Column<T> {
    fn at(&self, row: usize) -> T {
        match self {
            Self::All(value) => *value,
            Self::Each(values) => values[row],
        }
    }

    const fn len(&self) -> Option<usize> {
        match self {
            Self::All(_) => None,
            Self::Each(values) => Some(values.len()),
        }
    }
}

/// Commands in columns.
pub(super) struct Batch {
    rows: usize,
    kinds: Column<Kind>,
    lba: Option<Column<u64>>,
    zone: Option<Column<u64>>,
    nbytes: Option<Column<u64>>,
    at: Option<Column<u64>>,
    nsid: u32,
}

impl Batch {
    /// What Python gives for columns: operations, blocks, zones, lengths, times.
    ///
    /// # Errors
    /// `UsageError`: columns of different lengths, or what is no column.
    pub(super) fn of(
        op: &Bound<'_, PyAny>,
        numbers: [Option<&Bound<'_, PyAny>>; 4],
        nsid: u32,
    ) -> PyResult<Self> {
        let names = ["lba", "zone", "nbytes", "at"];
        let kinds = kinds(op)?;
        let mut columns = Vec::with_capacity(numbers.len());
        for (name, given) in names.iter().zip(numbers) {
            columns.push(given.map(|given| column(name, given)).transpose()?);
        }
        let mut rows = kinds.len().map(|rows| ("op", rows));
        for (name, column) in names.iter().zip(&columns) {
            let Some(length) = column.as_ref().and_then(Column::len) else {
                continue;
            };
            match rows {
                Some((first, rows)) if rows != length => {
                    return Err(errors::usage(format!(
                        "submit_many: {first} has {rows} values and {name} {length}"
                    )));
                }
                _ => rows = Some((name, length)),
            }
        }
        let mut columns = columns.into_iter();
        let mut next = || columns.next().flatten();
        Ok(Self {
            rows: rows.map_or(1, |(_, rows)| rows),
            kinds,
            lba: next(),
            zone: next(),
            nbytes: next(),
            at: next(),
            nsid,
        })
    }

    pub(super) const fn len(&self) -> usize {
        self.rows
    }

    /// Submits all of them; with a depth, as many at a time.
    pub(super) fn submit(&self, state: &mut State, depth: Option<usize>) -> PyResult<()> {
        if depth == Some(0) {
            return Err(errors::usage("depth = 0: has to be 1 at least"));
        }
        for row in 0..self.rows {
            if let Some(at) = &self.at {
                state.go_to(Some(Nanos(at.at(row))))?;
            }
            while depth.is_some_and(|depth| state.in_flight() >= depth) {
                if !state.run_to_completion()? {
                    return Err(errors::device("commands in flight never complete"));
                }
            }
            let placed = self.submit_row(state, row);
            placed.map_err(|error| of_row(error, row))?;
        }
        Ok(())
    }

    fn submit_row(&self, state: &mut State, row: usize) -> PyResult<()> {
        let kind = self.kinds.at(row);
        let nlb = match (&self.nbytes, kind.has_blocks()) {
            (_, false) => 0,
            (Some(nbytes), true) => blocks(nbytes.at(row), state.lba_bytes())?,
            (None, true) => {
                let name = kind.name();
                return Err(errors::usage(format!("{name}: give its length, nbytes")));
            }
        };
        let zone = self.zone.as_ref().map(|zone| zone.at(row));
        let zone = zone.map(u32::try_from).transpose();
        let zone = zone.map_err(|_| errors::usage("zone: no drive has that many"))?;
        let target = Target {
            nsid: self.nsid,
            lba: self.lba.as_ref().map(|lba| lba.at(row)),
            zone,
            offset: None,
        };
        state.submit(kind, &target, (nlb, None), None, None)?;
        Ok(())
    }
}

/// Says which row an argument that is wrong stands in.
fn of_row(error: PyErr, row: usize) -> PyErr {
    Python::attach(|py| match error.is_instance_of::<errors::UsageError>(py) {
        true => errors::usage(format!("row {row}: {}", error.value(py))),
        false => error,
    })
}

/// A column of operations.
fn kinds(op: &Bound<'_, PyAny>) -> PyResult<Column<Kind>> {
    if let Ok(name) = op.cast::<PyString>() {
        return Ok(Column::All(Kind::named(name.to_str()?)?));
    }
    let list = match op.getattr_opt("tolist")? {
        Some(tolist) => tolist.call0()?,
        None => op.clone(),
    };
    let kinds = list.try_iter()?.map(|name| {
        let name = name?;
        Kind::named(name.cast::<PyString>()?.to_str()?)
    });
    Ok(Column::Each(kinds.collect::<PyResult<_>>()?))
}

/// A column of whole numbers: of numpy, pandas, polars or pyarrow, or any sequence.
fn column(name: &str, given: &Bound<'_, PyAny>) -> PyResult<Column<u64>> {
    if let Ok(number) = given.extract::<u64>() {
        return Ok(Column::All(number));
    }
    let to_numpy = given.getattr_opt("to_numpy")?;
    let array = match to_numpy {
        Some(to_numpy) => to_numpy.call0()?,
        None => given.clone(),
    };
    // An array of numpy, in one copy. Of floats nothing is believed.
    let kind = array.getattr_opt("dtype")?;
    let kind = kind.map(|dtype| dtype.getattr("kind")?.extract::<String>());
    let values = match kind.transpose()?.as_deref() {
        Some("u" | "i") => {
            let least = array.call_method0("min");
            let is_negative = least.is_ok_and(|least| least.lt(0).unwrap_or(false));
            if is_negative {
                return Err(errors::usage(format!("{name}: a value is negative")));
            }
            let words = array
                .call_method1("astype", ("<u8",))?
                .call_method0("tobytes")?;
            let words = words.cast::<PyBytes>()?.as_bytes().chunks_exact(8);
            words
                .map(|word| word.try_into().map_or(0, u64::from_le_bytes))
                .collect()
        }
        _ => array.extract::<Vec<u64>>().map_err(|_| {
            errors::usage(format!(
                "{name}: give a whole number, or a list or array of whole numbers"
            ))
        })?,
    };
    Ok(Column::Each(values))
}
