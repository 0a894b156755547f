//! A medium that remembers in which order it was written, so that it can be
//! had as it was at any point, the write of that point torn at any byte.

use std::collections::BTreeMap;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use zonelab_store::Medium;

const PAGE: u64 = 4096;

/// Bytes, most of them zero.
#[derive(Clone, Debug, Default)]
pub(super) struct Image(BTreeMap<u64, Box<[u8]>>);

impl Image {
    /// Calls `f` with page, offset in it and range of the caller's bytes.
    fn pieces(at: u64, len: usize, mut f: impl FnMut(u64, usize, std::ops::Range<usize>)) {
        let mut done = 0;
        while done < len {
            let within = ((at + done as u64) % PAGE) as usize;
            let piece = (PAGE as usize - within).min(len - done);
            f((at + done as u64) / PAGE, within, done..done + piece);
            done += piece;
        }
    }

    fn read(&self, at: u64, out: &mut [u8]) {
        Self::pieces(at, out.len(), |page, within, range| {
            let out = &mut out[range];
            match self.0.get(&page) {
                Some(page) => out.copy_from_slice(&page[within..within + out.len()]),
                None => out.fill(0),
            }
        });
    }

    fn write(&mut self, at: u64, bytes: &[u8]) {
        Self::pieces(at, bytes.len(), |page, within, range| {
            let empty = || vec![0; PAGE as usize].into_boxed_slice();
            let page = self.0.entry(page).or_insert_with(empty);
            page[within..within + range.len()].copy_from_slice(&bytes[range]);
        });
    }

    fn zero(&mut self, at: u64, len: u64) {
        let end = at + len;
        let pages = at / PAGE..end.div_ceil(PAGE);
        let touched: Vec<u64> = self.0.range(pages).map(|(page, _)| *page).collect();
        for page in touched {
            let start = page * PAGE;
            let range = at.max(start) - start..end.min(start + PAGE) - start;
            if let Some(bytes) = self.0.get_mut(&page) {
                bytes[range.start as usize..range.end as usize].fill(0);
            }
        }
    }

    /// Changes one bit of what is not zero everywhere; which is drawn.
    pub(super) fn flip(&mut self, mut draw: impl FnMut(u64) -> u64) {
        let count = self.0.len() as u64;
        if count == 0 {
            return;
        }
        let which = draw(count) as usize;
        let (at, bit) = (draw(PAGE) as usize, draw(8));
        if let Some(page) = self.0.values_mut().nth(which) {
            page[at] ^= 1 << bit;
        }
    }
}

#[derive(Clone, Debug)]
enum Step {
    Write { at: u64, bytes: Box<[u8]> },
    Zero { at: u64, len: u64 },
}

impl Step {
    /// Does as much of it as has so many bytes.
    fn apply(&self, image: &mut Image, most: u64) {
        match self {
            Self::Write { at, bytes } => {
                let end = usize::try_from(most).unwrap_or(usize::MAX);
                image.write(*at, &bytes[..bytes.len().min(end)]);
            }
            Self::Zero { at, len } => image.zero(*at, (*len).min(most)),
        }
    }

    /// As much of it as has so many bytes.
    fn part(self, most: u64) -> Self {
        match self {
            Self::Write { at, bytes } => {
                let end = usize::try_from(most).unwrap_or(usize::MAX);
                let bytes = bytes[..bytes.len().min(end)].into();
                Self::Write { at, bytes }
            }
            zero @ Self::Zero { .. } => zero,
        }
    }

    fn bytes(&self) -> u64 {
        match self {
            Self::Write { bytes, .. } => bytes.len() as u64,
            Self::Zero { len, .. } => *len,
        }
    }
}

#[derive(Debug, Default)]
struct Inner {
    start: Image,
    now: Image,
    steps: Vec<Step>,
    /// From this step on writes do not fit: so many bytes of each do, and it fails.
    full_at: Option<(usize, u64)>,
    /// How many of them fail before there is room again.
    failures_left: u32,
}

/// A medium; copies of it are the same one.
#[derive(Clone, Debug, Default)]
pub(super) struct Tape(Arc<Mutex<Inner>>);

impl Tape {
    pub(super) fn new(start: Image) -> Self {
        let now = start.clone();
        Self(Arc::new(Mutex::new(Inner {
            start,
            now,
            ..Inner::default()
        })))
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Steps so far.
    pub(super) fn len(&self) -> usize {
        self.inner().steps.len()
    }

    /// Lets the medium be full after so many more steps, for so many writes.
    pub(super) fn fill_up(&self, steps: usize, bytes: u64, failures: u32) {
        let mut inner = self.inner();
        inner.full_at = Some((inner.steps.len() + steps, bytes));
        inner.failures_left = failures;
    }

    /// The medium after `steps` steps, and so many thousandths of the next.
    pub(super) fn at(&self, steps: usize, thousandths: u64) -> Image {
        let inner = self.inner();
        let mut image = inner.start.clone();
        for step in &inner.steps[..steps] {
            step.apply(&mut image, u64::MAX);
        }
        if let Some(torn) = inner.steps.get(steps) {
            torn.apply(&mut image, torn.bytes() * thousandths / 1000);
        }
        image
    }

    fn step(&self, step: Step) -> io::Result<()> {
        let mut inner = self.inner();
        let is_write = matches!(step, Step::Write { .. });
        let full = inner.full_at.filter(|(at, _)| *at <= inner.steps.len());
        // Holes take no room.
        let (step, done) = match full.filter(|_| is_write && inner.failures_left > 0) {
            None => (step, Ok(())),
            Some((_, bytes)) => {
                inner.failures_left -= 1;
                (step.part(bytes), Err(io::ErrorKind::StorageFull.into()))
            }
        };
        step.apply(&mut inner.now, u64::MAX);
        inner.steps.push(step);
        done
    }

    /// The medium as it is.
    pub(super) fn now(&self) -> Image {
        self.inner().now.clone()
    }
}

impl Medium for Tape {
    fn read(&self, at: u64, out: &mut [u8]) -> io::Result<()> {
        self.inner().now.read(at, out);
        Ok(())
    }

    fn write(&mut self, at: u64, bytes: &[u8]) -> io::Result<()> {
        let bytes = bytes.into();
        self.step(Step::Write { at, bytes })
    }

    fn zero(&mut self, at: u64, len: u64) -> io::Result<()> {
        if len == 0 {
            return Ok(());
        }
        self.step(Step::Zero { at, len })
    }

    fn sync(&mut self) -> io::Result<()> {
        Ok(())
    }
}
