//! Which path gives what.

use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use zonelab_target::server::{Ended, LoopHandle};

use crate::http::{Deadline, Handler, Limits, Listener, Reply};
use crate::layer::Served;
use crate::page::Page;
use crate::snapshot::Snapshot;
use crate::{look, metrics, state};

/// How long a snapshot serves whoever asks: however many ask, the drive is not
/// called more often than this allows.
const FRESH: Duration = Duration::from_millis(20);

/// Serves the numbers of the server behind `handle`, until the listener is dropped.
///
/// # Errors
/// The address cannot be listened on.
pub fn serve(address: SocketAddr, handle: LoopHandle<Served>) -> io::Result<Listener> {
    Listener::start(
        address,
        Limits::default(),
        Site::new(move || look::look(&handle)),
    )
}

/// The paths there are, over any source of snapshots.
pub struct Site<F> {
    look: F,
    page: Page,
    latest: Mutex<Option<(Deadline, Arc<Snapshot>)>>,
}

impl<F: Fn() -> Result<Snapshot, Ended>> Site<F> {
    /// `look` takes a snapshot.
    #[must_use]
    pub fn new(look: F) -> Self {
        Self {
            look,
            page: Page::new(),
            latest: Mutex::new(None),
        }
    }

    fn snapshot(&self) -> Result<Arc<Snapshot>, Ended> {
        // Whoever waits for the lock finds a snapshot that is fresh. One that
        // was taken by a thread that panicked is whole: it is put in last.
        let mut latest = self.latest.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((until, snapshot)) = &*latest
            && until.left().is_some()
        {
            return Ok(Arc::clone(snapshot));
        }
        let snapshot = Arc::new((self.look)()?);
        *latest = Some((Deadline::after(FRESH), Arc::clone(&snapshot)));
        Ok(snapshot)
    }

    fn render(&self, media_type: &'static str, render: fn(&Snapshot) -> String) -> Reply {
        match self.snapshot() {
            Ok(snapshot) => Reply::ok(media_type, render(&snapshot).into_bytes()),
            Err(ended) => Reply::text((503, "Service Unavailable"), &ended.to_string()),
        }
    }
}

impl<F: Fn() -> Result<Snapshot, Ended> + Send + Sync + 'static> Handler for Site<F> {
    fn reply(&self, path: &str) -> Reply {
        match path {
            "/" => self.page.reply(),
            "/metrics" => self.render(metrics::MEDIA_TYPE, metrics::render),
            "/api/state" => self.render("application/json", state::render),
            "/healthz" => match self.snapshot() {
                Ok(_) => Reply::text((200, "OK"), "ok"),
                Err(ended) => Reply::text((503, "Service Unavailable"), &ended.to_string()),
            },
            _ => Reply::text(
                (404, "Not Found"),
                "valid paths: /, /metrics, /api/state, /healthz",
            ),
        }
    }
}
