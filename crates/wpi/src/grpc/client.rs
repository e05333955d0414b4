//! The client's side: a channel to a driver.

use super::MAX_MESSAGE_OCTETS;
use hyper_util::rt::TokioIo;
use prost::Message;
use std::future::Future;
use std::io;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::net::UnixStream;
use tonic::transport::{Channel, Endpoint, Uri};
use tonic::{Request, Status, Streaming};
use tonic_prost::ProstCodec;
use tower_service::Service;

/// Time in which a driver takes a connection.
const CONNECT_TIME: Duration = Duration::from_secs(5);
/// Interval for asking whether the driver lives, and the time that it has to answer.
const KEEP_ALIVE: Duration = Duration::from_secs(5);

/// Connects to a Unix socket.
struct ToSocket(PathBuf);

impl Service<Uri> for ToSocket {
    type Response = TokioIo<UnixStream>;
    type Error = io::Error;
    type Future = Pin<Box<dyn Future<Output = io::Result<Self::Response>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, _: Uri) -> Self::Future {
        let path = self.0.clone();
        Box::pin(async move { Ok(TokioIo::new(UnixStream::connect(path).await?)) })
    }
}

/// Connects to a driver by its socket.
pub(crate) async fn by_socket(path: &Path) -> Result<Channel, tonic::transport::Error> {
    // The name is not looked up.
    let endpoint = Endpoint::from_static("http://socket.invalid").connect_timeout(CONNECT_TIME);
    endpoint.connect_with_connector(ToSocket(path.to_owned())).await
}

/// Connects to a driver by TCP: `HOST:PORT`.
pub(crate) async fn by_address(address: &str) -> Result<Channel, tonic::transport::Error> {
    Endpoint::from_shared(format!("http://{address}"))?
        .connect_timeout(CONNECT_TIME)
        .http2_keep_alive_interval(KEEP_ALIVE)
        .keep_alive_timeout(KEEP_ALIVE)
        .keep_alive_while_idle(true)
        .tcp_nodelay(true)
        .connect()
        .await
}

async fn ready<Q, R>(channel: Channel) -> Result<(tonic::client::Grpc<Channel>, ProstCodec<Q, R>), Status> {
    let mut grpc = tonic::client::Grpc::new(channel).max_decoding_message_size(MAX_MESSAGE_OCTETS);
    grpc.ready().await.map_err(|error| Status::unavailable(error.to_string()))?;
    Ok((grpc, ProstCodec::default()))
}

/// A call with one answer.
pub(crate) async fn unary<Q, R>(channel: Channel, path: &'static str, request: Q) -> Result<R, Status>
where
    Q: Message + Default + 'static,
    R: Message + Default + 'static,
{
    let (mut grpc, codec) = ready::<Q, R>(channel).await?;
    let path = http::uri::PathAndQuery::from_static(path);
    Ok(grpc.unary(Request::new(request), path, codec).await?.into_inner())
}

/// A call with a stream of answers.
pub(crate) async fn streaming<Q, R>(channel: Channel, path: &'static str, request: Q) -> Result<Streaming<R>, Status>
where
    Q: Message + Default + 'static,
    R: Message + Default + 'static,
{
    let (mut grpc, codec) = ready::<Q, R>(channel).await?;
    let path = http::uri::PathAndQuery::from_static(path);
    Ok(grpc.server_streaming(Request::new(request), path, codec).await?.into_inner())
}
