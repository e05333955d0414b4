//! Lines for the stderr of a process that continues when they cannot be written.

use std::fmt::Display;
use std::io::Write;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;
use std::time::Duration;

/// Lines that may wait for a slow reader; further ones are dropped.
const MOST_WAITING: usize = 1024;

/// Longest wait for the last lines when the process ends.
const LAST_LINES: Duration = Duration::from_millis(500);

/// A queue of lines, and the thread that writes them to stderr.
///
/// A full disk, a closed pipe and a pipe that is not read neither stop nor delay the caller: errors are ignored, and
/// lines that find the queue full are dropped.
pub(crate) struct LogLines {
    lines: Option<SyncSender<String>>,
    /// Receives when all lines are written.
    written: Receiver<()>,
}

impl LogLines {
    /// Starts the thread.
    pub(crate) fn to_stderr() -> Self {
        let (lines, waiting) = sync_channel::<String>(MOST_WAITING);
        let (end, written) = sync_channel::<()>(1);
        thread::spawn(move || {
            for line in waiting {
                let _ = writeln!(std::io::stderr(), "{line}");
            }
            let _ = end.send(());
        });
        LogLines { lines: Some(lines), written }
    }

    pub(crate) fn add(&self, line: impl Display) {
        if let Some(lines) = &self.lines {
            let _ = lines.try_send(line.to_string());
        }
    }
}

impl Drop for LogLines {
    fn drop(&mut self) {
        self.lines = None;
        let _ = self.written.recv_timeout(LAST_LINES);
    }
}
