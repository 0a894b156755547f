//! Workloads of YCSB from their property files.

use super::choice::Choice;
use super::{Clients, KEY_BYTES, KeyOrder, Kind, Mix, Sizes, Spec};

/// YCSB's exponent.
const THETA: f64 = 0.99;

/// Weight of a proportion of 1.
const WHOLE: f64 = 1_000_000.0;

/// Bytes of a hashed key: "user" and 19 digits.
const HASHED_KEY_BYTES: u32 = 23;

/// What is wrong with a property file.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {what}; {valid}")]
pub struct YcsbError {
    /// Line of the property, from 1; 0: it is missing.
    pub line: usize,
    /// What is wrong, with the property and its value.
    pub what: String,
    /// What would be right.
    pub valid: String,
}

/// Properties that change nothing here: what is measured how, and where records are kept.
const WITHOUT_EFFECT: [&str; 19] = [
    "core_workload_insertion_retry_interval",
    "core_workload_insertion_retry_limit",
    "dataintegrity",
    "db",
    "dotransactions",
    "exporter",
    "exportfile",
    "fieldnameprefix",
    "keyprefix",
    "label",
    "measurementtype",
    "operationretrylimit",
    "readallfields",
    "readallfieldsbyname",
    "reportlatencyforeacherror",
    "status",
    "table",
    "threads",
    "writeallfields",
];

/// Properties of a file with their lines, the last of each.
struct Properties(Vec<(usize, String, String)>);

impl Properties {
    /// Lines of `key = value`, `key: value` or `key value`; `#` and `!` begin comments, and a
    /// backslash at its end joins a line with the next.
    fn parse(text: &str) -> Self {
        let mut found: Vec<(usize, String, String)> = Vec::new();
        let mut lines = (1..).zip(text.lines());
        while let Some((number, line)) = lines.next() {
            let mut logical = line.trim_start().to_owned();
            if logical.is_empty() || logical.starts_with(['#', '!']) {
                continue;
            }
            while logical.ends_with('\\') {
                logical.pop();
                let (_, more) = lines.next().unwrap_or_default();
                logical.push_str(more.trim_start());
            }
            let end = logical
                .find(|c: char| c == '=' || c == ':' || c.is_whitespace())
                .unwrap_or(logical.len());
            let (key, rest) = logical.split_at(end);
            let rest = rest.trim_start();
            let value = rest.strip_prefix(['=', ':']).unwrap_or(rest).trim();
            found.retain(|(_, other, _)| other != key);
            found.push((number, key.to_owned(), value.to_owned()));
        }
        Self(found)
    }

    /// Takes a property out.
    fn take(&mut self, key: &str) -> Option<(usize, String)> {
        let at = self.0.iter().position(|(_, other, _)| other == key)?;
        let (line, _, value) = self.0.remove(at);
        Some((line, value))
    }

    /// A number.
    fn number<T: std::str::FromStr>(
        &mut self,
        key: &str,
        default: T,
        valid: &str,
    ) -> Result<T, YcsbError> {
        let Some((line, value)) = self.take(key) else {
            return Ok(default);
        };
        value.parse().map_err(|_| wrong(line, (key, &value), valid))
    }

    /// One of several words, of which others that YCSB has are not built.
    fn choice<T: Copy>(&mut self, key: &str, words: &[(&str, T)]) -> Result<T, YcsbError> {
        let Some((line, value)) = self.take(key) else {
            return Ok(words[0].1);
        };
        let found = words.iter().find(|(word, _)| *word == value);
        let known: Vec<&str> = words.iter().map(|(word, _)| *word).collect();
        let valid = || format!("what is built: {}", known.join(", "));
        found
            .map(|(_, of)| *of)
            .ok_or_else(|| wrong(line, (key, &value), &valid()))
    }

    /// Whatever is left must change nothing; properties of one store have a dot in their names.
    fn finish(self) -> Result<(), YcsbError> {
        let has_effect = |key: &str| !key.contains('.') && !WITHOUT_EFFECT.contains(&key);
        match self.0.iter().find(|(_, key, _)| has_effect(key)) {
            None => Ok(()),
            Some((line, key, value)) => {
                let valid = "it is unknown here; leave it out";
                Err(wrong(*line, (key, value), valid))
            }
        }
    }
}

fn wrong(line: usize, (key, value): (&str, &str), valid: &str) -> YcsbError {
    let value: String = value
        .chars()
        .take(60)
        .flat_map(char::escape_debug)
        .collect();
    let key: String = key.chars().take(60).flat_map(char::escape_debug).collect();
    YcsbError {
        line,
        what: format!("{key}={value}"),
        valid: valid.to_owned(),
    }
}

/// The workload of a property file of YCSB's `CoreWorkload`: its records are loaded, then its
/// operations are done. Properties have YCSB's defaults, but for `recordcount` and
/// `operationcount`, which have to be stated.
///
/// # Errors
/// The first property that is wrong, or that would change something that is not built.
pub fn spec(name: &str, text: &str) -> Result<Spec, YcsbError> {
    let mut of = Properties::parse(text);
    refuse_others(&mut of)?;
    let (records, operations) = (
        count(&mut of, "recordcount")?,
        count(&mut of, "operationcount")?,
    );
    let mix = mix(&mut of)?;
    let choices = [
        ("uniform", Choice::Uniform),
        ("zipfian", Choice::Zipfian { theta: THETA }),
        ("latest", Choice::Latest { theta: THETA }),
    ];
    let choice = of.choice("requestdistribution", &choices)?;
    let values = values(&mut of)?;
    let scans = scans(&mut of)?;
    let orders = [
        ("hashed", KeyOrder::Scattered),
        ("ordered", KeyOrder::ByAge),
    ];
    let order = of.choice("insertorder", &orders)?;
    let padding = of.number("zeropadding", 1_u32, "a number of digits")?;
    let threads = of.number("threadcount", 1_u32, "a number of clients")?;
    of.finish()?;
    let key_bytes = match order {
        KeyOrder::Scattered => HASHED_KEY_BYTES,
        // "user" and the number.
        KeyOrder::ByAge => {
            let digits = records.saturating_add(operations).max(1).ilog10() + 1;
            digits.max(padding).saturating_add(4)
        }
    };
    Ok(Spec {
        name: name.to_owned(),
        key_bytes: key_bytes.clamp(*KEY_BYTES.start(), *KEY_BYTES.end()),
        values,
        order,
        records,
        loads: true,
        clients: vec![Clients {
            count: threads,
            operations: Some(operations),
            mix,
            choice,
            scans,
        }],
    })
}

/// Refuses other classes of workloads, and what bounds a run in a way that is not built.
fn refuse_others(of: &mut Properties) -> Result<(), YcsbError> {
    if let Some((line, class)) = of.take("workload")
        && !class.ends_with("CoreWorkload")
    {
        let valid = "site.ycsb.workloads.CoreWorkload is built";
        return Err(wrong(line, ("workload", &class), valid));
    }
    for (key, valid) in [
        ("target", "clients do not pause; leave it out"),
        (
            "maxexecutiontime",
            "operationcount ends the run; leave it out",
        ),
        ("insertstart", "records begin with the first; leave it out"),
    ] {
        if let Some((line, value)) = of.take(key)
            && value != "0"
        {
            return Err(wrong(line, (key, &value), valid));
        }
    }
    Ok(())
}

fn count(of: &mut Properties, key: &'static str) -> Result<u64, YcsbError> {
    let Some((line, value)) = of.take(key) else {
        return Err(YcsbError {
            line: 0,
            what: format!("{key} is missing"),
            valid: format!("write for example {key}=1000000"),
        });
    };
    let parsed = value.parse().ok().filter(|count| *count > 0);
    parsed.ok_or_else(|| wrong(line, (key, &value), "a number from 1 on"))
}

fn mix(of: &mut Properties) -> Result<Mix, YcsbError> {
    let mut parts = Vec::new();
    for (key, kind, default) in [
        ("readproportion", Kind::Get, 0.95),
        ("updateproportion", Kind::Update, 0.05),
        ("insertproportion", Kind::Insert, 0.0),
        ("scanproportion", Kind::Scan, 0.0),
        ("readmodifywriteproportion", Kind::ReadModifyWrite, 0.0),
        ("deleteproportion", Kind::Delete, 0.0),
    ] {
        let line = of.0.iter().find(|(_, other, _)| other == key);
        let line = line.map_or(0, |(line, _, _)| *line);
        let share: f64 = of.number(key, default, "a share from 0 to 1")?;
        if !(0.0..=1.0).contains(&share) {
            return Err(wrong(
                line,
                (key, &share.to_string()),
                "a share from 0 to 1",
            ));
        }
        // At most a million.
        parts.push((kind, (share * WHOLE).round() as u32));
    }
    let mix = Mix::of(&parts);
    if mix.sum() == 0 {
        return Err(YcsbError {
            line: 0,
            what: "all proportions are 0".to_owned(),
            valid: "one of them is above".to_owned(),
        });
    }
    Ok(mix)
}

fn values(of: &mut Properties) -> Result<Sizes, YcsbError> {
    let bytes = "a number of bytes";
    let fields = of.number("fieldcount", 10_u32, "a number of fields")?;
    let longest = of.number("fieldlength", 100_u32, bytes)?;
    let shortest = of.number("minfieldlength", 1_u32, bytes)?;
    let line =
        of.0.iter()
            .find(|(_, key, _)| key == "fieldlengthdistribution");
    let line = line.map_or(0, |(line, _, _)| *line);
    let words = [("constant", false), ("uniform", true)];
    let is_uniform = of.choice("fieldlengthdistribution", &words)?;
    match (is_uniform, fields) {
        (false, _) => Ok(Sizes::Fixed(fields.saturating_mul(longest))),
        (true, 1) => Ok(Sizes::Uniform {
            min: shortest.min(longest),
            max: longest,
        }),
        (true, _) => {
            let valid = "with fieldcount=1, or constant";
            Err(wrong(line, ("fieldlengthdistribution", "uniform"), valid))
        }
    }
}

fn scans(of: &mut Properties) -> Result<Sizes, YcsbError> {
    let max = of.number("maxscanlength", 1000_u32, "a number of records")?;
    let min = of.number("minscanlength", 1_u32, "a number of records")?;
    of.choice("scanlengthdistribution", &[("uniform", ())])?;
    Ok(Sizes::Uniform {
        min: min.min(max),
        max,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::work::builtin;

    /// YCSB's `workloads/workloade`, without its licence.
    const WORKLOAD_E: &str = "\
# Yahoo! Cloud System Benchmark
# Workload E: Short ranges
recordcount=1000
operationcount=1000
workload=site.ycsb.workloads.CoreWorkload

readallfields=true

readproportion=0
updateproportion=0
scanproportion=0.95
insertproportion=0.05

requestdistribution=zipfian

maxscanlength=100

scanlengthdistribution=uniform
";

    #[test]
    fn a_file_of_ycsb_is_the_workload_of_that_letter() {
        let mut expected = builtin::spec("ycsb-e").expect("it is built in");
        expected.name = "workloade".to_owned();
        expected.records = 1000;
        expected.set_operations(1000);
        let mut spec = spec("workloade", WORKLOAD_E).expect("it is one");
        assert_eq!(spec.check(), Ok(()));
        // Weights are the same in other units.
        assert_eq!(
            spec.clients[0].mix.quotas(1000),
            expected.clients[0].mix.quotas(1000)
        );
        spec.clients[0].mix = expected.clients[0].mix;
        assert_eq!(spec, expected);
    }

    #[test]
    fn properties_are_written_as_java_takes_them() {
        let text = "! a comment\nrecordcount : 5\n  operationcount 7\nreadproportion=1.0\n\
                    update\\\n   proportion = 0\nthreadcount=2\nthreadcount=3\n\
                    insertorder=ordered\nzeropadding=12\nfieldcount=1\nfieldlength=8\n\
                    fieldlengthdistribution=uniform\nrocksdb.dir=/x\nmeasurementtype=histogram\n";
        let spec = spec("x", text).expect("it is one");
        assert_eq!((spec.records, spec.operations()), (5, 7));
        assert_eq!((spec.clients[0].count, spec.key_bytes), (3, 16));
        assert_eq!(spec.clients[0].mix.quotas(10), [0, 0, 0, 10, 0, 0]);
        assert_eq!(spec.values, Sizes::Uniform { min: 1, max: 8 });
        assert_eq!(spec.order, KeyOrder::ByAge);
    }

    #[test]
    fn what_is_not_built_is_refused_with_its_line() {
        for (more, message) in [
            (
                "requestdistribution=hotspot",
                "line 3: requestdistribution=hotspot; what is built",
            ),
            (
                "scanlengthdistribution=zipfian",
                "line 3: scanlengthdistribution=zipfian",
            ),
            ("target=500", "line 3: target=500; clients do not pause"),
            (
                "readproportion=95",
                "line 3: readproportion=95; a share from 0 to 1",
            ),
            ("readproportion=nan", "line 3: readproportion=NaN"),
            ("recordcount=0", "line 3: recordcount=0; a number from 1 on"),
            ("fieldlengthdistribution=uniform", "with fieldcount=1"),
            ("recordcuont=1", "line 3: recordcuont=1; it is unknown"),
            ("a\u{1b}[31m=1", "line 3: a\\u{1b}[31m=1"),
            ("workload=TimeSeriesWorkload", "CoreWorkload is built"),
        ] {
            let text = format!("recordcount=10\noperationcount=10\n{more}\n");
            let error = spec("x", &text).expect_err(more).to_string();
            assert!(error.contains(message), "{error}");
        }
        let missing = spec("x", "recordcount=10").expect_err("it is missing");
        assert!(
            missing.to_string().contains("operationcount is missing"),
            "{missing}"
        );
    }
}
