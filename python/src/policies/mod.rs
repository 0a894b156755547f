//! Policies that are Python objects.
//!
//! Each adapter here implements a trait of the model (`ResetPolicy`, ...) by calling
//! methods of an object. The interpreter's lock is taken for the call alone. What the object
//! is told are values, copied before: it can keep them, and nothing that it does can reach
//! into the drive while that is at work.
//!
//! An exception is kept as it is ([`Raised`]) until the drive has come to a halt, and raised
//! there. The model is told that the policy failed, and does not ask it again.

mod allocation;
mod reset;
mod scheduler;
mod victims;

use std::sync::{Arc, Mutex, PoisonError};

use pyo3::prelude::*;
use pyo3::types::PyString;
use zonelab_lab::policies::Policies as Makers;
use zonelab_ssd::policy::PolicyError;

use crate::errors;

pub(crate) use allocation::{AllocationRequest, FreeElement, FreeZone, PyAllocation};
pub(crate) use reset::{InvalidZone, PyReset, ResetView, state_name};
pub(crate) use scheduler::PyScheduler;
pub(crate) use victims::{VictimZone, own_victims};

/// The first exception of a callback, on its way to who called what called it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Raised(Arc<Mutex<Option<PyErr>>>);

impl Raised {
    /// Keeps an exception, unless there is an earlier one.
    pub(crate) fn keep(&self, error: PyErr) {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        kept.get_or_insert(error);
    }

    /// The exception, which is no longer kept.
    pub(crate) fn take(&self) -> Option<PyErr> {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        kept.take()
    }

    /// Whether there is one.
    pub(crate) fn is_some(&self) -> bool {
        let kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        kept.is_some()
    }
}

/// Why a callback gave no answer.
pub(crate) enum Silent {
    /// It raised an exception.
    Raised(PyErr),
    /// What it returned is no answer: what it is, and what would be one.
    Answer(String, &'static str),
}

impl From<PyErr> for Silent {
    fn from(error: PyErr) -> Self {
        Self::Raised(error)
    }
}

impl Silent {
    /// As the model has it.
    pub(crate) fn into_error(
        self,
        policy: &str,
        question: &'static str,
        raised: &Raised,
    ) -> PolicyError {
        match self {
            Self::Raised(error) => {
                let message = error.to_string();
                raised.keep(error);
                PolicyError::Failed {
                    policy: policy.to_owned(),
                    message,
                }
            }
            Self::Answer(answer, valid) => PolicyError::Answer {
                policy: policy.to_owned(),
                question,
                answer,
                valid: valid.to_owned(),
            },
        }
    }
}

/// What a callback returned, in a message.
pub(crate) fn shown(answer: &Bound<'_, PyAny>) -> String {
    let text = answer.repr().map(|text| text.to_string());
    text.unwrap_or_else(|_| "something that cannot be shown".to_owned())
}

/// A whole number that a callback returned.
pub(crate) fn position(answer: &Bound<'_, PyAny>) -> Result<usize, Silent> {
    let number = answer.extract::<usize>();
    number.map_err(|_| Silent::Answer(shown(answer), "a position in the list, from 0"))
}

/// The method of a policy, bound.
pub(crate) fn method(object: &Bound<'_, PyAny>, name: &str) -> PyResult<Py<PyAny>> {
    let method = optional_method(object, name)?;
    method.ok_or_else(|| {
        let kind = object.get_type();
        let kind = kind.name().map(|name| name.to_string()).unwrap_or_default();
        errors::usage(format!("the policy {kind} has no method {name}"))
    })
}

/// The same, if the policy has it.
pub(crate) fn optional_method(
    object: &Bound<'_, PyAny>,
    name: &str,
) -> PyResult<Option<Py<PyAny>>> {
    match object.getattr_opt(name)? {
        Some(method) if method.is_callable() => Ok(Some(method.unbind())),
        Some(other) if !other.is_none() => {
            let shown = shown(&other);
            Err(errors::usage(format!(
                "{name} of a policy is {shown}, and no method"
            )))
        }
        _ => Ok(None),
    }
}

/// A property of a policy, if it has it.
pub(crate) fn flag(object: &Bound<'_, PyAny>, name: &str, default: bool) -> PyResult<bool> {
    match object.getattr_opt(name)? {
        Some(value) => value.is_truthy(),
        None => Ok(default),
    }
}

/// The name of a policy in messages: what it says, or that of its class.
pub(crate) fn name_of(object: &Bound<'_, PyAny>) -> PyResult<String> {
    if let Some(name) = object.getattr_opt("name")?
        && let Ok(name) = name.cast::<PyString>()
    {
        return Ok(name.to_str()?.to_owned());
    }
    Ok(object.get_type().name()?.to_string())
}

/// Policies for the runs of an experiment: classes or functions that make one for each run.
///
/// `reset`, `allocation`, `victims` and `scheduler` are called without arguments and give
/// what decides in place of the profile's or the experiment's choice.
#[pyclass(frozen, module = "zonelab")]
#[derive(Default)]
pub(crate) struct Policies {
    reset: Option<Py<PyAny>>,
    allocation: Option<Py<PyAny>>,
    victims: Option<Py<PyAny>>,
    scheduler: Option<Py<PyAny>>,
}

#[pymethods]
impl Policies {
    #[new]
    #[pyo3(signature = (*, reset = None, allocation = None, victims = None, scheduler = None))]
    fn new(
        reset: Option<Bound<'_, PyAny>>,
        allocation: Option<Bound<'_, PyAny>>,
        victims: Option<Bound<'_, PyAny>>,
        scheduler: Option<Bound<'_, PyAny>>,
    ) -> PyResult<Self> {
        let maker = |name: &str, given: Option<Bound<'_, PyAny>>| match given {
            Some(maker) if !maker.is_callable() => Err(errors::usage(format!(
                "{name} of policies is {}: give a class, or a function without arguments that \
                 makes a policy, so that each run has its own",
                shown(&maker)
            ))),
            given => Ok(given.map(Bound::unbind)),
        };
        Ok(Self {
            reset: maker("reset", reset)?,
            allocation: maker("allocation", allocation)?,
            victims: maker("victims", victims)?,
            scheduler: maker("scheduler", scheduler)?,
        })
    }
}

impl Policies {
    /// The makers, for the runs of an experiment; exceptions go to `raised`.
    pub(crate) fn makers(&self, py: Python<'_>, raised: &Raised) -> Makers {
        let mut makers = Makers::default();
        if let Some(make) = &self.reset {
            let (make, raised) = (make.clone_ref(py), raised.clone());
            makers.reset = Some(Arc::new(move || Box::new(PyReset::made_by(&make, &raised))));
        }
        if let Some(make) = &self.allocation {
            let (make, raised) = (make.clone_ref(py), raised.clone());
            makers.allocation = Some(Arc::new(move || {
                Box::new(PyAllocation::made_by(&make, &raised))
            }));
        }
        if let Some(make) = &self.victims {
            makers.victims = Some(own_victims(make.clone_ref(py), raised.clone()));
        }
        if let Some(make) = &self.scheduler {
            let (make, raised) = (make.clone_ref(py), raised.clone());
            makers.scheduler = Some(Arc::new(move |_| {
                Box::new(PyScheduler::made_by(&make, &raised))
            }));
        }
        makers
    }
}
