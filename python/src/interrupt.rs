//! Work in other threads, without the interpreter's lock, that the user can stop.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

use pyo3::prelude::*;
use rayon::ThreadPoolBuilder;

use crate::errors;

/// How often this thread looks for signals, and tells of progress.
const LOOK: Duration = Duration::from_millis(20);

/// What work is told, and tells.
#[derive(Debug, Default)]
pub(crate) struct Watch {
    /// Set when nobody waits for the work any more.
    pub(crate) left: Arc<AtomicBool>,
    /// What is done of it.
    pub(crate) done: AtomicUsize,
}

impl Watch {
    /// Whether nobody waits for the work any more.
    pub(crate) fn is_left(&self) -> bool {
        self.left.load(Ordering::Relaxed)
    }
}

/// How work is done.
pub(crate) struct Workers<'a, 'py> {
    /// Threads; 0: one per core.
    pub(crate) threads: usize,
    /// What `progress` is told of the whole.
    pub(crate) total: usize,
    /// Called with what is done and the whole, now and then.
    pub(crate) progress: Option<&'a Bound<'py, PyAny>>,
}

impl Workers<'_, '_> {
    /// Does `work` in a pool of threads and gives what it gives. This thread, meanwhile,
    /// runs the handlers of signals, so that Ctrl-C works in a terminal and in a notebook:
    /// then the work is left as soon as it looks ([`Watch::is_left`]), and the handler's
    /// exception is raised.
    ///
    /// The pool is made for this work: one that outlived it would be dead in a process that
    /// this one forks into.
    ///
    /// # Errors
    /// What the handler of a signal or `progress` raised; threads that cannot be started.
    pub(crate) fn run<T: Send>(
        self,
        py: Python<'_>,
        work: impl FnOnce(&Watch) -> T + Send,
    ) -> PyResult<T> {
        let pool = ThreadPoolBuilder::new()
            .num_threads(self.threads)
            .build()
            .map_err(errors::environment)?;
        let watch = &Watch::default();
        let progress = self.progress.map(|progress| progress.clone().unbind());
        let total = self.total;
        let (sender, receiver) = channel();
        py.detach(move || {
            pool.in_place_scope(|scope| {
                scope.spawn(move |_| {
                    // The receiver is there until the scope ends.
                    let _ = sender.send(work(watch));
                });
                let mut said = 0;
                let mut raised = None;
                loop {
                    match receiver.recv_timeout(LOOK) {
                        Ok(value) => {
                            // What was done since the last look is told as well.
                            let done = watch.done.load(Ordering::Relaxed);
                            let news = (done != said && raised.is_none()).then_some(done);
                            look(progress.as_ref(), news, total)?;
                            return raised.map_or(Ok(value), Err);
                        }
                        // It panicked, which the end of the scope passes on.
                        Err(RecvTimeoutError::Disconnected) => {
                            return Err(errors::environment("the work ended without a result"));
                        }
                        Err(RecvTimeoutError::Timeout) if raised.is_some() => {}
                        Err(RecvTimeoutError::Timeout) => {
                            let done = watch.done.load(Ordering::Relaxed);
                            let news = (done != said).then_some(done);
                            said = done;
                            if let Err(error) = look(progress.as_ref(), news, total) {
                                watch.left.store(true, Ordering::Relaxed);
                                raised = Some(error);
                            }
                        }
                    }
                }
            })
        })
    }
}

/// Runs the handlers of signals, and tells of progress if there is any.
fn look(progress: Option<&Py<PyAny>>, news: Option<usize>, total: usize) -> PyResult<()> {
    Python::attach(|py| {
        py.check_signals()?;
        if let (Some(progress), Some(done)) = (progress, news) {
            progress.call1(py, (done, total))?;
        }
        Ok(())
    })
}
