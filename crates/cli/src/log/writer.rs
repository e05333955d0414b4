//! The thread that writes lines.

use super::format::{Format, Line};
use super::queue::{Entry, Queue};
use std::io::{self, Write};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;
use tracing::Level;

/// Lines that may wait for a slow reader; less than 4 MiB, by the limit of a line.
const MAX_WAITING: usize = 1024;

/// A queue of lines, and the thread that writes them. No method but [`Writer::flush`] waits for the thread.
pub(super) struct Writer {
    state: Mutex<State>,
    /// There is a line to write.
    added: Condvar,
    /// All lines are written.
    written: Condvar,
    dropped: Arc<AtomicU64>,
}

struct State {
    queue: Queue,
    /// Whether the thread has an entry that it has not written yet.
    is_writing: bool,
}

impl Writer {
    /// Starts the thread.
    pub(super) fn start(format: Format, out: impl Write + Send + 'static) -> io::Result<Arc<Self>> {
        let writer = Arc::new(Writer {
            state: Mutex::new(State { queue: Queue::new(MAX_WAITING), is_writing: false }),
            added: Condvar::new(),
            written: Condvar::new(),
            dropped: Arc::default(),
        });
        let (own, mut output) = (Arc::clone(&writer), Output { out, format, dropped: 0 });
        thread::Builder::new().name("log".to_owned()).spawn(move || {
            loop {
                let failed = output.write(own.take());
                own.dropped.fetch_add(failed, Ordering::Relaxed);
            }
        })?;
        Ok(writer)
    }

    /// Appends a line, with its end, or drops it.
    pub(super) fn add(&self, line: String) {
        if self.lock().queue.push(line) {
            self.added.notify_one();
        } else {
            self.dropped.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Counter of dropped lines.
    pub(super) fn dropped_lines(&self) -> Arc<AtomicU64> {
        Arc::clone(&self.dropped)
    }

    /// Waits until all lines are written, but not longer than this.
    pub(super) fn flush(&self, longest: Duration) {
        let is_busy = |state: &mut State| state.is_writing || !state.queue.is_empty();
        drop(self.written.wait_timeout_while(self.lock(), longest, is_busy));
    }

    /// Waits for the next entry; the one before is written.
    fn take(&self) -> Entry {
        let mut state = self.lock();
        state.is_writing = false;
        loop {
            if let Some(entry) = state.queue.pop() {
                state.is_writing = true;
                return entry;
            }
            self.written.notify_all();
            state = self.added.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // Nothing panics that holds it.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Output of the thread.
struct Output<W> {
    out: W,
    format: Format,
    /// Lines that were dropped and not reported yet.
    dropped: u64,
}

impl<W: Write> Output<W> {
    /// Writes an entry, after the number of lines that were dropped before it. Returns the number of lines that could
    /// not be written.
    fn write(&mut self, entry: Entry) -> u64 {
        let line = match entry {
            Entry::Line(line) => Some(line),
            Entry::Dropped(number) => {
                self.dropped += number;
                None
            }
        };
        if self.dropped > 0 && self.out.write_all(report(self.format, self.dropped).as_bytes()).is_ok() {
            self.dropped = 0;
        }
        let is_lost = line.is_some_and(|line| self.out.write_all(line.as_bytes()).is_err());
        self.dropped += u64::from(is_lost);
        u64::from(is_lost)
    }
}

/// The line about dropped lines.
fn report(format: Format, dropped: u64) -> String {
    let mut line = Line::default();
    line.field("message", &"lines were dropped: stderr was not read in time, or could not be written");
    line.field("lines", &dropped);
    format.line(Level::WARN, "log", &line)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc::{Receiver, Sender, channel};
    use std::time::Instant;

    /// A deadline that a passing test never reaches.
    const PATIENCE: Duration = Duration::from_secs(60);

    /// Output that waits for a permission for each line.
    struct Stepwise {
        written: Sender<String>,
        permissions: Receiver<io::Result<()>>,
    }

    impl Write for Stepwise {
        fn write(&mut self, octets: &[u8]) -> io::Result<usize> {
            // Without permissions it is blocked for good.
            let permission = self.permissions.recv().unwrap_or_else(|_| {
                loop {
                    thread::park();
                }
            });
            permission?;
            self.written.send(String::from_utf8(octets.to_vec()).unwrap()).unwrap();
            Ok(octets.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    fn stepwise() -> (Arc<Writer>, Sender<io::Result<()>>, Receiver<String>) {
        let ((permit, permissions), (written, lines)) = (channel(), channel());
        (Writer::start(Format::Journal, Stepwise { written, permissions }).unwrap(), permit, lines)
    }

    #[test]
    fn lines_are_written_in_order_and_flushed() {
        let (writer, permit, lines) = stepwise();
        for number in 0..100 {
            writer.add(format!("{number}\n"));
            permit.send(Ok(())).unwrap();
        }
        writer.flush(PATIENCE);
        let written: Vec<String> = lines.try_iter().collect();
        assert_eq!(written, (0..100).map(|number| format!("{number}\n")).collect::<Vec<_>>());
        assert_eq!(writer.dropped_lines().load(Ordering::Relaxed), 0);
    }

    /// Neither adding lines nor the end of the process waits for an output that is blocked.
    #[test]
    fn a_blocked_output_costs_lines_and_no_time() {
        let (writer, permit, lines) = stepwise();
        let count = 3 * MAX_WAITING;
        (0..count).for_each(|number| writer.add(format!("{number}\n")));
        let begin = Instant::now();
        writer.flush(Duration::from_millis(20));
        assert!(begin.elapsed() < PATIENCE);
        let dropped = writer.dropped_lines().load(Ordering::Relaxed);
        // The thread has one line, or none yet.
        let accepted = count - usize::try_from(dropped).unwrap();
        assert!([MAX_WAITING, MAX_WAITING + 1].contains(&accepted), "{accepted}");
        // It goes on when it is read, and reports the gap.
        (0..=accepted).for_each(|_| permit.send(Ok(())).unwrap());
        writer.flush(PATIENCE);
        let written: Vec<String> = lines.try_iter().collect();
        assert_eq!(written[accepted - 1], format!("{}\n", accepted - 1));
        assert_eq!(written[accepted..], [report(Format::Journal, dropped)]);
    }

    #[test]
    fn lines_that_cannot_be_written_are_counted_and_reported() {
        let (writer, permit, lines) = stepwise();
        let full = || Err(io::ErrorKind::StorageFull.into());
        // The second line is tried after a report of the first, which fails as well.
        for permission in [full(), full(), full(), Ok(()), Ok(())] {
            permit.send(permission).unwrap();
        }
        (0..3).for_each(|number| writer.add(format!("{number}\n")));
        writer.flush(PATIENCE);
        let written: Vec<String> = lines.try_iter().collect();
        assert_eq!(written, [report(Format::Journal, 2), "2\n".to_owned()]);
        assert_eq!(writer.dropped_lines().load(Ordering::Relaxed), 2);
    }
}
