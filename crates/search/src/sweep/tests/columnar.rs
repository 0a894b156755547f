//! The data set as Parquet, beside the same as CSV and as JSON Lines.

use arrow_array::cast::AsArray as _;
use arrow_array::types::{Float64Type, Int64Type, UInt32Type, UInt64Type};
use arrow_array::{Array as _, RecordBatch};
use arrow_schema::DataType;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;

use super::*;

/// A value as the CSV has it.
fn as_text(batch: &RecordBatch, column: usize, row: usize) -> String {
    let array = batch.column(column);
    if array.is_null(row) {
        return String::new();
    }
    match array.data_type() {
        DataType::UInt32 => array.as_primitive::<UInt32Type>().value(row).to_string(),
        DataType::UInt64 => array.as_primitive::<UInt64Type>().value(row).to_string(),
        DataType::Int64 => array.as_primitive::<Int64Type>().value(row).to_string(),
        DataType::Float64 => array.as_primitive::<Float64Type>().value(row).to_string(),
        DataType::Boolean => array.as_boolean().value(row).to_string(),
        DataType::Utf8 => array.as_string::<i32>().value(row).to_owned(),
        other => panic!("{other}"),
    }
}

/// Fields of comma-separated values, line by line (RFC 4180).
fn parse_csv(text: &str) -> Vec<Vec<String>> {
    let (mut rows, mut row, mut field) = (Vec::new(), Vec::new(), String::new());
    let mut is_quoted = false;
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '"' if is_quoted && chars.peek() == Some(&'"') => {
                chars.next();
                field.push('"');
            }
            '"' => is_quoted = !is_quoted,
            ',' if !is_quoted => row.push(std::mem::take(&mut field)),
            '\n' if !is_quoted => {
                row.push(std::mem::take(&mut field));
                rows.push(std::mem::take(&mut row));
            }
            c => field.push(c),
        }
    }
    assert!(
        row.is_empty() && field.is_empty(),
        "the last line has an end"
    );
    rows
}

#[test]
fn what_is_read_back_is_what_the_csv_says() {
    let scratch = Scratch::new();
    let text = SWEEP.replace("\"64KiB\"]", "\"17KiB\"]");
    let text = format!(
        "{text}[[vary]]\nkey = \"host.start_spread\"\nname = \"spread\"\nvalues = [\"0us\"]\n\
         [[vary]]\nname = \"ends\"\nkey = \"job.0.ends_run\"\nvalues = [true]\n"
    );
    let pack = prepare(&text).unwrap().into_pack();
    let store = Store::create(&scratch.0, pack, Existing::Keep).unwrap();
    run_all(store.with_format(Some(Format::Parquet)), 2);
    let file = std::fs::File::open(scratch.0.join(PARQUET)).unwrap();
    let reader = ParquetRecordBatchReaderBuilder::try_new(file).unwrap();
    let schema = reader.schema().clone();
    let batches: Vec<RecordBatch> = reader.build().unwrap().map(Result::unwrap).collect();
    let csv = std::fs::read_to_string(scratch.0.join(CSV)).unwrap();
    let csv = parse_csv(&csv);
    let lines = std::fs::read_to_string(scratch.0.join(JSON_LINES)).unwrap();
    let lines: Vec<serde_json::Value> = lines
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let names: Vec<&String> = schema.fields().iter().map(|field| field.name()).collect();
    assert_eq!(csv[0].iter().collect::<Vec<_>>(), names);
    let mut row = 1;
    for batch in &batches {
        for at in 0..batch.num_rows() {
            let texts: Vec<String> = (0..names.len()).map(|n| as_text(batch, n, at)).collect();
            assert_eq!(texts, csv[row], "row {row}");
            let line = &lines[row - 1];
            assert_eq!(line.as_object().unwrap().len(), names.len());
            let of_line = names.iter().map(|name| match &line[name.as_str()] {
                serde_json::Value::Null => String::new(),
                serde_json::Value::String(text) => text.clone(),
                serde_json::Value::Number(number) if number.is_f64() => {
                    number.as_f64().unwrap().to_string()
                }
                other => other.to_string(),
            });
            assert_eq!(of_line.collect::<Vec<_>>(), csv[row], "row {row}");
            row += 1;
        }
    }
    assert_eq!(row, csv.len());
    let field = |name: &str| schema.field_with_name(name).unwrap();
    assert_eq!(*field("granularity_bytes").data_type(), DataType::Int64);
    assert_eq!(field("granularity_bytes").metadata()["unit"], "B");
    assert_eq!(*field("ends").data_type(), DataType::Boolean);
    assert_eq!(*field("spread_ns").data_type(), DataType::Int64);
    assert_eq!(field("lat_p99_us").metadata()["unit"], "us");
    assert_eq!(*field("seed").data_type(), DataType::UInt64);
}
