//! The thread that speaks with the controller: one request after the other.

use crate::configuration::ControllerSettings;
use srdma_api::{Client, ClientError, Hello, NodeAnswer, NodeOrder, NodeStatus, Session, Sync, SyncAnswer, Wish};
use std::io;
use std::sync::mpsc as plain;
use std::thread;
use std::time::{Duration, Instant};
use tokio::sync::mpsc;

/// How long the controller may wait for an order: status is told as often.
const WAIT: Duration = Duration::from_secs(1);
/// How soon a controller that was not reached is tried again, and at the latest.
const FIRST_RETRY: Duration = Duration::from_millis(200);
const LAST_RETRY: Duration = Duration::from_secs(5);

/// What the thread has for the control task, or asks of it.
#[derive(Debug)]
pub(in crate::daemon) enum Call {
    /// How does the node present itself?
    Greet(Reply<Box<Hello>>),
    /// The controller knows the node.
    Greeted(Session),
    /// What has the node to report, beside its answers?
    Report(Reply<Report>),
    /// Carry these out, which may be none; the answers.
    Orders(Vec<NodeOrder>, Reply<Vec<NodeAnswer>>),
    /// The controller was not reached, or has refused: why.
    Lost(String),
}

/// What a node has to report.
#[derive(Debug, Default)]
pub(in crate::daemon) struct Report {
    pub(in crate::daemon) wishes: Vec<Wish>,
    pub(in crate::daemon) status: Option<NodeStatus>,
}

/// Where an answer to the thread goes.
#[derive(Debug)]
pub(in crate::daemon) struct Reply<T>(plain::Sender<T>);

impl<T> Reply<T> {
    /// Answers.
    pub(in crate::daemon) fn send(self, answer: T) {
        // The thread waits for nothing else.
        let _ = self.0.send(answer);
    }
}

/// The control task's end of the thread. The thread ends by itself, when nobody hears it any more.
#[derive(Debug)]
pub(in crate::daemon) struct Courier(mpsc::UnboundedReceiver<Call>);

impl Courier {
    /// Starts the thread, in the calling thread's network namespace.
    pub(in crate::daemon) fn start(settings: ControllerSettings) -> io::Result<Self> {
        let (calls, received) = mpsc::unbounded_channel();
        let thread = Thread { settings, calls, retry: FIRST_RETRY };
        thread::Builder::new().name("controller".to_owned()).spawn(move || drop(thread.run()))?;
        Ok(Courier(received))
    }

    /// The next call; `None` when the thread has died.
    pub(in crate::daemon) async fn call(&mut self) -> Option<Call> {
        self.0.recv().await
    }
}

/// The control task is gone.
struct Gone;

struct Thread {
    settings: ControllerSettings,
    calls: mpsc::UnboundedSender<Call>,
    retry: Duration,
}

impl Thread {
    fn run(mut self) -> Result<(), Gone> {
        loop {
            let begun = Instant::now();
            let error = match self.greet()? {
                Ok((client, session)) => self.serve(&client, session)?,
                Err(error) => Some(error),
            };
            if let Some(error) = error {
                self.lost(&error)?;
            } else if begun.elapsed() < FIRST_RETRY {
                // It forgets its sessions as soon as it has made them.
                thread::sleep(self.retry);
            }
        }
    }

    /// Presents the node.
    fn greet(&self) -> Result<Result<(Client, Session), ClientError>, Gone> {
        let hello = self.ask(Call::Greet)?;
        let greeted = self.client().and_then(|client| {
            let session = client.post::<Session>("/v1/nodes", &hello, None)?.value;
            Ok((client, session))
        });
        if let Ok((_, session)) = &greeted {
            self.tell(Call::Greeted(*session))?;
        }
        Ok(greeted)
    }

    /// Reports, and carries orders out, until the controller does not know the session any more; an error is one that
    /// another hello may mend.
    fn serve(&mut self, client: &Client, session: Session) -> Result<Option<ClientError>, Gone> {
        let path = format!("/v1/nodes/{}/sync", self.settings.name);
        let mut answers = Vec::new();
        loop {
            let Report { wishes, status } = self.ask(Call::Report)?;
            let wait_ms = WAIT.as_millis() as u32;
            let sync =
                Sync { session: session.session, answers: std::mem::take(&mut answers), wishes, status, wait_ms };
            match client.post::<SyncAnswer>(&path, &sync, None) {
                Ok(reply) => {
                    self.retry = FIRST_RETRY;
                    answers = self.ask(|answers| Call::Orders(reply.value.orders, answers))?;
                }
                Err(error) if error.problem().is_some_and(|problem| problem.name() == "unknown-session") => {
                    return Ok(None);
                }
                // It may come back and know the session: the answers are told again.
                Err(error @ ClientError::Unreachable { .. }) => {
                    answers = sync.answers;
                    self.lost(&error)?;
                }
                Err(error) => return Ok(Some(error)),
            }
        }
    }

    /// With the token and the certificates that the files have now.
    fn client(&self) -> Result<Client, ClientError> {
        let unreadable = |file: &std::path::Path, error: io::Error| ClientError::Authority {
            file: file.display().to_string(),
            reason: error.to_string(),
        };
        let token = match &self.settings.token_file {
            None => None,
            Some(file) => Some(std::fs::read_to_string(file).map_err(|error| unreadable(file, error))?),
        };
        let token = token.map(|token| token.trim().to_owned());
        Client::new(&self.settings.url, token, self.settings.ca_file.as_deref())
    }

    /// Says why, and waits, longer each time.
    fn lost(&mut self, error: &ClientError) -> Result<(), Gone> {
        self.tell(Call::Lost(error.to_string()))?;
        thread::sleep(self.retry);
        self.retry = (self.retry * 2).min(LAST_RETRY);
        Ok(())
    }

    fn tell(&self, call: Call) -> Result<(), Gone> {
        self.calls.send(call).map_err(|_| Gone)
    }

    fn ask<T>(&self, call: impl FnOnce(Reply<T>) -> Call) -> Result<T, Gone> {
        let (reply, answer) = plain::channel();
        self.tell(call(Reply(reply)))?;
        answer.recv().map_err(|_| Gone)
    }
}
