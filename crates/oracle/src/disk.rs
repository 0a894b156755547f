//! A medium of a store that logs every write, punch and synchronisation: what the end of its
//! process leaves, and of what the end of the machine can leave a state that is drawn.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::sync::{Arc, Mutex, MutexGuard};

use zonelab_store::Medium;

const SECTOR: u64 = 512;

/// Numbers from a seed (splitmix64).
#[derive(Clone, Debug)]
pub struct Numbers(pub u64);

impl Numbers {
    /// The next.
    pub fn draw(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ mixed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ mixed >> 31
    }

    /// One of `0..end`.
    pub fn below(&mut self, end: u64) -> u64 {
        self.draw() % end
    }

    /// True once in so many times.
    pub fn one_in(&mut self, of: u64) -> bool {
        self.below(of) == 0
    }
}

/// 512 bytes.
pub type Sector = Arc<[u8; SECTOR as usize]>;
/// Sectors that are not all zeros.
pub type Image = BTreeMap<u64, Sector>;

/// What became of some sectors, in order: their content after it.
type Step = Vec<(u64, Option<Sector>)>;

/// What a step of the medium can leave.
#[derive(Clone, Debug)]
pub struct Left {
    /// Steps by then.
    pub step: u64,
    /// What programs see: the process ends.
    pub by_process: Image,
    /// One of the states that are there when the machine has ended.
    pub by_machine: Image,
}

/// What a [`Disk`] holds, and what it remembers.
#[derive(Debug, Default)]
pub struct Inner {
    /// As programs see it.
    pub now: Image,
    /// As the last synchronisation left it, and what came since.
    durable: Image,
    since: Vec<Step>,
    /// Names the start of the machine.
    boot: u8,
    /// Steps after which what can be left is kept in `seen`.
    pub cuts: BTreeSet<u64>,
    /// Steps so far: writes, punches and synchronisations.
    pub steps: u64,
    /// What was left after `cuts`.
    pub seen: Vec<Left>,
    /// The seed of what is drawn next.
    pub draw: u64,
}

/// A medium in memory; copies of it are the same one.
#[derive(Clone, Debug, Default)]
pub struct Disk(Arc<Mutex<Inner>>);

impl Inner {
    fn sectors(&mut self, at: u64, len: u64, bytes: Option<&[u8]>) -> Step {
        let mut step = Step::new();
        let mut done = 0;
        while done < len {
            let sector = (at + done) / SECTOR;
            let within = (at + done) % SECTOR;
            let piece = (SECTOR - within).min(len - done);
            let old = self.now.get(&sector);
            if bytes.is_some() || old.is_some() {
                let mut content = old.map_or([0; SECTOR as usize], |old| **old);
                let range = within as usize..(within + piece) as usize;
                match bytes {
                    Some(bytes) => content[range]
                        .copy_from_slice(&bytes[done as usize..(done + piece) as usize]),
                    None => content[range].fill(0),
                }
                let is_zero = content.iter().all(|byte| *byte == 0);
                let content = (!is_zero).then(|| Arc::new(content));
                put(&mut self.now, sector, content.clone());
                step.push((sector, content));
            }
            done += piece;
            // What is a hole already is passed over.
            if bytes.is_none() && old_is_far(&self.now, sector) {
                let next = self.now.range(sector + 1..).next().map(|(next, _)| *next);
                let to = next.map_or(len, |next| (next * SECTOR).saturating_sub(at).min(len));
                done = done.max(to);
            }
        }
        step
    }

    /// One of the states that can be left at this moment.
    fn left(&mut self) -> Image {
        let mut numbers = Numbers(self.draw);
        self.draw = numbers.draw();
        let mut image = self.durable.clone();
        let grain = if numbers.one_in(2) { 1 } else { 8 };
        let style = numbers.below(5);
        let count = self.since.len() as u64;
        let prefix = numbers.below(count + 1);
        for (index, step) in (0..).zip(&self.since) {
            let likely = match style {
                0 => 50,
                1 => 5,
                2 => 95,
                // All of a prefix and little behind it; or the other way round.
                3 if index < prefix => 100,
                3 => 10,
                _ if index < prefix => 10,
                _ => 100,
            };
            let whole = numbers.one_in(2);
            let is_there = numbers.below(100) < likely;
            let mut piece = (u64::MAX, false);
            for (sector, content) in step {
                if piece.0 != sector / grain {
                    piece = (sector / grain, numbers.below(100) < likely);
                }
                if if whole { is_there } else { piece.1 } {
                    put(&mut image, *sector, content.clone());
                }
            }
        }
        image
    }

    fn step(&mut self, step: Step) {
        self.since.push(step);
        self.passed();
    }

    fn passed(&mut self) {
        self.steps += 1;
        if self.cuts.contains(&self.steps) {
            let by_machine = self.left();
            self.seen.push(Left {
                step: self.steps,
                by_process: self.now.clone(),
                by_machine,
            });
        }
    }
}

fn old_is_far(now: &Image, sector: u64) -> bool {
    !now.contains_key(&(sector + 1))
}

fn put(image: &mut Image, sector: u64, content: Option<Sector>) {
    match content {
        Some(content) => _ = image.insert(sector, content),
        None => _ = image.remove(&sector),
    }
}

impl Disk {
    /// What it holds.
    ///
    /// # Panics
    /// Whoever had it before has panicked.
    pub fn inner(&self) -> MutexGuard<'_, Inner> {
        self.0.lock().expect("nobody panics who has it")
    }

    /// One that holds this, all of it durable, on a machine whose start has this name.
    #[must_use]
    pub fn of(image: Image, boot: u8) -> Self {
        Self(Arc::new(Mutex::new(Inner {
            durable: image.clone(),
            now: image,
            boot,
            ..Inner::default()
        })))
    }
}

impl Medium for Disk {
    fn read(&self, at: u64, out: &mut [u8]) -> io::Result<()> {
        let inner = self.inner();
        let mut done = 0;
        while done < out.len() {
            let place = at + done as u64;
            let within = (place % SECTOR) as usize;
            let piece = (SECTOR as usize - within).min(out.len() - done);
            let to = &mut out[done..done + piece];
            match inner.now.get(&(place / SECTOR)) {
                Some(sector) => to.copy_from_slice(&sector[within..within + piece]),
                None => to.fill(0),
            }
            done += piece;
        }
        Ok(())
    }

    fn write(&mut self, at: u64, bytes: &[u8]) -> io::Result<()> {
        let mut inner = self.inner();
        let step = inner.sectors(at, bytes.len() as u64, Some(bytes));
        inner.step(step);
        Ok(())
    }

    fn zero(&mut self, at: u64, len: u64) -> io::Result<()> {
        let mut inner = self.inner();
        let step = inner.sectors(at, len, None);
        inner.step(step);
        Ok(())
    }

    fn sync(&mut self) -> io::Result<()> {
        let mut inner = self.inner();
        inner.durable = inner.now.clone();
        inner.since.clear();
        inner.passed();
        Ok(())
    }

    /// Durable by itself, and nothing else is.
    fn write_durably(&mut self, at: u64, bytes: &[u8]) -> io::Result<()> {
        let mut inner = self.inner();
        let step = inner.sectors(at, bytes.len() as u64, Some(bytes));
        inner.step(step.clone());
        for (sector, content) in step {
            put(&mut inner.durable, sector, content);
        }
        inner.since.pop();
        inner.passed();
        Ok(())
    }

    fn boot(&self) -> [u8; 16] {
        [self.inner().boot; 16]
    }
}
