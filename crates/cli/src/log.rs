//! Log of a daemon: lines on stderr, written by a thread of their own.
//!
//! ```text
//!  threads ── tracing ──→ format ──→ bounded queue ──→ thread ──→ stderr
//! ```
//!
//! A full disk, a closed pipe and a pipe that is not read neither delay nor end the daemon: lines that find the queue
//! full, or that cannot be written, are dropped and counted.

mod format;
mod queue;
mod stderr;
mod writer;

use clap::ValueEnum;
use format::{Format, Line};
use std::backtrace::{Backtrace, BacktraceStatus};
use std::io;
use std::panic::PanicHookInfo;
use std::process::ExitCode;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use stderr::Stderr;
use tracing::Level;
use tracing::level_filters::LevelFilter;
use tracing_subscriber::Layer;
use tracing_subscriber::layer::{Context, SubscriberExt};
use tracing_subscriber::registry::Registry;
use writer::Writer;

/// Longest wait for the last lines when the process ends.
const LAST_LINES: Duration = Duration::from_millis(500);

/// The writer of this process, for [`exit`].
static WRITER: OnceLock<Arc<Writer>> = OnceLock::new();

/// Options of a daemon for its log.
#[derive(clap::Args)]
pub(crate) struct LogArguments {
    /// Least important level that is logged.
    #[arg(long, value_name = "LEVEL", env = "SRDMA_LOG", default_value = "info", hide_env_values = true)]
    log_level: LogLevel,
}

/// Levels, the most important first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum LogLevel {
    Error,
    Warn,
    Info,
    Debug,
    Trace,
}

impl From<LogLevel> for LevelFilter {
    fn from(level: LogLevel) -> Self {
        match level {
            LogLevel::Error => LevelFilter::ERROR,
            LogLevel::Warn => LevelFilter::WARN,
            LogLevel::Info => LevelFilter::INFO,
            LogLevel::Debug => LevelFilter::DEBUG,
            LogLevel::Trace => LevelFilter::TRACE,
        }
    }
}

/// The log of this process; the last lines are written when it is dropped.
pub(crate) struct Log {
    writer: Arc<Writer>,
    format: Format,
}

impl Log {
    /// Starts the log. Called once in a process.
    ///
    /// # Errors
    ///
    /// If the system has no thread or file descriptor left.
    pub(crate) fn start(arguments: &LogArguments) -> io::Result<Self> {
        let stderr = Stderr::new()?;
        let format = Format::of_environment(&stderr);
        let writer = Writer::start(format, stderr)?;
        let lines = Lines { writer: Arc::clone(&writer), format };
        let subscriber = Registry::default().with(LevelFilter::from(arguments.log_level)).with(lines);
        // The process has no other subscriber and no other writer.
        let _ = tracing::subscriber::set_global_default(subscriber);
        let _ = WRITER.set(Arc::clone(&writer));
        std::panic::set_hook(Box::new(log_panic));
        Ok(Log { writer, format })
    }

    /// Counter of dropped lines.
    pub(crate) fn dropped_lines(&self) -> Arc<AtomicU64> {
        self.writer.dropped_lines()
    }

    /// Runs a daemon; the error that prevents its start is the last line, as that of any other command.
    pub(crate) fn run(self, daemon: impl FnOnce(&Self) -> anyhow::Result<ExitCode>) -> ExitCode {
        daemon(&self).unwrap_or_else(|error| {
            self.writer.add(self.format.plain(Level::ERROR, &format!("srdma: {error:#}")));
            ExitCode::from(crate::BAD_INPUT)
        })
    }
}

impl Drop for Log {
    fn drop(&mut self) {
        self.writer.flush(LAST_LINES);
    }
}

/// Ends the process with exit code 1, from any thread, after its last lines.
pub(crate) fn exit() -> ! {
    if let Some(writer) = WRITER.get() {
        writer.flush(LAST_LINES);
    }
    std::process::exit(1)
}

/// A panic as log lines, and not as text that blocks while stderr is not read.
fn log_panic(panic: &PanicHookInfo<'_>) {
    let thread = std::thread::current();
    let (thread, reason) = (thread.name().unwrap_or("unnamed"), panic.payload_as_str().unwrap_or("no text"));
    let place = panic.location().map(ToString::to_string);
    tracing::error!(thread, place, reason, "panicked");
    // It is only captured when the environment asks for it.
    let backtrace = Backtrace::capture();
    if backtrace.status() == BacktraceStatus::Captured {
        backtrace.to_string().lines().for_each(|line| tracing::error!("{line}"));
    }
}

/// The subscriber: each event is a line.
struct Lines {
    writer: Arc<Writer>,
    format: Format,
}

impl<S: tracing::Subscriber> Layer<S> for Lines {
    fn on_event(&self, event: &tracing::Event<'_>, _: Context<'_, S>) {
        let mut line = Line::default();
        event.record(&mut line);
        let metadata = event.metadata();
        self.writer.add(self.format.line(*metadata.level(), metadata.target(), &line));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_are_parsed_by_name() {
        let parse = |name: &str| LogLevel::from_str(name, false).ok().map(LevelFilter::from);
        let levels = ["error", "warn", "info", "debug", "trace"].map(parse);
        let filters =
            [LevelFilter::ERROR, LevelFilter::WARN, LevelFilter::INFO, LevelFilter::DEBUG, LevelFilter::TRACE];
        assert_eq!(levels, filters.map(Some));
        assert!(["", "off", "warning", "INFO", "3"].into_iter().all(|name| parse(name).is_none()));
    }
}
