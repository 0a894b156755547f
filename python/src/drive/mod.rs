//! A drive, step by step: commands in, time on, completions out.

mod batch;
mod look;
mod state;

use std::sync::{Mutex, MutexGuard, TryLockError};

use pyo3::prelude::*;
use pyo3::types::PyBytes;
use zonelab_device::{Buf, Nanos};
use zonelab_ssd::{Drive as Model, DriveModel, snapshot};

use crate::commands::{Completion, Kind, blocks};
use crate::errors;
use crate::frame::Frame;
use crate::policies::{PyAllocation, PyReset, Raised};
use crate::profile::{Profile, overrides};
use batch::Batch;
pub(crate) use look::totals;
use state::{Done, State, Target};

/// A drive that is told what time it is, and gives what completed.
///
/// `profile` is what `Profile` takes. `reset_policy` and `allocation` are objects that
/// decide in place of the profile. Times are nanoseconds since the drive was made.
#[pyclass(frozen, module = "zonelab")]
pub(crate) struct Drive {
    state: Mutex<State>,
}

/// Policies, as arguments.
struct Given<'a, 'py> {
    reset: Option<&'a Bound<'py, PyAny>>,
    allocation: Option<&'a Bound<'py, PyAny>>,
}

impl Drive {
    fn of(mut drive: Model, policies: &Given<'_, '_>) -> PyResult<Self> {
        let raised = Raised::default();
        if let Some(object) = policies.reset {
            let policy = Box::new(PyReset::new(object, &raised)?);
            let installed = drive.set_reset_policy(policy);
            installed.map_err(|error| refused(error, &raised))?;
        }
        if let Some(object) = policies.allocation {
            let policy = Box::new(PyAllocation::new(object, &raised)?);
            let installed = drive.set_allocation_policy(policy);
            installed.map_err(|error| refused(error, &raised))?;
        }
        // It may have been asked already.
        let has_policies = policies.reset.is_some() || policies.allocation.is_some();
        let mut state = State::new(drive, raised, has_policies);
        state.check_policies()?;
        Ok(Self {
            state: Mutex::new(state),
        })
    }

    /// The state, which only one call at a time has: not a policy while it is asked.
    fn lock(&self) -> PyResult<MutexGuard<'_, State>> {
        match self.state.try_lock() {
            Ok(state) => Ok(state),
            Err(TryLockError::Poisoned(poisoned)) => Ok(poisoned.into_inner()),
            Err(TryLockError::WouldBlock) => Err(errors::usage(
                "the drive is at work: it takes no call from a policy that it asks, nor from \
                 another thread meanwhile",
            )),
        }
    }
}

/// Why a policy was not installed.
fn refused(error: zonelab_ssd::policy::PolicyError, raised: &Raised) -> PyErr {
    raised.take().unwrap_or_else(|| errors::policy(error))
}

#[pymethods]
impl Drive {
    #[new]
    #[pyo3(signature = (profile, *, set = None, reset_policy = None, allocation = None))]
    fn new(
        profile: &Bound<'_, PyAny>,
        set: Option<&Bound<'_, PyAny>>,
        reset_policy: Option<&Bound<'_, PyAny>>,
        allocation: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Self> {
        let profile = Profile::from_any(profile, &overrides(set)?)?;
        let policies = Given {
            reset: reset_policy,
            allocation,
        };
        Self::of(Model::new(&profile.config), &policies)
    }

    /// A drive in the state that `snapshot` gave, at time 0, with policies of its own.
    #[staticmethod]
    #[pyo3(signature = (profile, data, *, set = None, reset_policy = None, allocation = None))]
    fn restore(
        profile: &Bound<'_, PyAny>,
        data: &[u8],
        set: Option<&Bound<'_, PyAny>>,
        reset_policy: Option<&Bound<'_, PyAny>>,
        allocation: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Self> {
        let profile = Profile::from_any(profile, &overrides(set)?)?;
        let drive = snapshot::restore(&profile.config, data).map_err(errors::invalid)?;
        let policies = Given {
            reset: reset_policy,
            allocation,
        };
        Self::of(drive, &policies)
    }

    /// The time that the drive has reached.
    #[getter]
    fn now(&self) -> PyResult<u64> {
        Ok(self.lock()?.drive.now().0)
    }

    /// When something happens next; None: nothing will until a command comes.
    fn next_event(&self) -> PyResult<Option<u64>> {
        let state = self.lock()?;
        if !state.done.is_empty() {
            return Ok(Some(state.drive.now().0));
        }
        Ok(state.drive.next_event().map(|at| at.0))
    }

    /// Commands submitted and not completed.
    #[getter]
    fn in_flight(&self) -> PyResult<usize> {
        Ok(self.lock()?.in_flight())
    }

    /// The profile of the drive.
    #[getter]
    fn profile(&self) -> PyResult<Profile> {
        let text = zonelab_ssd::profile::to_toml(self.lock()?.drive.config());
        let parsed = zonelab_ssd::profile::Profile::parse("profile", &text, &[]);
        parsed.map(Profile::of).map_err(errors::invalid)
    }

    /// Hands over a command. Its completion comes from `advance`. Returns its tag.
    ///
    /// Where it goes is `lba`, or a `zone`, with an `offset` in blocks for what does not
    /// concern the zone as a whole; a write without offset goes to the write pointer. Its
    /// length is `nbytes`, or that of `data`. `at` is when, the present by default.
    #[pyo3(signature = (
        op, *, lba = None, zone = None, offset = None, nbytes = None, data = None, tag = None,
        at = None, nsid = 1
    ))]
    #[expect(clippy::too_many_arguments, reason = "they are keywords in Python")]
    fn submit(
        &self,
        py: Python<'_>,
        op: &str,
        lba: Option<u64>,
        zone: Option<u32>,
        offset: Option<u64>,
        nbytes: Option<u64>,
        data: Option<&Bound<'_, PyAny>>,
        tag: Option<u64>,
        at: Option<u64>,
        nsid: u32,
    ) -> PyResult<u64> {
        let kind = Kind::named(op)?;
        let data = data.map(buffer).transpose()?;
        let mut state = self.lock()?;
        let length = data.as_ref().map(|data| data.len() as u64);
        let nlb = match kind.has_blocks() {
            true => {
                let nbytes = nbytes.or(length).ok_or_else(|| {
                    errors::usage(format!("{op}: give its length, nbytes (or data)"))
                })?;
                blocks(nbytes, state.lba_bytes())?
            }
            false => 0,
        };
        if let (Some(length), true) = (length, kind.brings_data())
            && length != u64::from(nlb) * u64::from(state.lba_bytes())
        {
            return Err(errors::usage(format!(
                "{op}: {length} bytes of data for a command of {} bytes",
                u64::from(nlb) * u64::from(state.lba_bytes())
            )));
        }
        let target = Target {
            nsid,
            lba,
            zone,
            offset,
        };
        let report_bytes = nbytes.filter(|_| kind == Kind::Report);
        // Other threads may run while the model does.
        let state: &mut State = &mut state;
        py.detach(|| {
            state.go_to(at.map(Nanos))?;
            state.submit(kind, &target, (nlb, report_bytes), data, tag)
        })
    }

    /// Runs everything that is due by `to`, or until the drive has nothing to do if it is
    /// None, and gives what completed, in order.
    #[pyo3(signature = (to = None))]
    fn advance(&self, py: Python<'_>, to: Option<u64>) -> PyResult<Vec<Completion>> {
        let mut state = self.lock()?;
        let state: &mut State = &mut state;
        py.detach(|| state.advance(to.map(Nanos)))?;
        let lba_bytes = state.lba_bytes();
        let done = state.take_done();
        Ok(done
            .into_iter()
            .map(|done| done.completion(lba_bytes))
            .collect())
    }

    /// The same as a table, for many: data that were read are not in it.
    #[pyo3(signature = (to = None))]
    fn advance_frame(&self, py: Python<'_>, to: Option<u64>) -> PyResult<Frame> {
        let mut state = self.lock()?;
        let state: &mut State = &mut state;
        let done = py.detach(|| {
            state.advance(to.map(Nanos))?;
            Ok::<_, PyErr>(state.take_done())
        })?;
        Done::frame(&done, state.lba_bytes())
    }

    /// Submits a command, runs until it has completed, and gives its completion. What else
    /// completes meanwhile comes from the next `advance`.
    ///
    /// # Errors
    /// `CommandFailed` with the status if it did not succeed.
    #[pyo3(signature = (
        op, *, lba = None, zone = None, offset = None, nbytes = None, data = None, nsid = 1
    ))]
    #[expect(clippy::too_many_arguments, reason = "they are keywords in Python")]
    fn execute<'py>(
        &self,
        py: Python<'py>,
        op: &str,
        lba: Option<u64>,
        zone: Option<u32>,
        offset: Option<u64>,
        nbytes: Option<u64>,
        data: Option<&Bound<'py, PyAny>>,
        nsid: u32,
    ) -> PyResult<Bound<'py, Completion>> {
        let tag = self.submit(py, op, lba, zone, offset, nbytes, data, None, None, nsid)?;
        let (done, lba_bytes) = {
            let mut state = self.lock()?;
            let state: &mut State = &mut state;
            (py.detach(|| state.wait_for(tag))?, state.lba_bytes())
        };
        let completion = Bound::new(py, done.completion(lba_bytes))?;
        Completion::check(&completion)?;
        Ok(completion)
    }

    /// Hands over many commands, in columns: each argument is one value for all, or a list
    /// or array of as many.
    ///
    /// All are submitted now; or each at its time `at`, in ascending order, to which the
    /// drive is run; or, with a `depth`, as many at a time, the next when one has completed.
    /// Completions come from `advance_frame` or `advance`. Returns the tags' range as its
    /// first and the number of commands.
    #[pyo3(signature = (
        op, *, lba = None, zone = None, nbytes = None, at = None, depth = None, nsid = 1
    ))]
    #[expect(clippy::too_many_arguments, reason = "they are keywords in Python")]
    fn submit_many(
        &self,
        py: Python<'_>,
        op: &Bound<'_, PyAny>,
        lba: Option<&Bound<'_, PyAny>>,
        zone: Option<&Bound<'_, PyAny>>,
        nbytes: Option<&Bound<'_, PyAny>>,
        at: Option<&Bound<'_, PyAny>>,
        depth: Option<usize>,
        nsid: u32,
    ) -> PyResult<(u64, usize)> {
        if at.is_some() && depth.is_some() {
            return Err(errors::usage("submit_many: give at or depth, not both"));
        }
        let batch = Batch::of(op, [lba, zone, nbytes, at], nsid)?;
        let mut state = self.lock()?;
        let state: &mut State = &mut state;
        let first = state.next_tag();
        py.detach(|| batch.submit(state, depth))?;
        Ok((first, batch.len()))
    }

    /// Declares zones full without writing them, as preconditioning.
    fn fill(&self, first: u32, count: u32) -> PyResult<()> {
        let mut state = self.lock()?;
        let zones = first..first.saturating_add(count);
        let now = state.drive.now();
        let control = zonelab_ssd::Control::PreconditionFull { zones };
        let filled = state.drive.control(now, &control);
        filled.map_err(errors::usage)
    }

    /// Power is lost now and is back after `off_ns`; `seed` decides how much of writes that
    /// were not acknowledged is left. Returns the tags of commands that never complete, and
    /// from when on the drive takes commands again.
    #[pyo3(signature = (off_ns = 1_000_000, *, seed = 0))]
    fn power_cut(&self, py: Python<'_>, off_ns: u64, seed: u64) -> PyResult<(Vec<u64>, u64)> {
        let mut state = self.lock()?;
        let state: &mut State = &mut state;
        py.detach(|| state.power_cut(Nanos(off_ns), seed))
    }

    /// The state of the drive as bytes, if it is idle: see `restore`.
    fn snapshot<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        let state = self.lock()?;
        if !state.done.is_empty() {
            return Err(errors::usage(
                "completions have not been collected: advance the drive first",
            ));
        }
        let bytes = snapshot::save(&state.drive).map_err(errors::usage)?;
        Ok(PyBytes::new(py, &bytes))
    }

    /// State and write pointer of each zone, and the flash that it stands on.
    fn zones(&self) -> PyResult<Frame> {
        look::zones(&self.lock()?.drive)
    }

    /// Groups of zones that share dies, where flash is erased by thresholds or by a policy.
    fn groups(&self) -> PyResult<Frame> {
        look::groups(&self.lock()?.drive)
    }

    /// Erasures of each block, by plane.
    fn wear(&self) -> PyResult<Frame> {
        look::wear(&self.lock()?.drive)
    }

    /// Busy time of channels and dies by cause, in nanoseconds.
    fn busy(&self) -> PyResult<Frame> {
        look::busy(&self.lock()?.drive)
    }

    /// Bytes and operations since the drive was made.
    #[getter]
    fn totals<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        totals(py, &self.lock()?.drive)
    }

    fn __repr__(&self) -> PyResult<String> {
        let state = self.lock()?;
        let (name, now) = (&state.drive.config().name, state.drive.now());
        let in_flight = state.in_flight();
        Ok(format!(
            "<zonelab.Drive {name} at {now}, {in_flight} commands in flight>"
        ))
    }
}

/// Bytes, or anything like them.
fn buffer(data: &Bound<'_, PyAny>) -> PyResult<Buf> {
    if let Ok(bytes) = data.cast::<PyBytes>() {
        return Ok(Buf::from(bytes.as_bytes().to_vec()));
    }
    // `bytes` knows the buffer protocol, which the stable interface of older Pythons lacks.
    let bytes = data.py().get_type::<PyBytes>().call1((memory_of(data)?,))?;
    Ok(Buf::from(bytes.cast::<PyBytes>()?.as_bytes().to_vec()))
}

/// A view of the bytes of an object; not of a number, of which `bytes` would make zeros.
fn memory_of<'py>(data: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    let view = data.py().import("builtins")?.getattr("memoryview")?;
    view.call1((data,))
}
