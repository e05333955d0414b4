//! The server's side: requests are dispatched by their path.

use super::MAX_MESSAGE_OCTETS;
use crate::core::{Kind, Refusal};
use prost::Message;
use std::convert::Infallible;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio_stream::Stream;
use tonic::body::Body;
use tonic::server::{ServerStreamingService, UnaryService};
use tonic::{Code, Request, Response, Status};
use tonic_prost::ProstCodec;
use tower_service::Service;

/// Requests of a connection at a time.
const MAX_STREAMS: u32 = 64;
/// Interval for asking whether the peer of a connection lives, and the time that it has to answer.
const KEEP_ALIVE: Duration = Duration::from_secs(20);
/// Octets of the headers of a request at most.
const MAX_HEADER_OCTETS: u32 = 16 << 10;

/// A future of a request.
pub(crate) type Answering<T> = Pin<Box<dyn Future<Output = T> + Send>>;

/// Calls by their paths.
pub(crate) trait Dispatch: Send + Sync + 'static {
    /// Answers a request.
    fn answer(self: Arc<Self>, request: http::Request<Body>) -> Answering<http::Response<Body>>;
}

/// Services as tonic's server takes them.
pub(crate) struct Services<D>(Arc<D>);

impl<D> Services<D> {
    pub(crate) fn new(dispatch: Arc<D>) -> Self {
        Services(dispatch)
    }
}

impl<D> Clone for Services<D> {
    fn clone(&self) -> Self {
        Services(Arc::clone(&self.0))
    }
}

impl<D: Dispatch> Service<http::Request<Body>> for Services<D> {
    type Response = http::Response<Body>;
    type Error = Infallible;
    type Future = Answering<Result<Self::Response, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: http::Request<Body>) -> Self::Future {
        let answer = Arc::clone(&self.0).answer(request);
        Box::pin(async move { Ok(answer.await) })
    }
}

/// A server with limits for each connection.
pub(crate) fn builder() -> tonic::transport::Server {
    tonic::transport::Server::builder()
        .max_concurrent_streams(MAX_STREAMS)
        .http2_keepalive_interval(Some(KEEP_ALIVE))
        .http2_keepalive_timeout(Some(KEEP_ALIVE))
        .http2_max_header_list_size(MAX_HEADER_OCTETS)
        .http2_max_pending_accept_reset_streams(Some(MAX_STREAMS as usize))
}

/// A path that no service has.
pub(crate) fn unknown(path: &str) -> http::Response<Body> {
    let shown: String = path.chars().take(100).flat_map(char::escape_default).collect();
    Status::unimplemented(format!("{shown} is not a call of this driver")).into_http()
}

/// A function as a call with one answer.
struct Unary<F>(F);

impl<Q, R, F, A> UnaryService<Q> for Unary<F>
where
    F: FnMut(Q) -> A,
    A: Future<Output = Result<R, Status>> + Send + 'static,
    R: Send + 'static,
{
    type Response = R;
    type Future = Answering<Result<Response<R>, Status>>;

    fn call(&mut self, request: Request<Q>) -> Self::Future {
        let answer = self.0(request.into_inner());
        Box::pin(async move { answer.await.map(Response::new) })
    }
}

/// Answers a call with one answer.
pub(crate) async fn unary<Q, R, A>(
    request: http::Request<Body>,
    call: impl FnMut(Q) -> A + Send,
) -> http::Response<Body>
where
    Q: Message + Default + Send + 'static,
    R: Message + Default + Send + 'static,
    A: Future<Output = Result<R, Status>> + Send + 'static,
{
    let grpc = tonic::server::Grpc::new(ProstCodec::<R, Q>::default());
    grpc.max_decoding_message_size(MAX_MESSAGE_OCTETS).unary(Unary(call), request).await
}

/// A function as a call with a stream of answers.
struct Streaming<F>(F);

impl<Q, R, S, F> ServerStreamingService<Q> for Streaming<F>
where
    F: FnMut(Q) -> Result<S, Status>,
    S: Stream<Item = Result<R, Status>> + Send + 'static,
{
    type Response = R;
    type ResponseStream = S;
    type Future = Answering<Result<Response<S>, Status>>;

    fn call(&mut self, request: Request<Q>) -> Self::Future {
        let answers = self.0(request.into_inner());
        Box::pin(async move { answers.map(Response::new) })
    }
}

/// Answers a call with a stream of answers.
pub(crate) async fn streaming<Q, R, S>(
    request: http::Request<Body>,
    call: impl FnMut(Q) -> Result<S, Status> + Send,
) -> http::Response<Body>
where
    Q: Message + Default + Send + 'static,
    R: Message + Default + Send + 'static,
    S: Stream<Item = Result<R, Status>> + Send + 'static,
{
    let grpc = tonic::server::Grpc::new(ProstCodec::<R, Q>::default());
    grpc.max_decoding_message_size(MAX_MESSAGE_OCTETS).server_streaming(Streaming(call), request).await
}

/// A refusal as gRPC says it.
pub(crate) fn status(refusal: &Refusal) -> Status {
    let code = match refusal.kind() {
        Kind::InvalidArgument => Code::InvalidArgument,
        Kind::OutOfRange => Code::OutOfRange,
        Kind::NotFound => Code::NotFound,
        Kind::AlreadyExists => Code::AlreadyExists,
        Kind::FailedPrecondition => Code::FailedPrecondition,
        Kind::Aborted => Code::Aborted,
        Kind::ResourceExhausted => Code::ResourceExhausted,
        Kind::PermissionDenied => Code::PermissionDenied,
        Kind::Unimplemented => Code::Unimplemented,
    };
    Status::new(code, refusal.to_string())
}
