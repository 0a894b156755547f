//! Commands into a drive, both drawn, and everything that must hold.
//!
//! * `config` draws a small drive: every design, every combination.
//! * `actions` draws what happens to it: commands, most of them valid ones on
//!   few zones; time that passes; waiting until nothing runs any more.
//! * [`zonelab_oracle::host`] is what a host knows: it says how each command must end.
//! * [`zonelab_oracle::blocks`] reads the log of the flash blocks after each command, and
//!   says what may be programmed and erased.
//! * `accounts` is what the flash must have done in all: bytes, programs, erasures,
//!   busy time. It is compared whenever nothing runs.
//! * `cells` is what of the flash is erased together, and where pages are in it.
//! * `session` puts them together, and watches time and completions.
//! * `log` prints the drive and the last commands if something is wrong.
//!
//! Checked after each command: its status, result, buffer and earliest time;
//! that completions come in order, each once, and when `next_event` says; the
//! state and the write pointer of every zone; the limits of open and active
//! zones. When nothing runs: that every command completed, within a time in
//! which the drive could have done all its work one by one; and the accounts.
//! In some runs a second drive gets the same commands and is looked at only at
//! the end: how often somebody looks must not matter.

mod accounts;
mod actions;
mod cache;
mod cells;
mod config;
mod log;
mod session;

use crate::draw::Draw;

pub(crate) use cache::draw_cache;
pub(crate) use config::draw as draw_config;

/// The target.
///
/// # Panics
/// Something is wrong.
pub fn run(data: &[u8]) {
    let mut draw = Draw::new(data);
    let config = config::draw(&mut draw, true);
    let mut session = session::Session::new(&config, draw.one_in(3));
    actions::play(&mut draw, &mut session);
    session.end();
}
