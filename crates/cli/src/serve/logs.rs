//! Structured logs, on standard error.

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

impl LogArgs {
    /// Logs from now on.
    pub(super) fn start(&self) {
        let level = match self.level {
            Level::Off => LevelFilter::OFF,
            Level::Error => LevelFilter::ERROR,
            Level::Warn => LevelFilter::WARN,
            Level::Info => LevelFilter::INFO,
            Level::Debug => LevelFilter::DEBUG,
        };
        let logs = tracing_subscriber::fmt()
            .with_writer(std::io::stderr)
            .with_max_level(level)
            // A log that is full must not end the drive.
            .log_internal_errors(false)
            .with_target(false);
        // A second one in the same process would be refused, and is not needed.
        let _ = match self.format {
            Format::Text => logs.try_init(),
            Format::Json => logs.json().flatten_event(true).try_init(),
        };
    }
}
