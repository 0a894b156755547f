//! What a host knows of a block of a conventional namespace, and what it may find there.

use super::events::Between;

/// The command that wrote a block; 0: nobody has, or it was zeroed.
pub(crate) type Serial = u32;

/// A block as its only user knows it.
#[derive(Clone, Debug)]
pub(crate) struct Cell {
    /// What a read may find if nothing happens to the server and the drive: what was
    /// acknowledged last, and what got no answer.
    current: Vec<Serial>,
    /// What it may have become through their end: what it was when a flush last covered it, and
    /// all that came since, in order.
    since: Vec<Serial>,
    /// How many have left the front of `since`.
    covered: usize,
    /// Writes without an answer that may still be carried out.
    alive: Vec<Serial>,
    /// Since it was last read or written, the server may have ended or the drive lost power.
    is_unsure: bool,
}

impl Cell {
    pub(crate) fn new() -> Self {
        Self {
            current: vec![0],
            since: vec![0],
            covered: 0,
            alive: Vec::new(),
            is_unsure: false,
        }
    }

    /// A write was acknowledged.
    pub(crate) fn written(&mut self, serial: Serial) {
        self.current = vec![serial];
        self.current.extend(&self.alive);
        self.since.push(serial);
        self.is_unsure = false;
    }

    /// A write got no answer.
    pub(crate) fn write_lost(&mut self, serial: Serial) {
        self.current.push(serial);
        self.since.push(serial);
        self.alive.push(serial);
    }

    /// Whether there is something that a flush would cover.
    pub(crate) fn is_dirty(&self) -> bool {
        self.since.len() > 1
    }

    /// Where in the order it stands now, which is what a flush that begins now covers. `None`: it is
    /// not known which of several it is.
    pub(crate) fn position(&self) -> Option<usize> {
        let [only] = self.current[..] else {
            return None;
        };
        let at = self.since.iter().rposition(|serial| *serial == only)?;
        (!self.is_unsure).then_some(self.covered + at)
    }

    /// A flush was acknowledged that began when `position` was what it was.
    pub(crate) fn flushed(&mut self, position: usize) {
        // Flushes may overtake each other.
        let more = position.saturating_sub(self.covered);
        self.since.drain(..more);
        self.covered += more;
    }

    /// There is a new connection.
    pub(crate) fn connected(&mut self, between: Between) {
        self.is_unsure |= between.may_be_event;
        if between.is_certain {
            self.alive.clear();
        }
    }

    /// Checks what was read. Returns whether something acknowledged is gone that may be.
    pub(crate) fn check(&mut self, found: Serial) -> Result<bool, String> {
        let is_current = self.current.contains(&found);
        let is_possible = self.is_unsure && self.since.contains(&found);
        if !is_current && !is_possible {
            return Err(format!(
                "is of command {found}, which it must not be: {self:?}"
            ));
        }
        self.current = vec![found];
        self.current.extend(&self.alive);
        self.is_unsure = false;
        Ok(!is_current)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KILLED: Between = Between {
        may_be_cut: false,
        may_be_event: true,
        is_certain: true,
    };
    const NOTHING: Between = Between {
        may_be_cut: false,
        may_be_event: false,
        is_certain: false,
    };

    /// Flushed as 1, written as 2 and 3.
    fn cell() -> Cell {
        let mut cell = Cell::new();
        cell.written(1);
        let position = cell.position().unwrap();
        cell.written(2);
        cell.flushed(position);
        cell.written(3);
        cell
    }

    #[test]
    fn a_flush_is_the_oldest_that_may_come_back_and_only_after_an_end() {
        for (found, is_possible) in [(0, false), (1, true), (2, true), (3, true), (4, false)] {
            let mut killed = cell();
            killed.connected(KILLED);
            assert_eq!(killed.check(found).is_ok(), is_possible, "{found}");
            let mut lives = cell();
            lives.connected(NOTHING);
            assert_eq!(lives.check(found).is_ok(), found == 3, "{found}");
        }
    }

    #[test]
    fn what_was_found_after_an_end_stays() {
        let mut cell = cell();
        cell.connected(KILLED);
        assert_eq!(cell.check(2), Ok(true));
        assert_eq!(cell.check(2), Ok(false));
        assert!(cell.check(3).is_err());
        // And a flush covers it.
        let position = cell.position().unwrap();
        cell.flushed(position);
        cell.connected(KILLED);
        assert!(cell.check(1).is_err());
    }

    #[test]
    fn a_write_without_an_answer_may_come_late_until_its_connection_is_certainly_gone() {
        let mut cell = cell();
        cell.write_lost(4);
        cell.connected(NOTHING);
        assert_eq!(cell.check(3), Ok(false));
        cell.written(5);
        assert_eq!(cell.check(4), Ok(false));
        assert!(cell.check(5).is_err());
        cell.written(6);
        cell.connected(KILLED);
        assert_eq!(cell.check(6), Ok(false));
        assert!(cell.check(4).is_err());
    }
}
