//! Time slices: more polling threads than cores.
//!
//! A scheduler that shares a core fairly among threads that never sleep gives
//! each of them a slice of some milliseconds in turn. To the drive it looks as
//! if a thread stopped for whole slices, with its commands in flight: a command
//! that completes meanwhile is seen at the start of the thread's next slice.

use zonelab_device::Nanos;

/// Whose turn it is on each core.
#[derive(Debug)]
pub(crate) struct Slices {
    slice: Nanos,
    cores: Vec<Rota>,
}

/// The threads of a core.
#[derive(Debug, Default)]
struct Rota {
    /// Those that have started and not ended, in the order of their turns.
    threads: Vec<u32>,
    /// Position of the one whose slice it is.
    current: usize,
    /// When that slice ends. Means nothing as long as there is one thread.
    ends: Nanos,
}

impl Slices {
    pub(crate) fn new(slice: Nanos) -> Self {
        Self {
            slice: slice.max(Nanos(1)),
            cores: Vec::new(),
        }
    }

    /// When `thread` has `core`, at `now` or later; `now` if it has it. A thread
    /// that is seen for the first time has its first slice after all others.
    pub(crate) fn turn(&mut self, core: u32, thread: u32, now: Nanos) -> Nanos {
        let core = core as usize;
        if self.cores.len() <= core {
            self.cores.resize_with(core + 1, Rota::default);
        }
        let slice = self.slice;
        let rota = &mut self.cores[core];
        rota.advance(now, slice);
        let place = rota.place_of(thread).unwrap_or_else(|| {
            if rota.threads.len() == 1 {
                // The slice of a thread that was alone begins with its company.
                rota.ends = now.saturating_add(slice);
            }
            rota.threads.push(thread);
            rota.threads.len() - 1
        });
        let count = rota.threads.len();
        match (place + count - rota.current) % count {
            0 => now,
            turns => {
                let before = Nanos(slice.0.saturating_mul(turns as u64 - 1));
                rota.ends.saturating_add(before)
            }
        }
    }

    /// `thread` has ended at `now`. If it was its slice, the next one's begins.
    pub(crate) fn leave(&mut self, core: u32, thread: u32, now: Nanos) {
        let slice = self.slice;
        let Some(rota) = self.cores.get_mut(core as usize) else {
            return;
        };
        rota.advance(now, slice);
        let Some(place) = rota.place_of(thread) else {
            return;
        };
        rota.threads.remove(place);
        if place == rota.current {
            rota.ends = now.saturating_add(slice);
        } else if place < rota.current {
            rota.current -= 1;
        }
        if rota.current == rota.threads.len() {
            rota.current = 0;
        }
    }
}

impl Rota {
    fn place_of(&self, thread: u32) -> Option<usize> {
        self.threads.iter().position(|known| *known == thread)
    }

    /// Goes on to the slice of `now`.
    fn advance(&mut self, now: Nanos, slice: Nanos) {
        if now < self.ends || self.threads.len() < 2 {
            return;
        }
        let over = (now - self.ends).0 / slice.0 + 1;
        let count = self.threads.len() as u64;
        // Fits: a position is below `count`.
        self.current = ((self.current as u64 + over % count) % count) as usize;
        self.ends = Nanos(self.ends.0.saturating_add(over.saturating_mul(slice.0)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: fn(u64) -> Nanos = Nanos::from_ms;

    #[test]
    fn one_thread_has_its_core_for_ever() {
        let mut slices = Slices::new(MS(16));
        for at in [0, 1, 16, 17, 1_000] {
            assert_eq!(slices.turn(0, 7, MS(at)), MS(at));
        }
    }

    #[test]
    fn threads_take_turns() {
        let mut slices = Slices::new(MS(10));
        assert_eq!(slices.turn(0, 1, MS(0)), MS(0));
        assert_eq!(slices.turn(0, 2, MS(0)), MS(10), "after the first");
        assert_eq!(slices.turn(0, 3, MS(0)), MS(20), "after both");
        assert_eq!(slices.turn(1, 4, MS(0)), MS(0), "another core");
        assert_eq!(slices.turn(0, 1, MS(9)), MS(9));
        assert_eq!(slices.turn(0, 1, MS(10)), MS(30), "its slice is over");
        assert_eq!(slices.turn(0, 2, MS(10)), MS(10));
        assert_eq!(slices.turn(0, 3, MS(64)), MS(80), "slices long past count");
    }

    /// A thread that was alone keeps the core for a slice from when another comes.
    #[test]
    fn who_comes_late_waits_for_a_slice() {
        let mut slices = Slices::new(MS(10));
        assert_eq!(slices.turn(0, 1, MS(0)), MS(0));
        assert_eq!(slices.turn(0, 2, MS(100)), MS(110));
        assert_eq!(slices.turn(0, 1, MS(109)), MS(109));
    }

    #[test]
    fn who_ends_gives_its_time_to_the_next() {
        let mut slices = Slices::new(MS(10));
        for thread in 1..=3 {
            slices.turn(0, thread, MS(0));
        }
        slices.leave(0, 1, MS(4));
        assert_eq!(slices.turn(0, 2, MS(4)), MS(4));
        assert_eq!(slices.turn(0, 3, MS(4)), MS(14), "a whole slice later");
        slices.leave(0, 2, MS(14));
        assert_eq!(slices.turn(0, 3, MS(500)), MS(500), "alone");
        slices.leave(0, 9, MS(500));
        slices.leave(5, 9, MS(500));
    }
}
