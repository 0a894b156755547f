//! Structured logs, on standard error.

use std::fs::File;
use std::os::fd::AsFd as _;

use super::log_queue::{LogQueue, LogWriter, Missing};
use crate::exit::Failure;

use tracing_subscriber::filter::LevelFilter;

/// Options of logs.
#[derive(clap::Args)]
pub(super) struct LogArgs {
    /// Log what is at least as important as this
    #[arg(long = "log", value_name = "LEVEL", value_enum, default_value_t = Level::Info)]
    level: Level,
    /// How logs look
    #[arg(long = "log-format", value_enum, default_value_t = Format::Text)]
    format: Format,
}

/// How important something is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Level {
    /// Nothing
    Off,
    /// What ends the drive
    Error,
    /// Peers that misbehave, once for each address, and a store that cannot be written
    Warn,
    /// Queues that hosts make, and connections that end
    Info,
    /// Everything that peers and browsers do wrong or ask for
    Debug,
}

/// How logs look.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Format {
    /// Lines for people
    Text,
    /// An object on each line
    Json,
}

/// Logs, whose last lines are written when it is dropped.
pub(super) struct Logs {
    queue: LogQueue,
    /// Until there is a thread for it.
    writer: Option<LogWriter>,
}

impl Logs {
    /// Writes lines from now on, in a thread that is like this one: in the sandbox, if this one
    /// is.
    ///
    /// # Errors
    /// There is no thread for it.
    pub(super) fn write(&mut self) -> Result<(), Failure> {
        match self.writer.take() {
            Some(writer) => writer.spawn().map_err(Failure::environment),
            None => Ok(()),
        }
    }
}

impl Drop for Logs {
    fn drop(&mut self) {
        match &mut self.writer {
            Some(writer) => writer.drain(),
            None => self.queue.end(),
        }
    }
}

impl LogArgs {
    /// Logs from now on, until what it returns is dropped.
    ///
    /// # Errors
    /// Standard error has no second descriptor.
    pub(super) fn start(&self) -> Result<Logs, Failure> {
        let level = match self.level {
            Level::Off => LevelFilter::OFF,
            Level::Error => LevelFilter::ERROR,
            Level::Warn => LevelFilter::WARN,
            Level::Info => LevelFilter::INFO,
            Level::Debug => LevelFilter::DEBUG,
        };
        let missing: Missing = match self.format {
            Format::Text => {
                |count| format!("log lines left out, since nobody read them: {count}\n")
            }
            Format::Json => |count| {
                let message = "log lines left out, since nobody read them";
                format!(
                    "{}\n",
                    serde_json::json!({ "level": "WARN", "message": message, "lines": count })
                )
            },
        };
        // A descriptor of its own: who holds standard error locked waits for nobody.
        let out = std::io::stderr().as_fd().try_clone_to_owned();
        let out = File::from(out.map_err(Failure::environment)?);
        let (queue, writer) = LogQueue::to(out, missing);
        let lines = queue.clone();
        let logs = tracing_subscriber::fmt()
            .with_writer(move || lines.clone())
            .with_max_level(level)
            // A log that is full must not end the drive.
            .log_internal_errors(false)
            .with_target(false);
        // A second one in the same process would be refused, and is not needed.
        let _ = match self.format {
            Format::Text => logs.try_init(),
            Format::Json => logs.json().flatten_event(true).try_init(),
        };
        Ok(Logs {
            queue,
            writer: Some(writer),
        })
    }
}
