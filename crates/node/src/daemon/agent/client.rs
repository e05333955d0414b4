//! The thread that sends requests to the controller, one at a time.

use crate::configuration::ControllerSettings;
use srdma_agent::{ControllerSession, Failure, Report, Request};
use srdma_api::{Client, ClientError, NodeAnswer, NodeOrder, ProblemType, Registration, SyncAnswer};
use std::io;
use std::path::Path;
use std::sync::mpsc as plain;
use std::thread;
use std::time::Instant;
use tokio::sync::mpsc;

/// Messages of the thread to the control task.
#[derive(Debug)]
pub(in crate::daemon) enum ControllerEvent {
    /// The registration to send.
    Register(Reply<Box<Registration>>),
    /// The controller has accepted it.
    Registered,
    /// The report to send.
    Report(Reply<Report>),
    /// Orders, possibly none; the reply has their answers.
    Orders(Vec<NodeOrder>, Reply<Vec<NodeAnswer>>),
    /// The node acknowledges for the controller's groups until then; `None`: without a limit (D122).
    Lease(Option<Instant>),
    /// Reason of a failed request.
    Failed(String),
}

/// Destination of a reply to the thread.
#[derive(Debug)]
pub(in crate::daemon) struct Reply<T>(plain::Sender<T>);

impl<T> Reply<T> {
    pub(in crate::daemon) fn send(self, reply: T) {
        // The thread waits for this reply only.
        let _ = self.0.send(reply);
    }
}

/// Handle of the thread, which ends when this is dropped.
#[derive(Debug)]
pub(in crate::daemon) struct ControllerClient(mpsc::UnboundedReceiver<ControllerEvent>);

impl ControllerClient {
    /// Starts the thread, in the calling thread's network namespace.
    pub(in crate::daemon) fn start(settings: ControllerSettings) -> io::Result<Self> {
        let (events, received) = mpsc::unbounded_channel();
        let (started, session) = (Instant::now(), ControllerSession::default());
        let thread = Thread { settings, events, started, session, has_lease: false };
        thread::Builder::new().name("controller".to_owned()).spawn(move || drop(thread.run()))?;
        Ok(ControllerClient(received))
    }

    /// The next event; `None` when the thread has died.
    pub(in crate::daemon) async fn event(&mut self) -> Option<ControllerEvent> {
        self.0.recv().await
    }
}

/// The control task has ended.
struct Ended;

/// What came of a request; if it has failed, the reason.
type Outcome = Result<(), (Failure, String)>;

struct Thread {
    settings: ControllerSettings,
    events: mpsc::UnboundedSender<ControllerEvent>,
    started: Instant,
    session: ControllerSession,
    /// The data thread has a lease.
    has_lease: bool,
}

impl Thread {
    fn run(mut self) -> Result<(), Ended> {
        let mut client = None;
        loop {
            let outcome = match self.session.next(self.started.elapsed()) {
                Request::Register { protocol } => self.register(&mut client, protocol)?,
                Request::Sync => self.sync(client.as_ref())?,
            };
            if let Err((failure, reason)) = outcome {
                let delay = self.session.failed(failure, self.started.elapsed());
                let is_routine = match failure {
                    Failure::UnknownSession => true,
                    // The older protocol follows at once.
                    Failure::NotUnderstood => delay.is_zero(),
                    Failure::Unreachable | Failure::Refused => false,
                };
                if !is_routine {
                    self.deliver(ControllerEvent::Failed(reason))?;
                }
                thread::sleep(delay);
            }
        }
    }

    /// Registers the node, with the current token and certificates of the files.
    fn register(&mut self, client: &mut Option<Client>, protocol: u32) -> Result<Outcome, Ended> {
        let registration = self.ask(ControllerEvent::Register)?.by(protocol);
        let registered = connect(&self.settings).and_then(|client| {
            let session = client.register(&registration)?;
            Ok((client, session))
        });
        match registered {
            Ok((new, session)) => {
                if let Err(error) = self.session.registered(&session) {
                    return Ok(Err((Failure::Refused, error.to_string())));
                }
                *client = Some(new);
                self.deliver(ControllerEvent::Registered)?;
                Ok(Ok(()))
            }
            Err(error) => Ok(Err(failure(&error))),
        }
    }

    /// Sends a report, and passes the orders of the response to the control task.
    fn sync(&mut self, client: Option<&Client>) -> Result<Outcome, Ended> {
        let Some(client) = client else { return Ok(Ok(())) };
        let sync = self.session.sync(self.ask(ControllerEvent::Report)?);
        match client.sync(&self.settings.name, &sync) {
            Ok(answer) => {
                let SyncAnswer { orders, unreadable } = answer;
                let mut answers = self.ask(|answers| ControllerEvent::Orders(orders, answers))?;
                for order in unreadable {
                    tracing::warn!(order = order.order, "cannot read an order of the controller: upgrade the node");
                    answers.extend(order.refusal());
                }
                self.session.synced(answers);
                self.lease()?;
                Ok(Ok(()))
            }
            Err(error) => Ok(Err(failure(&error))),
        }
    }

    /// Reports the lease, if there is or was one.
    fn lease(&mut self) -> Result<(), Ended> {
        let end = self.session.lease_end().map(|end| self.started + end);
        if end.is_some() || self.has_lease {
            self.has_lease = end.is_some();
            self.deliver(ControllerEvent::Lease(end))?;
        }
        Ok(())
    }

    fn deliver(&self, event: ControllerEvent) -> Result<(), Ended> {
        self.events.send(event).map_err(|_| Ended)
    }

    fn ask<T>(&self, event: impl FnOnce(Reply<T>) -> ControllerEvent) -> Result<T, Ended> {
        let (reply, answer) = plain::channel();
        self.deliver(event(Reply(reply)))?;
        answer.recv().map_err(|_| Ended)
    }
}

/// A client with the current token and certificates of the files.
pub(super) fn connect(settings: &ControllerSettings) -> Result<Client, ClientError> {
    let unreadable = |file: &Path, error: &srdma_toml_error::FileError| ClientError::Authority {
        file: file.display().to_string(),
        reason: error.to_string(),
    };
    let token = match &settings.token_file {
        None => None,
        Some(file) => Some(srdma_toml_error::read_private(file).map_err(|error| unreadable(file, &error))?),
    };
    let token = token.map(|token| token.trim().to_owned());
    Client::new(&settings.url, token, settings.ca_file.as_deref())
}

fn failure(error: &ClientError) -> (Failure, String) {
    let failure = match error {
        ClientError::Unreachable { .. } => Failure::Unreachable,
        error if error.is(ProblemType::UnknownSession) => Failure::UnknownSession,
        error if error.is(ProblemType::InvalidRequest) => Failure::NotUnderstood,
        _ => Failure::Refused,
    };
    (failure, error.to_string())
}

#[cfg(test)]
mod tests;
