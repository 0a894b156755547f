//! The data set of a sweep in the form of Arrow (feature `arrow`), and as a Parquet file
//! (feature `parquet`).

use std::sync::Arc;

use arrow_array::{
    ArrayRef, BooleanArray, Float64Array, Int64Array, RecordBatch, StringArray, UInt32Array,
    UInt64Array,
};
use arrow_schema::{DataType, Field, Schema};

use super::dataset::{Column, Table, Values};

impl Values {
    const fn data_type(&self) -> DataType {
        match self {
            Self::U32(_) => DataType::UInt32,
            Self::U64(_) => DataType::UInt64,
            Self::I64(_) => DataType::Int64,
            Self::Float(_) => DataType::Float64,
            Self::Bool(_) => DataType::Boolean,
            Self::Text(_) => DataType::Utf8,
        }
    }

    fn to_array(&self) -> ArrayRef {
        match self {
            Self::U32(values) => Arc::new(UInt32Array::from(values.clone())),
            Self::U64(values) => Arc::new(UInt64Array::from(values.clone())),
            Self::I64(values) => Arc::new(Int64Array::from(values.clone())),
            Self::Float(values) => Arc::new(Float64Array::from(values.clone())),
            Self::Bool(values) => Arc::new(BooleanArray::from(values.clone())),
            Self::Text(values) => {
                Arc::new(values.iter().map(Option::as_deref).collect::<StringArray>())
            }
        }
    }
}

impl Table {
    /// As Arrow has it, with the units of columns in their metadata.
    ///
    /// # Errors
    /// Columns are of different lengths, which they never are.
    pub fn to_batch(&self) -> Result<RecordBatch, arrow_schema::ArrowError> {
        let field = |column: &Column| {
            let is_nullable = !matches!(column.values, Values::U32(_));
            let field = Field::new(&column.name, column.values.data_type(), is_nullable);
            let unit = [("unit".to_owned(), column.unit.clone())];
            if column.unit.is_empty() {
                field
            } else {
                field.with_metadata(unit)
            }
        };
        let fields: Vec<Field> = self.columns.iter().map(field).collect();
        let arrays = self.columns.iter().map(|column| column.values.to_array());
        RecordBatch::try_new(Arc::new(Schema::new(fields)), arrays.collect())
    }

    /// As a Parquet file. The same table is the same bytes: no date, no machine.
    ///
    /// # Errors
    /// Arrow refuses it, which it never does.
    #[cfg(feature = "parquet")]
    pub(super) fn to_parquet(
        &self,
        pack: &super::pack::Pack,
    ) -> Result<Vec<u8>, parquet::errors::ParquetError> {
        use parquet::arrow::ArrowWriter;
        use parquet::basic::Compression;
        use parquet::file::metadata::KeyValue;
        use parquet::file::properties::WriterProperties;

        let batch = self.to_batch()?;
        let about = |key: &str, value: &str| KeyValue::new(key.to_owned(), value.to_owned());
        let properties = WriterProperties::builder()
            .set_created_by(format!("zonelab {}", pack.inputs.version))
            .set_compression(Compression::SNAPPY)
            .set_key_value_metadata(Some(vec![
                about("zonelab.sweep", &pack.name),
                about("zonelab.digest", &pack.digest()),
            ]))
            .build();
        let mut writer = ArrowWriter::try_new(Vec::new(), batch.schema(), Some(properties))?;
        writer.write(&batch)?;
        writer.into_inner()
    }
}
