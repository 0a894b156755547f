//! Tables of results, for Arrow.
//!
//! A [`Frame`] is one record batch. It leaves through the Arrow PyCapsule interface, by
//! which pyarrow, pandas, polars, DuckDB and others take it over without a copy, and
//! without this crate knowing any of them.

use std::fmt::Write as _;
use std::sync::Arc;

use arrow_array::cast::AsArray as _;
use arrow_array::ffi::{FFI_ArrowSchema, to_ffi};
use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use arrow_array::types::{ArrowPrimitiveType, Float64Type, Int64Type, UInt32Type, UInt64Type};
use arrow_array::{
    Array as _, ArrayRef, BooleanArray, Float64Array, RecordBatch, RecordBatchIterator,
    StringArray, StructArray, UInt64Array,
};
use arrow_schema::{ArrowError, DataType, Field, Schema};
use pyo3::IntoPyObjectExt as _;
use pyo3::exceptions::{PyKeyError, PyRuntimeError};
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyDict, PyList};
use zonelab_lab::output::csv_field;
use zonelab_lab::rows::number;

/// Rows that are shown of a frame.
const SHOWN: usize = 10;

/// A table of results.
#[pyclass(frozen, module = "zonelab")]
pub(crate) struct Frame {
    batch: RecordBatch,
}

/// The columns of a frame that is being made.
#[derive(Default)]
pub(crate) struct Columns {
    fields: Vec<Field>,
    arrays: Vec<ArrayRef>,
}

impl Columns {
    /// A column of texts.
    pub(crate) fn text<T: AsRef<str>>(
        self,
        name: &str,
        values: impl IntoIterator<Item = T>,
    ) -> Self {
        let array = StringArray::from_iter_values(values);
        self.with(name, DataType::Utf8, Arc::new(array))
    }

    /// A column of texts, some of which are missing.
    pub(crate) fn text_or_none<T: AsRef<str>>(
        self,
        name: &str,
        values: impl IntoIterator<Item = Option<T>>,
    ) -> Self {
        let array = StringArray::from_iter(values);
        self.with(name, DataType::Utf8, Arc::new(array))
    }

    /// A column of numbers.
    pub(crate) fn number(self, name: &str, values: impl IntoIterator<Item = f64>) -> Self {
        let array = Float64Array::from_iter_values(values);
        self.with(name, DataType::Float64, Arc::new(array))
    }

    /// A column of numbers, some of which are missing.
    pub(crate) fn number_or_none(
        self,
        name: &str,
        values: impl IntoIterator<Item = Option<f64>>,
    ) -> Self {
        let array = Float64Array::from_iter(values);
        self.with(name, DataType::Float64, Arc::new(array))
    }

    /// A column of whole numbers.
    pub(crate) fn count(self, name: &str, values: impl IntoIterator<Item = u64>) -> Self {
        let array = UInt64Array::from_iter_values(values);
        self.with(name, DataType::UInt64, Arc::new(array))
    }

    /// A column of whole numbers, some of which are missing.
    pub(crate) fn count_or_none(
        self,
        name: &str,
        values: impl IntoIterator<Item = Option<u64>>,
    ) -> Self {
        let array = UInt64Array::from_iter(values);
        self.with(name, DataType::UInt64, Arc::new(array))
    }

    /// A column of yes and no, some of which are missing.
    pub(crate) fn flag_or_none(
        self,
        name: &str,
        values: impl IntoIterator<Item = Option<bool>>,
    ) -> Self {
        let array = BooleanArray::from_iter(values);
        self.with(name, DataType::Boolean, Arc::new(array))
    }

    fn with(mut self, name: &str, kind: DataType, array: ArrayRef) -> Self {
        let has_missing = array.null_count() > 0;
        self.fields.push(Field::new(name, kind, has_missing));
        self.arrays.push(array);
        self
    }

    /// The frame.
    pub(crate) fn frame(self) -> PyResult<Frame> {
        let schema = Arc::new(Schema::new(self.fields));
        let batch = RecordBatch::try_new(schema, self.arrays).map_err(broken)?;
        Ok(Frame { batch })
    }
}

/// Columns of one length, and types that exist: cannot fail, and if it does, it is a bug.
fn broken(error: ArrowError) -> PyErr {
    PyRuntimeError::new_err(error.to_string())
}

/// A value of a column whose type was looked at.
fn primitive<T: ArrowPrimitiveType>(array: &ArrayRef, row: usize) -> T::Native {
    array.as_primitive::<T>().value(row)
}

impl Frame {
    /// A table that was made elsewhere, of columns of numbers, texts, and yes and no.
    pub(crate) const fn of(batch: RecordBatch) -> Self {
        Self { batch }
    }

    /// One value as text; empty if it is missing.
    fn cell(&self, column: usize, row: usize) -> String {
        let array = self.batch.column(column);
        if array.is_null(row) {
            return String::new();
        }
        match array.data_type() {
            DataType::Float64 => number(primitive::<Float64Type>(array, row)),
            DataType::UInt64 => primitive::<UInt64Type>(array, row).to_string(),
            DataType::UInt32 => primitive::<UInt32Type>(array, row).to_string(),
            DataType::Int64 => primitive::<Int64Type>(array, row).to_string(),
            DataType::Boolean => array.as_boolean().value(row).to_string(),
            _ => array.as_string::<i32>().value(row).to_owned(),
        }
    }

    fn value(&self, py: Python<'_>, column: usize, row: usize) -> PyResult<Py<PyAny>> {
        let array = self.batch.column(column);
        if array.is_null(row) {
            return Ok(py.None());
        }
        match array.data_type() {
            DataType::Float64 => primitive::<Float64Type>(array, row).into_py_any(py),
            DataType::UInt64 => primitive::<UInt64Type>(array, row).into_py_any(py),
            DataType::UInt32 => primitive::<UInt32Type>(array, row).into_py_any(py),
            DataType::Int64 => primitive::<Int64Type>(array, row).into_py_any(py),
            DataType::Boolean => array.as_boolean().value(row).into_py_any(py),
            _ => array.as_string::<i32>().value(row).into_py_any(py),
        }
    }

    fn names(&self) -> Vec<String> {
        let schema = self.batch.schema_ref();
        let fields = schema.fields().iter();
        fields.map(|field| field.name().clone()).collect()
    }

    fn schema(&self) -> PyResult<FFI_ArrowSchema> {
        FFI_ArrowSchema::try_from(self.batch.schema_ref().as_ref()).map_err(broken)
    }
}

#[pymethods]
impl Frame {
    /// Names of the columns.
    #[getter]
    fn columns(&self) -> Vec<String> {
        self.names()
    }

    fn __len__(&self) -> usize {
        self.batch.num_rows()
    }

    /// A column, as a list.
    fn __getitem__<'py>(&self, py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyList>> {
        let names = self.names();
        let Some(column) = names.iter().position(|known| known == name) else {
            let names = names.join(", ");
            return Err(PyKeyError::new_err(format!(
                "\"{name}\": there are {names}"
            )));
        };
        let values: Vec<_> = (0..self.batch.num_rows())
            .map(|row| self.value(py, column, row))
            .collect::<PyResult<_>>()?;
        PyList::new(py, values)
    }

    /// The rows, each as a dictionary.
    fn to_dicts<'py>(&self, py: Python<'py>) -> PyResult<Vec<Bound<'py, PyDict>>> {
        let names = self.names();
        let rows = 0..self.batch.num_rows();
        rows.map(|row| {
            let dict = PyDict::new(py);
            for (column, name) in names.iter().enumerate() {
                dict.set_item(name, self.value(py, column, row)?)?;
            }
            Ok(dict)
        })
        .collect()
    }

    /// The table as comma-separated values, as the command writes them.
    fn to_csv(&self) -> String {
        let mut csv = self.names().join(",");
        csv.push('\n');
        for row in 0..self.batch.num_rows() {
            let cells = 0..self.batch.num_columns();
            let cells: Vec<_> = cells
                .map(|column| csv_field(&self.cell(column, row)))
                .collect();
            csv.push_str(&cells.join(","));
            csv.push('\n');
        }
        csv
    }

    /// A DataFrame of pandas, which has to be installed, and pyarrow.
    fn to_pandas<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        Self::to_arrow(slf)?.call_method0("to_pandas")
    }

    /// A DataFrame of polars, which has to be installed.
    fn to_polars<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        slf.py().import("polars")?.call_method1("DataFrame", (slf,))
    }

    /// A Table of pyarrow, which has to be installed.
    fn to_arrow<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        slf.py().import("pyarrow")?.call_method1("table", (slf,))
    }

    /// The Arrow PyCapsule interface: the table as a stream of one batch.
    #[pyo3(signature = (requested_schema = None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        // A wish, which the interface lets producers leave alone.
        drop(requested_schema);
        let schema = self.batch.schema();
        let batches = RecordBatchIterator::new([Ok(self.batch.clone())], schema);
        let stream = FFI_ArrowArrayStream::new(Box::new(batches));
        PyCapsule::new_with_value(py, stream, c"arrow_array_stream")
    }

    /// The Arrow PyCapsule interface: the table as an array of structures.
    #[pyo3(signature = (requested_schema = None))]
    fn __arrow_c_array__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<(Bound<'py, PyCapsule>, Bound<'py, PyCapsule>)> {
        drop(requested_schema);
        let rows = StructArray::from(self.batch.clone());
        let (array, _) = to_ffi(&rows.to_data()).map_err(broken)?;
        Ok((
            PyCapsule::new_with_value(py, self.schema()?, c"arrow_schema")?,
            PyCapsule::new_with_value(py, array, c"arrow_array")?,
        ))
    }

    /// The Arrow PyCapsule interface: names and types of the columns.
    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        PyCapsule::new_with_value(py, self.schema()?, c"arrow_schema")
    }

    fn __repr__(&self) -> String {
        let rows = self.batch.num_rows();
        let names = self.names();
        let mut lines = vec![names.clone()];
        lines.extend((0..rows.min(SHOWN)).map(|row| {
            let cells = 0..names.len();
            cells.map(|column| self.cell(column, row)).collect()
        }));
        let width = |column: usize| {
            let cells = lines.iter().map(|line| line[column].chars().count());
            cells.max().unwrap_or_default()
        };
        let widths: Vec<_> = (0..names.len()).map(width).collect();
        let mut text = String::new();
        for line in &lines {
            let mut cells = String::new();
            for (cell, width) in line.iter().zip(&widths) {
                // Writing to a string does not fail.
                let _ = write!(cells, "{cell:<width$}  ");
            }
            let _ = writeln!(text, "{}", cells.trim_end());
        }
        let _ = write!(text, "[{rows} rows]");
        text
    }

    fn _repr_html_(&self) -> String {
        let rows = self.batch.num_rows();
        let line = |tag: &str, cells: &mut dyn Iterator<Item = String>| {
            let cells = cells.map(|cell| format!("<{tag}>{}</{tag}>", escaped(&cell)));
            format!("<tr>{}</tr>", cells.collect::<String>())
        };
        let head = line("th", &mut self.names().into_iter());
        let body: String = (0..rows.min(SHOWN))
            .map(|row| {
                line(
                    "td",
                    &mut (0..self.batch.num_columns()).map(|c| self.cell(c, row)),
                )
            })
            .collect();
        format!("<table><thead>{head}</thead><tbody>{body}</tbody></table><p>{rows} rows</p>")
    }
}

/// Text as HTML.
pub(crate) fn escaped(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
}
