//! Connections that the server takes: so many at a time, and of TCP those alone that begin as HTTP/2 does.

use crate::sockets::pause;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream, UnixListener, UnixStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};
use tokio::time::{sleep, timeout};
use tokio_stream::Stream;
use tonic::transport::server::Connected;

/// First octets of a connection (RFC 9113 section 3.4).
const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
/// Time in which they have to come.
const PREFACE_TIME: Duration = Duration::from_secs(5);
/// Interval for looking at them while some are there.
const LOOK_INTERVAL: Duration = Duration::from_millis(20);

/// Limits how many connections there are at a time; further ones are closed.
#[derive(Clone)]
pub(crate) struct Admission(Arc<Semaphore>);

impl Admission {
    pub(crate) fn of(connections: usize) -> Self {
        Admission(Arc::new(Semaphore::new(connections)))
    }

    fn admit<IO>(&self, io: IO, what: &str) -> Option<Admitted<IO>> {
        match Arc::clone(&self.0).try_acquire_owned() {
            Ok(permit) => Some(Admitted { io, _permit: permit }),
            Err(_) => {
                tracing::warn!("{what}: there are too many connections: a further one is closed");
                None
            }
        }
    }
}

/// A connection that counts.
pub(crate) struct Admitted<IO> {
    io: IO,
    _permit: OwnedSemaphorePermit,
}

impl<IO> Connected for Admitted<IO> {
    type ConnectInfo = ();

    fn connect_info(&self) {}
}

impl<IO: AsyncRead + Unpin> AsyncRead for Admitted<IO> {
    fn poll_read(mut self: Pin<&mut Self>, context: &mut Context<'_>, into: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_read(context, into)
    }
}

impl<IO: AsyncWrite + Unpin> AsyncWrite for Admitted<IO> {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, octets: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.io).poll_write(context, octets)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_shutdown(context)
    }
}

/// Connections, as a server takes them.
pub(crate) struct Incoming<IO>(mpsc::Receiver<Admitted<IO>>);

impl<IO> Stream for Incoming<IO> {
    type Item = io::Result<Admitted<IO>>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.0.poll_recv(context).map(|admitted| admitted.map(Ok))
    }
}

/// Connections of a Unix socket.
pub(crate) fn unix(listener: UnixListener, admission: Admission, what: String) -> Incoming<UnixStream> {
    let (pass, incoming) = mpsc::channel(1);
    tokio::spawn(async move {
        while !pass.is_closed() {
            match listener.accept().await {
                Ok((stream, _)) => {
                    let Some(admitted) = admission.admit(stream, &what) else { continue };
                    if pass.send(admitted).await.is_err() {
                        return;
                    }
                }
                Err(error) => pause(&what, &error).await,
            }
        }
    });
    Incoming(incoming)
}

/// Connections of a TCP socket.
pub(crate) fn tcp(listener: TcpListener, admission: Admission, what: String) -> Incoming<TcpStream> {
    let (pass, incoming) = mpsc::channel(1);
    tokio::spawn(async move {
        while !pass.is_closed() {
            match listener.accept().await {
                Ok((stream, peer)) => {
                    let Some(admitted) = admission.admit(stream, &what) else { continue };
                    let (pass, what) = (pass.clone(), what.clone());
                    tokio::spawn(async move {
                        if matches!(timeout(PREFACE_TIME, begins(&admitted.io)).await, Ok(true)) {
                            // A server that has ended takes none.
                            let _ = admitted.io.set_nodelay(true);
                            let _ = pass.send(admitted).await;
                        } else {
                            tracing::debug!(%peer, "{what}: not HTTP/2: closed");
                        }
                    });
                }
                Err(error) => pause(&what, &error).await,
            }
        }
    });
    Incoming(incoming)
}

/// Waits for the first octets, and leaves them where they are.
async fn begins(stream: &TcpStream) -> bool {
    let mut found = [0; PREFACE.len()];
    loop {
        match stream.peek(&mut found).await {
            Ok(0) | Err(_) => return false,
            Ok(length) if found[..length] != PREFACE[..length] => return false,
            Ok(length) if length == PREFACE.len() => return true,
            Ok(_) => sleep(LOOK_INTERVAL).await,
        }
    }
}
