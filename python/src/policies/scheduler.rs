//! In which order requests go to a drive, decided in Python.

use std::collections::BTreeMap;

use pyo3::prelude::*;
use zonelab_device::{Command, Nanos};
use zonelab_host::scheduler::{RequestId, Scheduler};

use super::{Raised, Silent, method, optional_method, shown};
use crate::commands::kind_of;
use crate::errors;

/// A scheduler that is a Python object. Requests are dispatched one by one.
#[derive(Debug)]
pub(crate) struct PyScheduler {
    methods: Option<Methods>,
    /// What waits, in the order of insertion.
    waiting: BTreeMap<u64, (RequestId, Command)>,
    inserted: u64,
    /// Commands with the device.
    in_flight: u64,
    /// It gave an answer that is none: everything goes in the order of insertion.
    has_failed: bool,
    raised: Raised,
}

#[derive(Debug)]
struct Methods {
    insert: Py<PyAny>,
    dispatch: Py<PyAny>,
    completed: Option<Py<PyAny>>,
}

impl PyScheduler {
    /// What a class or function makes.
    pub(crate) fn made_by(make: &Py<PyAny>, raised: &Raised) -> Self {
        let methods = Python::attach(|py| {
            let object = make.bind(py).call0()?;
            Ok(Methods {
                insert: method(&object, "insert")?,
                dispatch: method(&object, "dispatch")?,
                completed: optional_method(&object, "completed")?,
            })
        });
        let has_failed = methods.is_err();
        let methods = methods.map_err(|error| raised.keep(error)).ok();
        Self {
            methods,
            waiting: BTreeMap::new(),
            inserted: 0,
            in_flight: 0,
            has_failed,
            raised: raised.clone(),
        }
    }

    /// Calls the object, unless it has failed.
    fn ask<T>(
        &mut self,
        nobody: T,
        call: impl FnOnce(Python<'_>, &Methods) -> Result<T, Silent>,
    ) -> T {
        let Some(methods) = self.methods.as_ref().filter(|_| !self.has_failed) else {
            return nobody;
        };
        match Python::attach(|py| call(py, methods)) {
            Ok(answer) => answer,
            Err(silent) => {
                self.has_failed = true;
                self.raised.keep(match silent {
                    Silent::Raised(error) => error,
                    Silent::Answer(answer, valid) => errors::policy(format!(
                        "the scheduler answered {answer}: it has to be {valid}"
                    )),
                });
                nobody
            }
        }
    }
}

impl Scheduler for PyScheduler {
    fn name(&self) -> &'static str {
        "python"
    }

    fn insert(&mut self, now: Nanos, id: RequestId, command: Command) {
        self.inserted += 1;
        let number = self.inserted;
        self.waiting.insert(number, (id, command));
        let (op, lba, nlb) = (
            kind_of(&command.op),
            command.op.first_block(),
            command.op.nlb(),
        );
        self.ask((), |py, methods| {
            let insert = methods.insert.bind(py);
            insert.call1((now.0, number, op, lba, nlb))?;
            Ok(())
        });
    }

    fn dispatch(&mut self, now: Nanos, carried: &mut Vec<RequestId>) -> Option<Command> {
        if self.waiting.is_empty() {
            return None;
        }
        let waiting = std::mem::take(&mut self.waiting);
        let is_idle = self.in_flight == 0;
        let number = self.ask(None, |py, methods| {
            let answer = methods.dispatch.bind(py).call1((now.0,))?;
            if answer.is_none() && !is_idle {
                return Ok(None);
            }
            let number = answer.extract::<u64>().ok();
            match number.filter(|number| waiting.contains_key(number)) {
                Some(number) => Ok(Some(number)),
                None => {
                    let valid = match is_idle {
                        true => "the number of a request that waits, as nothing is in flight",
                        false => "the number of a request that waits, or None",
                    };
                    Err(Silent::Answer(shown(&answer), valid))
                }
            }
        });
        self.waiting = waiting;
        let number = match self.has_failed {
            true => self.waiting.keys().next().copied(),
            false => number,
        };
        let (id, command) = self.waiting.remove(&number?)?;
        carried.push(id);
        self.in_flight += 1;
        Some(command)
    }

    fn completed(&mut self, now: Nanos, command: &Command) {
        self.in_flight = self.in_flight.saturating_sub(1);
        let (op, lba, nlb) = (
            kind_of(&command.op),
            command.op.first_block(),
            command.op.nlb(),
        );
        self.ask((), |py, methods| {
            if let Some(completed) = &methods.completed {
                completed.bind(py).call1((now.0, op, lba, nlb))?;
            }
            Ok(())
        });
    }

    fn waiting(&self) -> usize {
        self.waiting.len()
    }

    fn drain(&mut self, waiting: &mut Vec<(RequestId, Command)>) {
        let all = std::mem::take(&mut self.waiting);
        waiting.extend(all.into_values());
    }
}
