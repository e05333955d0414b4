//! Signals that a node handles.

use std::future::poll_fn;
use std::io;
use std::task::Poll;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::watch;

/// Meaning of a signal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Request {
    /// SIGHUP: read the configuration again.
    Reload,
    /// SIGTERM or SIGINT, by name: end.
    Stop(&'static str),
}

/// The signals, none of which ends the process any more.
#[derive(Debug)]
pub(super) struct Signals([(Signal, Request); 3]);

impl Signals {
    pub(super) fn new() -> io::Result<Self> {
        Ok(Signals([
            (signal(SignalKind::terminate())?, Request::Stop("SIGTERM")),
            (signal(SignalKind::interrupt())?, Request::Stop("SIGINT")),
            (signal(SignalKind::hangup())?, Request::Reload),
        ]))
    }

    /// The next one.
    pub(super) async fn next(&mut self) -> Request {
        poll_fn(|context| {
            let came = |(signal, request): &mut (Signal, Request)| match signal.poll_recv(context) {
                Poll::Ready(_) => Some(*request),
                Poll::Pending => None,
            };
            self.0.iter_mut().find_map(came).map_or(Poll::Pending, Poll::Ready)
        })
        .await
    }
}

/// A value that SIGTERM or SIGINT sets, for waits that [`Signals::next`] does not interrupt.
pub(super) fn stop() -> io::Result<watch::Receiver<bool>> {
    let (mut terminate, mut interrupt) = (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?);
    let (sender, stop) = watch::channel(false);
    tokio::spawn(async move {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
        sender.send_replace(true);
        // The value stays when the sender is gone, but a wait for it would not begin.
        std::future::pending::<()>().await;
    });
    Ok(stop)
}
