//! Which flash zones get, decided in Python.

use pyo3::prelude::*;
use zonelab_ssd::mapping::allocator::ElementId;
use zonelab_ssd::policy::{AllocationPolicy, ElementsRequest, PolicyError, ZoneRequest};

use super::{Raised, Silent, flag, name_of, optional_method, position, shown};
use crate::errors;

/// A zone that needs flash, and what it could get.
#[pyclass(frozen, get_all, module = "zonelab")]
pub(crate) struct AllocationRequest {
    /// The zone.
    zone: u32,
    /// The group of zones that it shares dies with.
    group: u32,
    /// The time, in nanoseconds.
    now: u64,
    /// LUNs that give elements; None for a physical zone, as what follows.
    luns: Option<u32>,
    /// Elements that the zone needs of each LUN.
    per_lun: Option<u32>,
    /// Only the number in all matters.
    is_relaxed: Option<bool>,
}

/// A physical zone that no zone stands on.
#[pyclass(frozen, get_all, module = "zonelab")]
pub(crate) struct FreeZone {
    /// Its number.
    physical: u32,
    /// Erasures so far, of all its blocks together.
    wear: u64,
    /// Blocks that have to be erased before they are written.
    stale_blocks: u32,
}

/// A storage element that no zone has.
#[pyclass(frozen, get_all, module = "zonelab")]
pub(crate) struct FreeElement {
    /// Its number in the group.
    element: u32,
    /// Its LUN.
    lun: u32,
    /// Erasures so far.
    wear: u32,
    /// It has to be erased before it is written.
    is_stale: bool,
}

/// An allocation policy that is a Python object.
#[derive(Debug)]
pub(crate) struct PyAllocation {
    name: String,
    has_memory: bool,
    is_made: bool,
    physical_zone: Option<Py<PyAny>>,
    elements: Option<Py<PyAny>>,
    raised: Raised,
}

impl PyAllocation {
    /// An object as a policy.
    ///
    /// # Errors
    /// It has neither method.
    pub(crate) fn new(object: &Bound<'_, PyAny>, raised: &Raised) -> PyResult<Self> {
        let physical_zone = optional_method(object, "physical_zone")?;
        let elements = optional_method(object, "elements")?;
        let name = name_of(object)?;
        if physical_zone.is_none() && elements.is_none() {
            return Err(errors::usage(format!(
                "the policy {name} has neither a method physical_zone nor a method elements"
            )));
        }
        Ok(Self {
            name,
            has_memory: flag(object, "has_memory", true)?,
            is_made: true,
            physical_zone,
            elements,
            raised: raised.clone(),
        })
    }

    /// What a class or function makes. If that fails, the policy fails when it is asked.
    pub(crate) fn made_by(make: &Py<PyAny>, raised: &Raised) -> Self {
        Python::attach(|py| {
            let made = make.bind(py).call0();
            made.and_then(|object| Self::new(&object, raised))
        })
        .unwrap_or_else(|error| {
            raised.keep(error);
            Self {
                name: "allocation".to_owned(),
                has_memory: true,
                is_made: false,
                physical_zone: None,
                elements: None,
                raised: raised.clone(),
            }
        })
    }

    fn check_made(&self) -> Result<(), PolicyError> {
        match self.is_made {
            true => Ok(()),
            false => Err(PolicyError::Failed {
                policy: self.name.clone(),
                message: "it could not be made".to_owned(),
            }),
        }
    }
}

impl AllocationPolicy for PyAllocation {
    fn name(&self) -> &str {
        &self.name
    }

    fn physical_zone(&mut self, request: &ZoneRequest<'_>) -> Result<usize, PolicyError> {
        self.check_made()?;
        let Some(method) = &self.physical_zone else {
            return Ok(0);
        };
        let answer = Python::attach(|py| {
            let asked = AllocationRequest {
                zone: request.zone.0,
                group: request.group,
                now: request.now.0,
                luns: None,
                per_lun: None,
                is_relaxed: None,
            };
            let zones: Vec<FreeZone> = request
                .candidates
                .iter()
                .map(|of| FreeZone {
                    physical: of.physical,
                    wear: of.wear,
                    stale_blocks: of.stale_blocks,
                })
                .collect();
            position(&method.bind(py).call1((asked, zones))?)
        });
        answer
            .map_err(|silent: Silent| silent.into_error(&self.name, "physical_zone", &self.raised))
    }

    fn elements(
        &mut self,
        request: &ElementsRequest<'_>,
        chosen: &mut Vec<ElementId>,
    ) -> Result<(), PolicyError> {
        self.check_made()?;
        let Some(method) = &self.elements else {
            return Ok(());
        };
        let answer = Python::attach(|py| {
            let asked = AllocationRequest {
                zone: request.zone.0,
                group: request.group,
                now: request.now.0,
                luns: Some(request.luns),
                per_lun: Some(request.per_lun),
                is_relaxed: Some(request.is_relaxed),
            };
            let elements: Vec<FreeElement> = request
                .candidates
                .iter()
                .map(|of| FreeElement {
                    element: of.element.0,
                    lun: of.lun,
                    wear: of.wear,
                    is_stale: of.is_stale,
                })
                .collect();
            let answer = method.bind(py).call1((asked, elements))?;
            if answer.is_none() {
                return Ok(Vec::new());
            }
            answer.extract::<Vec<u32>>().map_err(|_| {
                let valid = "a list of numbers of elements, or None for the built-in choice";
                Silent::Answer(shown(&answer), valid)
            })
        });
        let answer =
            answer.map_err(|silent| silent.into_error(&self.name, "elements", &self.raised))?;
        chosen.extend(answer.into_iter().map(ElementId));
        Ok(())
    }

    fn has_memory(&self) -> bool {
        self.has_memory
    }
}
