//! The terminal: width, colour, progress, and what to say when all else fails.

use std::borrow::Cow;
use std::hash::{BuildHasher as _, Hasher as _, RandomState};
use std::io::{IsTerminal, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};
use nix::sys::signal::{SigSet, Signal};
use zonelab_lab::table::{Mark, Style};

use crate::exit::{Exit, Failure};

/// How tables look on standard output.
pub(crate) fn style() -> Style {
    let is_terminal = std::io::stdout().is_terminal();
    let no_colour = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    let columns = terminal_size::terminal_size().map(|(width, _)| usize::from(width.0));
    Style {
        width: if is_terminal { columns } else { None },
        colour: (is_terminal && !no_colour).then(mark),
    }
}

/// A bar on standard error, invisible if that is no terminal or `quiet`.
pub(crate) fn progress(length: u64, quiet: bool) -> ProgressBar {
    if quiet || !std::io::stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    let bar = ProgressBar::new(length);
    let style = "{bar:30} {pos}/{len} points  {msg}  {elapsed} elapsed, {eta} to go";
    if let Ok(style) = ProgressStyle::with_template(style) {
        bar.set_style(style);
    }
    bar.enable_steady_tick(Duration::from_millis(200));
    bar
}

/// A bar for operations, whose number is yet to come.
pub(crate) fn operations(quiet: bool) -> ProgressBar {
    let bar = progress(0, quiet);
    let style = "{bar:30} {pos}/{len} operations  {msg}  {elapsed} elapsed";
    if let Ok(style) = ProgressStyle::with_template(style) {
        bar.set_style(style);
    }
    bar
}

/// Progress through points that run one after another in real time: a bar on a terminal,
/// a line for each elsewhere.
pub(crate) struct Points {
    bar: ProgressBar,
    count: usize,
    /// Lines instead of a bar.
    prints: bool,
}

impl Points {
    pub(crate) fn new(count: usize, quiet: bool) -> Self {
        let bar = progress(count as u64, quiet);
        if let Ok(style) = ProgressStyle::with_template("{bar:30} {msg}  {elapsed} elapsed") {
            bar.set_style(style);
        }
        Self {
            prints: !quiet && bar.is_hidden(),
            bar,
            count,
        }
    }

    /// The next point begins; `left` says how long it and what follows take.
    pub(crate) fn begins(&self, point: &str, left: &str) {
        let number = self.bar.position() + 1;
        let text = format!("point {number} of {}: {point}, {left}", self.count);
        if self.prints {
            tell!("zonelab: {text}");
        }
        self.bar.set_message(plain(&text).into_owned());
    }

    /// It has ended.
    pub(crate) fn ended(&self) {
        self.bar.inc(1);
    }

    pub(crate) fn clear(&self) {
        self.bar.finish_and_clear();
    }
}

/// Progress through the runs of a sweep, with the time that is left, on standard error: a
/// bar on a terminal, a line now and then elsewhere.
pub(crate) struct Runs {
    bar: ProgressBar,
    /// Lines instead of a bar, and when the next is due: in seconds since the beginning.
    prints: Option<std::cell::Cell<u64>>,
    /// Runs of an earlier start, which say nothing about how long one takes.
    before: u64,
}

impl Runs {
    /// Seconds between lines.
    const PAUSE: u64 = 10;

    pub(crate) fn new(quiet: bool, (before, all): (u64, u64)) -> Self {
        let bar = progress(all, quiet);
        let style = "{bar:30} {pos}/{len} runs  {msg}  {elapsed} elapsed, {eta} to go";
        if let Ok(style) = ProgressStyle::with_template(style) {
            bar.set_style(style);
        }
        let lines = !quiet && bar.is_hidden();
        bar.set_position(before);
        bar.reset_eta();
        Self {
            prints: lines.then(|| std::cell::Cell::new(Self::PAUSE)),
            bar,
            before,
        }
    }

    /// So many are done of `all`, `failed` among them.
    pub(crate) fn show(&self, done: u64, failed: u64, all: u64) {
        self.bar.set_position(done);
        let failures = match failed {
            0 => String::new(),
            failed => format!("{failed} failed"),
        };
        self.bar.set_message(failures.clone());
        let Some(due) = &self.prints else { return };
        let elapsed = self.bar.elapsed();
        if elapsed.as_secs() < due.get() {
            return;
        }
        due.set(elapsed.as_secs() + Self::PAUSE);
        let (new, left) = (done.saturating_sub(self.before), all.saturating_sub(done));
        let to_go = elapsed.as_secs_f64() * left as f64 / new.max(1) as f64;
        let comma = if failures.is_empty() { "" } else { ", " };
        tell!("zonelab: {done} of {all} runs{comma}{failures}, {to_go:.0} s to go");
    }

    pub(crate) fn clear(&self) {
        self.bar.finish_and_clear();
    }
}

/// Progress through candidates, on standard error: a bar on a terminal, a line
/// now and then elsewhere.
pub(crate) struct Candidates {
    bar: ProgressBar,
    /// Lines instead of a bar.
    prints: bool,
}

impl Candidates {
    pub(crate) fn new(quiet: bool) -> Self {
        let bar = progress(0, quiet);
        let style = "{bar:30} {pos}/{len} candidates  {msg}  {elapsed} elapsed, {eta} to go";
        if let Ok(style) = ProgressStyle::with_template(style) {
            bar.set_style(style);
        }
        Self {
            prints: !quiet && bar.is_hidden(),
            bar,
        }
    }

    /// The next count begins.
    pub(crate) fn restart(&self) {
        self.bar.reset();
    }

    /// `done` of at most `most`, and what else there is to say on the bar.
    pub(crate) fn show(&self, done: u64, most: u64, message: String) {
        self.bar.set_length(most);
        self.bar.set_position(done);
        self.bar.set_message(plain(&message).into_owned());
    }

    /// A line, where there is no bar.
    pub(crate) fn line(&self, text: &str) {
        if self.prints {
            tell!("zonelab: {text}");
        }
    }

    pub(crate) fn clear(&self) {
        self.bar.finish_and_clear();
    }
}

/// A flag that the first interruption (Ctrl-C) sets, to end after `what` is
/// finished. The second ends the program.
///
/// A command that asks again gets the same flag, and what it said first.
///
/// # Errors
/// The handler of somebody else is there already.
pub(crate) fn interruptible(what: &'static str) -> Result<Arc<AtomicBool>, Failure> {
    static FLAG: OnceLock<Arc<AtomicBool>> = OnceLock::new();
    if let Some(flag) = FLAG.get() {
        return Ok(Arc::clone(flag));
    }
    let interrupted = Arc::clone(FLAG.get_or_init(Arc::default));
    let flag = Arc::clone(&interrupted);
    ctrlc::set_handler(move || {
        if flag.swap(true, Ordering::Relaxed) {
            std::process::exit(i32::from(Exit::Interrupted as u8));
        }
        // Beside: who does not read it must not keep the next one from being heard.
        let said = std::thread::Builder::new().spawn(move || {
            tell!("zonelab: interrupted; finishing {what} (again to stop at once)");
        });
        drop(said);
    })
    .map_err(Failure::environment)?;
    Ok(interrupted)
}

/// Text for a terminal: what files of others have in it (names, keys, messages) must not
/// move the cursor, hide anything, change the title or answer for the user. Line ends and tabs
/// stay, and the colours of tables, which have the mark of this process; other control
/// characters become U+FFFD.
pub(crate) fn plain(text: &str) -> Cow<'_, str> {
    let is_harmful = |c: char| c.is_control() && !matches!(c, '\n' | '\t');
    if !text.contains(is_harmful) {
        return Cow::Borrowed(text);
    }
    let replaced = |part: &str| part.replace(is_harmful, "\u{fffd}");
    let of_table = format!("\u{1b}[{}", mark());
    let parts: Vec<String> = text.split(&of_table).map(replaced).collect();
    Cow::Owned(parts.join("\u{1b}["))
}

/// What the colours of tables have in this process, and no file of anybody.
fn mark() -> Mark {
    static MARK: OnceLock<Mark> = OnceLock::new();
    *MARK.get_or_init(|| Mark(RandomState::new().build_hasher().finish()))
}

/// A write beyond the length that files of this process may have fails, and does not end it.
/// What is blocked here is so in all threads to come.
pub(crate) fn survive_long_files() {
    let mut signals = SigSet::empty();
    signals.add(Signal::SIGXFSZ);
    // If not, it ends as it did.
    let _ = signals.thread_block();
}

/// Writes to standard output.
///
/// # Errors
/// It cannot be written; a closed pipe ends the command quietly.
pub(crate) fn print(text: &str) -> Result<(), Failure> {
    let mut out = std::io::stdout().lock();
    let text = match out.is_terminal() {
        true => plain(text),
        // A file or a program gets what there is, byte by byte.
        false => Cow::Borrowed(text),
    };
    out.write_all(text.as_bytes())
        .and_then(|()| out.flush())
        .map_err(Failure::environment)
}

/// Writes a line to standard error, if that can be written to.
pub(crate) fn tell(words: std::fmt::Arguments<'_>) {
    let mut line = plain(&words.to_string()).into_owned();
    line.push('\n');
    // Who closed it, or filled its disk, has the exit code.
    drop(std::io::stderr().lock().write_all(line.as_bytes()));
}

/// Whether an error is that nobody reads our output any more.
pub(crate) fn is_broken_pipe(error: &anyhow::Error) -> bool {
    error
        .downcast_ref::<std::io::Error>()
        .is_some_and(|error| error.kind() == std::io::ErrorKind::BrokenPipe)
}

/// A panic is a broken invariant: say so, with the line that shows it again,
/// and leave with the exit code for it.
pub(crate) fn explain_panics() {
    std::panic::set_hook(Box::new(|info| {
        let place = info.location().map(ToString::to_string).unwrap_or_default();
        let payload = info.payload();
        let message = payload
            .downcast_ref::<&str>()
            .copied()
            .or_else(|| payload.downcast_ref::<String>().map(String::as_str))
            .unwrap_or("no message");
        let command: Vec<String> = std::env::args().collect();
        tell!("zonelab: broken invariant at {place}: {message}");
        tell!("zonelab: this is a defect of zonelab, not of your input; it shows again with:");
        tell!("  {}", command.join(" "));
        std::process::exit(i32::from(Exit::BrokenInvariant as u8));
    }));
}

#[cfg(test)]
mod tests {
    use super::{mark, plain};

    #[test]
    fn control_characters_of_others_reach_no_terminal() {
        for (text, expected) in [
            ("a name, ä, 漢\n\tand more\n", "a name, ä, 漢\n\tand more\n"),
            ("\u{1b}[31mred\u{1b}[0m", "\u{fffd}[31mred\u{fffd}[0m"),
            ("\u{1b}[8mhidden", "\u{fffd}[8mhidden"),
            ("\u{1b}[1;31mred", "\u{fffd}[1;31mred"),
            ("\u{1b}[2J", "\u{fffd}[2J"),
            ("\u{1b}]0;title\u{7}", "\u{fffd}]0;title\u{fffd}"),
            ("\u{1b}[31", "\u{fffd}[31"),
            ("\u{1b}", "\u{fffd}"),
            ("a\rb\u{8}\u{7f}", "a\u{fffd}b\u{fffd}\u{fffd}"),
            ("\u{9b}2J\u{85}", "\u{fffd}2J\u{fffd}"),
            ("\0", "\u{fffd}"),
        ] {
            assert_eq!(plain(text), expected, "{text:?}");
        }
        let of_table = format!("\u{1b}[{0}31mFAIL\u{1b}[{0}0m, \u{1b}[2mno", mark());
        assert_eq!(plain(&of_table), "\u{1b}[31mFAIL\u{1b}[0m, \u{fffd}[2mno");
    }
}
