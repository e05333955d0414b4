//! The stream of events, resumed behind the last event when it breaks.

use srdma_api::Event;
use std::io::{BufRead, BufReader, Read};
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread;
use std::time::Duration;

/// Interval between attempts to open a stream again.
const RETRY: Duration = Duration::from_millis(500);

/// Lines read ahead of the consumer.
const LINES: usize = 64;

/// Forwards events, and keeps the id of the last one.
pub(super) struct Follower {
    /// `None` is no event: it tests whether the consumer exists.
    sender: Sender<Option<Event>>,
    /// The id of the last forwarded event.
    last: Option<String>,
    /// The id of the one that is being read.
    id: Option<String>,
}

struct ConsumerGone;

impl Follower {
    pub(super) fn new(sender: Sender<Option<Event>>) -> Self {
        Follower { sender, last: None, id: None }
    }

    /// Forwards the events of a stream, and after it has broken those of `open` for the last id, until the consumer is
    /// gone. A stream without a line for `silence` is broken.
    pub(super) fn follow<S: Read + Send + 'static, E>(
        mut self,
        stream: S,
        open: impl Fn(Option<&str>) -> Result<S, E>,
        silence: Duration,
    ) {
        let mut stream = Some(stream);
        loop {
            if let Some(stream) = stream.take()
                && self.forward(&lines_of(stream), silence).is_err()
            {
                return;
            }
            if self.sender.send(None).is_err() {
                return;
            }
            thread::sleep(RETRY);
            // The controller may have been restarted.
            stream = open(self.last.as_deref()).ok();
        }
    }

    /// Forwards the events of a stream until it ends or is silent.
    fn forward(&mut self, lines: &Receiver<String>, silence: Duration) -> Result<(), ConsumerGone> {
        self.id = None;
        while let Ok(line) = lines.recv_timeout(silence) {
            if let Some(id) = line.strip_prefix("id:") {
                self.id = Some(id.trim().to_owned());
            } else if let Some(data) = line.strip_prefix("data:") {
                // An event of a kind that this version does not know is skipped; its id counts.
                let event: Option<Event> = serde_json::from_str(data.trim()).ok();
                if event.is_some() {
                    self.sender.send(event).map_err(|_| ConsumerGone)?;
                }
                self.last = self.id.take().or(self.last.take());
            }
        }
        Ok(())
    }
}

/// The lines of a stream as they arrive. The reading thread ends with the stream, or with the next line when the
/// consumer is gone.
fn lines_of(stream: impl Read + Send + 'static) -> Receiver<String> {
    let (sender, lines) = mpsc::sync_channel(LINES);
    thread::spawn(move || {
        for line in BufReader::new(stream).lines() {
            let Ok(line) = line else { return };
            if sender.send(line).is_err() {
                return;
            }
        }
    });
    lines
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Cursor, empty};
    use std::sync::Mutex;

    type Stream = Box<dyn Read + Send>;

    const TIMEOUT: Duration = Duration::from_secs(20);
    const ATTEMPTS: usize = 40;

    /// The ids passed to `open`.
    type Opened = &'static Mutex<Vec<Option<String>>>;

    /// Opens each of these streams once.
    fn opener(streams: Vec<Stream>) -> (impl Fn(Option<&str>) -> Result<Stream, ()>, Opened) {
        let opened: Opened = Box::leak(Box::default());
        let streams = Mutex::new(streams.into_iter());
        let open = move |last: Option<&str>| {
            opened.lock().unwrap().push(last.map(str::to_owned));
            streams.lock().unwrap().next().ok_or(())
        };
        (open, opened)
    }

    fn text(text: &str) -> Stream {
        Box::new(Cursor::new(text.to_owned()))
    }

    fn event(id: &str, number: u64, node: &str) -> String {
        format!("id: {id}\ndata: {{\"number\":{number},\"unix_ms\":0,\"kind\":\"node-up\",\"node\":\"{node}\"}}\n\n")
    }

    /// The numbers of `count` events.
    fn numbers(events: &Receiver<Option<Event>>, count: usize) -> Vec<u64> {
        // Each `None` is an attempt to reopen the stream.
        let event = || std::iter::from_fn(|| events.recv_timeout(TIMEOUT).ok()).take(ATTEMPTS).flatten().next();
        (0..count).map(|_| event().expect("an event").number).collect()
    }

    /// Events come as server-sent events, between comments and other fields; the next stream begins behind the last.
    #[test]
    fn a_broken_stream_resumes_after_the_last_event() {
        let first =
            format!(": registration\n\n{}event: other\ndata: {{}}\n\n{}", event("a-3", 3, "N1"), event("a-4", 4, "N2"));
        let (open, opened) = opener(vec![text(&event("a-5", 5, "N3"))]);
        let (sender, events) = mpsc::channel();
        thread::spawn(move || Follower::new(sender).follow(text(&first), open, TIMEOUT));
        assert_eq!(numbers(&events, 3), [3, 4, 5]);
        assert_eq!(opened.lock().unwrap()[0].as_deref(), Some("a-4"));
    }

    /// A truncated event is received again in full.
    #[test]
    fn an_incomplete_event_is_discarded() {
        let first = format!("{}id: a-2\ndat", event("a-1", 1, "N1"));
        let (open, opened) = opener(vec![text(&event("a-2", 2, "N1"))]);
        let (sender, events) = mpsc::channel();
        thread::spawn(move || Follower::new(sender).follow(text(&first), open, TIMEOUT));
        assert_eq!(numbers(&events, 2), [1, 2]);
        assert_eq!(opened.lock().unwrap()[0].as_deref(), Some("a-1"));
    }

    /// A stream without events and without keep-alives is broken.
    #[test]
    fn a_silent_stream_is_reopened() {
        struct Silent;
        impl Read for Silent {
            fn read(&mut self, _: &mut [u8]) -> std::io::Result<usize> {
                thread::sleep(TIMEOUT);
                Ok(0)
            }
        }
        let first: Stream = Box::new(Cursor::new(event("a-1", 1, "N1")).chain(Silent));
        let (open, opened) = opener(vec![text(&event("a-2", 2, "N1"))]);
        let (sender, events) = mpsc::channel();
        thread::spawn(move || Follower::new(sender).follow(first, open, Duration::from_millis(100)));
        assert_eq!(numbers(&events, 2), [1, 2]);
        assert_eq!(opened.lock().unwrap()[0].as_deref(), Some("a-1"));
    }

    #[test]
    fn following_ends_when_the_consumer_is_gone() {
        let (sender, events) = mpsc::channel();
        drop(events);
        let (open, opened) = opener(vec![text("")]);
        Follower::new(sender).follow(Box::new(empty()) as Stream, open, TIMEOUT);
        assert!(opened.lock().unwrap().is_empty());
    }
}
