//! A serial port of a guest: lines in both directions, each with a time limit.

use crate::error::{LabError, Result};
use std::io::{BufRead, BufReader, ErrorKind, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::{Duration, Instant};

/// Time to wait for an answer before the next greeting.
const GREETING: Duration = Duration::from_millis(500);

/// The host's end of a port.
#[derive(Debug)]
pub(super) struct Channel {
    /// The guest's name, for errors.
    who: String,
    stream: BufReader<UnixStream>,
    /// The beginning of a line whose end has not come yet.
    partial: Vec<u8>,
}

impl Channel {
    /// Connects to a port and waits until a shell listens at the guest's end. Meanwhile `check` is called, and fails
    /// when that is no longer possible.
    pub(super) fn open(
        who: &str,
        path: &Path,
        deadline: Instant,
        check: &mut dyn FnMut() -> Result<()>,
    ) -> Result<Self> {
        let stream = loop {
            check()?;
            match UnixStream::connect(path) {
                Ok(stream) => break stream,
                // QEMU makes the socket when it has started.
                Err(_) if Instant::now() < deadline => std::thread::sleep(Duration::from_millis(20)),
                Err(error) => return Err(LabError::file("connect to", path)(error)),
            }
        };
        let mut channel = Channel { who: who.to_owned(), stream: BufReader::new(stream), partial: Vec::new() };
        for attempt in 0u32.. {
            let greeting = format!("here {}.{attempt}", std::process::id());
            // A program of an earlier user may still run there: it is ended.
            channel.send(&format!("quit\necho\necho {greeting}"))?;
            let patience = deadline.min(Instant::now() + GREETING);
            while let Some(line) = channel.poll(patience)? {
                if line == greeting {
                    return Ok(channel);
                }
            }
            check()?;
            if Instant::now() >= deadline {
                break;
            }
        }
        Err(channel.problem("no shell answers".to_owned()))
    }

    /// Sends a line.
    pub(super) fn send(&mut self, line: &str) -> Result<()> {
        let sent = self.stream.get_mut().write_all(format!("{line}\n").as_bytes());
        sent.map_err(|error| self.problem(format!("cannot send `{line}`: {error}")))
    }

    /// The next line; an error if it does not come within `patience`.
    pub(super) fn receive(&mut self, patience: Duration) -> Result<String> {
        match self.poll(Instant::now() + patience)? {
            Some(line) => Ok(line),
            None => Err(self.problem(format!("no answer within {} s", patience.as_secs_f64()))),
        }
    }

    /// The next line, if it is there.
    pub(super) fn try_receive(&mut self) -> Result<Option<String>> {
        self.poll(Instant::now() + Duration::from_millis(1))
    }

    /// An error with the guest's name.
    pub(super) fn problem(&self, problem: String) -> LabError {
        LabError::Unexpected { who: format!("guest {}", self.who), problem }
    }

    /// The next line, or `None` if it does not come until `deadline`.
    fn poll(&mut self, deadline: Instant) -> Result<Option<String>> {
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok(None);
            }
            let limited = self.stream.get_mut().set_read_timeout(Some(left));
            match limited.and_then(|()| self.stream.read_until(b'\n', &mut self.partial)) {
                Ok(_) if self.partial.ends_with(b"\n") => {
                    let line = String::from_utf8_lossy(&self.partial).trim().to_owned();
                    self.partial.clear();
                    return Ok(Some(line));
                }
                Ok(_) => return Err(self.problem("the machine has ended".to_owned())),
                Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => return Ok(None),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(self.problem(format!("its serial port: {error}"))),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;
    use std::os::unix::net::UnixListener;
    use std::thread;

    fn open(path: &Path, limit: Duration) -> Result<Channel> {
        Channel::open("g1", path, Instant::now() + limit, &mut || Ok(()))
    }

    #[test]
    fn earlier_output_is_skipped() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("port");
        let listener = UnixListener::bind(&path).unwrap();
        let guest = thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            stream.write_all(b"half of an old answer").unwrap();
            let mut lines = BufReader::new(stream.try_clone().unwrap()).lines();
            while let Some(Ok(line)) = lines.next() {
                let answer = line.strip_prefix("echo").map_or("sh: not found", str::trim);
                writeln!(stream, "{answer}").unwrap();
            }
        });
        let mut channel = open(&path, Duration::from_secs(20)).unwrap();
        channel.send("echo hello").unwrap();
        assert_eq!(channel.receive(Duration::from_secs(20)).unwrap(), "hello");
        drop(channel);
        guest.join().unwrap();
    }

    #[test]
    fn silence_and_an_end_are_distinguished() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("port");
        let error = open(&path, Duration::from_millis(30)).unwrap_err().to_string();
        assert!(error.starts_with("cannot connect to "), "{error}");

        let listener = UnixListener::bind(&path).unwrap();
        let error = open(&path, Duration::from_millis(30)).unwrap_err().to_string();
        assert_eq!(error, "guest g1: no shell answers");

        let guest = thread::spawn(move || {
            drop(listener.accept().unwrap());
            let (mut stream, _) = listener.accept().unwrap();
            // Unread octets at the close would be an error of the connection, not its end.
            stream.read_exact(&mut [0; 12]).unwrap();
            stream.shutdown(std::net::Shutdown::Write).unwrap();
            let _ = stream.read_to_end(&mut Vec::new());
        });
        let error = open(&path, Duration::from_secs(20)).unwrap_err().to_string();
        assert_eq!(error, "guest g1: the machine has ended");
        guest.join().unwrap();
    }

    #[test]
    fn waiting_ends_when_the_guest_has_ended() {
        let path = Path::new("/nonexistent/port");
        let gone = || LabError::Unexpected { who: "QEMU".to_owned(), problem: "gone".to_owned() };
        let deadline = Instant::now() + Duration::from_secs(60);
        let error = Channel::open("g1", path, deadline, &mut || Err(gone())).unwrap_err();
        assert_eq!(error.to_string(), "QEMU: gone");
    }
}
