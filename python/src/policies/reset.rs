//! When the flash of reset zones is erased, decided in Python.

use pyo3::prelude::*;
use pyo3::types::{PyInt, PyString};
use zonelab_device::Nanos;
use zonelab_ssd::ResetState;
use zonelab_ssd::policy::{
    PolicyError, ResetEvent, ResetEvents, ResetPolicy, ResetStep, ResetView as View, ZoneToErase,
};

use super::{Raised, Silent, flag, method, name_of, optional_method, position, shown};
use crate::errors;

/// What a reset policy sees of a group of zones, at the moment of the call.
#[pyclass(frozen, get_all, module = "zonelab")]
pub(crate) struct ResetView {
    /// Number of the group.
    group: u32,
    /// The time, in nanoseconds.
    now: u64,
    /// "serving", "partial" or "full".
    state: &'static str,
    /// Physical zones that are erased and of no zone.
    free: u32,
    /// Physical zones that are to be erased.
    invalid: u32,
    /// Physical zones that zones stand on.
    allocated: u32,
    /// Commands that read or write zones of the group, accepted and not complete.
    pending: u32,
    /// Reads and writes that its flash works on.
    in_flight: u32,
    /// Finishes that fill a zone.
    fills: u32,
    /// Nothing is pending, in flight or being filled.
    is_quiet: bool,
    /// Erasing something would free a zone.
    has_victim: bool,
    /// Zones whose erasure has begun since the group is in state "full".
    erased_whole: u32,
    /// Parts of a zone that are erased whole one after another.
    parts_of_zone: u32,
    /// Nanoseconds that the erasure of a row takes.
    row_ns: u64,
    /// Rows to be erased before one more zone is free; None unless the policy says
    /// `sees_flash = True`, as what follows.
    rows_of_next: Option<u32>,
    /// Dies, or planes that work independently.
    units: Option<u32>,
    /// Those that have nothing to do.
    idle_units: Option<u32>,
}

impl ResetView {
    fn of(view: &View<'_>, sees_flash: bool) -> Self {
        Self {
            group: view.group(),
            now: view.now().0,
            state: state_name(view.state()),
            free: view.free(),
            invalid: view.invalid(),
            allocated: view.allocated(),
            pending: view.pending(),
            in_flight: view.in_flight(),
            fills: view.fills(),
            is_quiet: view.is_quiet(),
            has_victim: view.has_victim(),
            erased_whole: view.erased_whole(),
            parts_of_zone: view.parts_of_zone(),
            row_ns: view.row_ns().0,
            rows_of_next: sees_flash.then(|| view.rows_of_next()),
            units: sees_flash.then(|| view.units()),
            idle_units: sees_flash.then(|| view.idle_units()),
        }
    }
}

#[pymethods]
impl ResetView {
    fn __repr__(&self) -> String {
        format!(
            "<zonelab.ResetView of group {} at {} ns: {}, {} free, {} invalid, {} pending>",
            self.group, self.now, self.state, self.free, self.invalid, self.pending
        )
    }
}

/// An invalid physical zone that can be erased.
#[pyclass(frozen, get_all, module = "zonelab")]
pub(crate) struct InvalidZone {
    /// Its number.
    physical: u32,
    /// Blocks that are to be erased.
    stale_blocks: u32,
    /// Erasures so far, of all its blocks together.
    wear: u64,
}

/// A name of a state.
pub(crate) const fn state_name(state: ResetState) -> &'static str {
    match state {
        ResetState::Serving => "serving",
        ResetState::Partial => "partial",
        ResetState::Full => "full",
    }
}

/// A reset policy that is a Python object.
#[derive(Debug)]
pub(crate) struct PyReset {
    name: String,
    events: ResetEvents,
    has_memory: bool,
    sees_flash: bool,
    /// None: it could not be made, which its exception says.
    methods: Option<Methods>,
    raised: Raised,
}

#[derive(Debug)]
struct Methods {
    state_after: Py<PyAny>,
    step: Option<Py<PyAny>>,
    erases_more: Option<Py<PyAny>>,
    victim: Option<Py<PyAny>>,
    /// Names of events, by their number.
    names: Vec<Py<PyString>>,
}

impl PyReset {
    /// An object as a policy.
    ///
    /// # Errors
    /// It lacks a method, or names an event that there is not.
    pub(crate) fn new(object: &Bound<'_, PyAny>, raised: &Raised) -> PyResult<Self> {
        let py = object.py();
        let names = ResetEvent::ALL.iter();
        let methods = Methods {
            state_after: method(object, "state_after")?,
            step: optional_method(object, "step")?,
            erases_more: optional_method(object, "erases_more")?,
            victim: optional_method(object, "victim")?,
            names: names
                .map(|event| PyString::intern(py, event.name()).unbind())
                .collect(),
        };
        Ok(Self {
            name: name_of(object)?,
            events: events(object)?,
            has_memory: flag(object, "has_memory", true)?,
            sees_flash: flag(object, "sees_flash", false)?,
            methods: Some(methods),
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
                name: "reset".to_owned(),
                events: ResetEvents::ALL,
                has_memory: true,
                sees_flash: false,
                methods: None,
                raised: raised.clone(),
            }
        })
    }

    /// Asks something; what is wrong about the answer is an error of the model.
    fn ask<T>(
        &self,
        question: &'static str,
        group: &View<'_>,
        call: impl FnOnce(&Methods, Bound<'_, ResetView>) -> Result<T, Silent>,
    ) -> Result<T, PolicyError> {
        let Some(methods) = &self.methods else {
            return Err(PolicyError::Failed {
                policy: self.name.clone(),
                message: "it could not be made".to_owned(),
            });
        };
        let view = ResetView::of(group, self.sees_flash);
        let answer = Python::attach(|py| {
            let view = Bound::new(py, view)?;
            call(methods, view)
        });
        answer.map_err(|silent| silent.into_error(&self.name, question, &self.raised))
    }
}

/// The events that a policy wants to hear of.
fn events(object: &Bound<'_, PyAny>) -> PyResult<ResetEvents> {
    let Some(given) = object.getattr_opt("events")? else {
        return Ok(ResetEvents::COUNTS);
    };
    let mut events = ResetEvents::NONE;
    for name in given.try_iter()? {
        let name: String = name?.extract()?;
        let all = ResetEvent::ALL;
        let Some(event) = all.iter().find(|event| event.name() == name) else {
            let names: Vec<_> = all.iter().map(|event| event.name()).collect();
            let names = names.join(", ");
            return Err(errors::usage(format!(
                "events of a reset policy: \"{name}\" is none; there are {names}"
            )));
        };
        events = events.with(*event);
    }
    Ok(events)
}

const STATES: &str = "\"serving\", \"partial\" or \"full\"";
const STEPS: &str = "\"wait\", \"row\", \"zone\", or a time to look again in nanoseconds";

fn state(answer: &Bound<'_, PyAny>) -> Result<ResetState, Silent> {
    let word = answer.cast::<PyString>().ok();
    match word.map(|word| word.to_str()).transpose()? {
        Some("serving") => Ok(ResetState::Serving),
        Some("partial") => Ok(ResetState::Partial),
        Some("full") => Ok(ResetState::Full),
        _ => Err(Silent::Answer(shown(answer), STATES)),
    }
}

fn step(answer: &Bound<'_, PyAny>) -> Result<ResetStep, Silent> {
    if let Ok(word) = answer.cast::<PyString>() {
        match word.to_str()? {
            "wait" => return Ok(ResetStep::Wait),
            "row" => return Ok(ResetStep::Row),
            "zone" => return Ok(ResetStep::Zone),
            _ => {}
        }
    } else if answer.is_instance_of::<PyInt>()
        && let Ok(at) = answer.extract::<u64>()
    {
        return Ok(ResetStep::LookAt(Nanos(at)));
    }
    Err(Silent::Answer(shown(answer), STEPS))
}

impl ResetPolicy for PyReset {
    fn name(&self) -> &str {
        &self.name
    }

    fn events(&self) -> ResetEvents {
        self.events
    }

    fn state_after(
        &mut self,
        event: ResetEvent,
        group: &View<'_>,
    ) -> Result<ResetState, PolicyError> {
        self.ask("state_after", group, |methods, view| {
            let name = methods.names[event as usize].bind(view.py());
            let method = methods.state_after.bind(view.py());
            state(&method.call1((name, &view))?)
        })
    }

    fn step(&mut self, group: &View<'_>) -> Result<ResetStep, PolicyError> {
        self.ask("step", group, |methods, view| match &methods.step {
            Some(method) => step(&method.bind(view.py()).call1((&view,))?),
            None => Ok(ResetStep::Wait),
        })
    }

    fn erases_more(&mut self, group: &View<'_>) -> Result<bool, PolicyError> {
        self.ask("erases_more", group, |methods, view| {
            match &methods.erases_more {
                Some(method) => Ok(method.bind(view.py()).call1((&view,))?.is_truthy()?),
                None => Ok(false),
            }
        })
    }

    fn victim(
        &mut self,
        group: &View<'_>,
        candidates: &[ZoneToErase],
    ) -> Result<usize, PolicyError> {
        if self
            .methods
            .as_ref()
            .is_some_and(|methods| methods.victim.is_none())
        {
            return Ok(0);
        }
        self.ask("victim", group, |methods, view| {
            let Some(method) = &methods.victim else {
                return Ok(0);
            };
            let zones: Vec<InvalidZone> = candidates
                .iter()
                .map(|of| InvalidZone {
                    physical: of.physical,
                    stale_blocks: of.stale_blocks,
                    wear: of.wear,
                })
                .collect();
            position(&method.bind(view.py()).call1((&view, zones))?)
        })
    }

    fn has_memory(&self) -> bool {
        self.has_memory
    }
}
