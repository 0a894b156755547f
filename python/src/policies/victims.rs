//! Which zone the translation layer empties next, decided in Python.

use pyo3::prelude::*;
use zonelab_ftl::{FtlError, OwnVictims, VictimCandidate, VictimPolicy};

use super::{Raised, method, name_of, position};

/// A closed zone that can be collected.
#[pyclass(frozen, get_all, module = "zonelab")]
pub(crate) struct VictimZone {
    /// Its number among the data zones.
    zone: u32,
    /// Blocks in it that hold something: at least 1.
    valid: u32,
    /// Blocks that it has.
    blocks: u32,
    /// Its place in the order of closing: the smaller, the longer ago.
    closed_as: u64,
    /// Zones that were closed since it was.
    age: u64,
}

/// A rule for victims that is a Python object.
#[derive(Debug)]
struct PyVictims {
    name: String,
    /// None: it could not be made, which its exception says.
    choose: Option<Py<PyAny>>,
    raised: Raised,
}

/// What `make`, a class or function, makes at each mount.
pub(crate) fn own_victims(make: Py<PyAny>, raised: Raised) -> OwnVictims {
    OwnVictims::new(move || {
        let made = Python::attach(|py| {
            let object = make.bind(py).call0()?;
            Ok((name_of(&object)?, method(&object, "choose")?))
        });
        let (name, choose) = match made {
            Ok((name, choose)) => (name, Some(choose)),
            Err(error) => {
                raised.keep(error);
                ("victims".to_owned(), None)
            }
        };
        Box::new(PyVictims {
            name,
            choose,
            raised: raised.clone(),
        })
    })
}

impl VictimPolicy for PyVictims {
    fn name(&self) -> &str {
        &self.name
    }

    fn choose(&mut self, candidates: &[VictimCandidate]) -> Result<usize, FtlError> {
        let failed = |message: String| FtlError::Victims {
            policy: self.name.clone(),
            message,
        };
        let Some(choose) = &self.choose else {
            return Err(failed("it could not be made".to_owned()));
        };
        let answer = Python::attach(|py| {
            let zones: Vec<VictimZone> = candidates
                .iter()
                .map(|of| VictimZone {
                    zone: of.zone.0,
                    valid: of.valid,
                    blocks: of.blocks,
                    closed_as: of.closed_as,
                    age: of.age,
                })
                .collect();
            position(&choose.bind(py).call1((zones,))?)
        });
        answer.map_err(|silent| {
            failed(
                silent
                    .into_error(&self.name, "choose", &self.raised)
                    .to_string(),
            )
        })
    }
}
