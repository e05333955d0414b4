//! `BUFFER_notify.sock`: consumers learn when the buffer changes.

use super::{PATIENCE, accept};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::mpsc;
use tokio::time::timeout;

/// Consumers of a buffer at a time; further ones are closed.
const MAX_CONSUMERS: usize = 256;
/// Notices that a consumer may not have taken.
const MAX_NOTICES: usize = 64;

/// What consumers are told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Notice {
    /// The octets are about to change.
    PreUpdate,
    /// The octets have changed, and stay until the next notice.
    Ready,
}

impl Notice {
    fn line(self) -> &'static [u8] {
        match self {
            Notice::PreUpdate => b"PRE_UPDATE\n",
            Notice::Ready => b"READY\n",
        }
    }
}

/// The consumers of a buffer.
pub(crate) struct Notifier {
    what: String,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    consumers: Vec<mpsc::Sender<Notice>>,
    is_ready: bool,
}

impl Notifier {
    /// `is_ready`: the buffer has its octets already.
    pub(crate) fn new(what: String, is_ready: bool) -> Arc<Self> {
        Arc::new(Notifier { what, state: Mutex::new(State { is_ready, ..State::default() }) })
    }

    /// Locks the state. A panic of another thread leaves it valid.
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Tells all consumers. One that has not taken those before is given up: it holds no other.
    pub(crate) fn say(&self, notice: Notice) {
        let mut state = self.state();
        state.is_ready = notice == Notice::Ready;
        let before = state.consumers.len();
        state.consumers.retain(|consumer| consumer.try_send(notice).is_ok());
        let gone = before - state.consumers.len();
        if gone > 0 {
            tracing::info!("{}: {gone} consumers are gone, or do not read", self.what);
        }
    }

    /// Takes consumers; one that comes when the buffer has its octets is told so at once.
    pub(crate) async fn serve(self: Arc<Self>, listener: UnixListener) {
        loop {
            let stream = accept(&listener, &self.what).await;
            let (notices, taken) = mpsc::channel(MAX_NOTICES);
            let mut state = self.state();
            state.consumers.retain(|consumer| !consumer.is_closed());
            if state.consumers.len() >= MAX_CONSUMERS {
                tracing::warn!("{}: {MAX_CONSUMERS} consumers are there already", self.what);
                continue;
            }
            if state.is_ready {
                // The queue is empty.
                let _ = notices.try_send(Notice::Ready);
            }
            state.consumers.push(notices);
            drop(state);
            tokio::spawn(tell(stream, taken));
        }
    }
}

/// Tells a consumer until it or the buffer is gone.
async fn tell(mut stream: UnixStream, mut notices: mpsc::Receiver<Notice>) {
    let mut ignored = [0; 256];
    loop {
        tokio::select! {
            notice = notices.recv() => {
                let Some(notice) = notice else { return };
                if !matches!(timeout(PATIENCE, stream.write_all(notice.line())).await, Ok(Ok(()))) {
                    return;
                }
            }
            read = stream.read(&mut ignored) => {
                if !matches!(read, Ok(1..)) {
                    return;
                }
            }
        }
    }
}
