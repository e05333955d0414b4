//! The API: HTTP in front of the [service](crate::service).

mod connection;
mod connection_limiter;
mod describe;
mod events;
mod foreign;
mod gate;
mod groups;
mod jobs;
mod listen;
mod memory;
mod network;
mod origin_check;
mod page;
mod refusal_log;
mod request;
mod reservations;
mod standby;
mod stream_limiter;

pub use describe::description;
pub(crate) use listen::{Fingerprint, acceptor};
pub use listen::{ServeError, Server};

use crate::service::{RequestError, Service};
use axum::Router;
use axum::http::StatusCode;
use axum::http::header::{CONTENT_TYPE, ETAG};
use axum::response::{IntoResponse, Response};
use axum::routing::{delete, get, post, put};
use serde::Serialize;
use srdma_api::ProblemType;
use srdma_controller_core::Refusal;
use std::sync::Arc;

/// The state that all handlers share.
#[derive(Clone)]
pub(crate) struct App {
    pub(crate) service: Arc<Service>,
    pub(crate) gate: Arc<gate::Gate>,
}

/// All paths.
pub(crate) fn router(app: App) -> Router {
    Router::new()
        .route("/", get(page::page))
        .route("/v1/openapi.json", get(describe::openapi))
        .route("/v1/groups", get(groups::list).post(groups::create))
        .route("/v1/groups/{id}", get(groups::show).delete(groups::close))
        .route("/v1/groups/{id}/commit", post(groups::commit))
        .route("/v1/groups/{id}/source", post(groups::source))
        .route("/v1/groups/{id}/service", put(groups::service))
        .route("/v1/groups/{id}/successor", get(groups::successor))
        .route("/v1/groups/{id}/receivers/{address}", put(groups::join).delete(groups::leave).get(groups::receiver))
        .route("/v1/groups/{id}/receivers/{address}/reservation", put(reservations::reserve))
        .route("/v1/groups/{id}/receivers/{address}/report", post(reservations::report))
        .route("/v1/foreign-groups", get(foreign::list))
        .route("/v1/foreign-groups/{store}/{group}", delete(foreign::remove))
        .route("/v1/foreign-groups/{store}/{group}/adopt", post(foreign::adopt))
        .route("/v1/nodes", get(network::list).post(network::register))
        .route("/v1/nodes/{name}", get(network::show).delete(network::remove))
        .route("/v1/nodes/{name}/sync", post(network::sync))
        .route("/v1/nodes/{name}/unreachable", post(network::unreachable))
        .route("/v1/nodes/{name}/drain", put(network::drain))
        .route("/v1/nodes/{name}/confirm", post(network::confirm))
        .route("/v1/nodes/{name}/rename", post(network::rename))
        .route("/v1/jobs", get(jobs::list).post(jobs::place))
        .route("/v1/jobs/{name}", get(jobs::show).delete(jobs::remove))
        .route("/v1/whatif", post(jobs::what_if))
        .route("/v1/fabric/drained", put(jobs::drain))
        .route("/v1/topology", get(network::topology))
        .route("/v1/events", get(events::stream))
        .route("/v1/audit", get(events::audit))
        .route("/v1/backup", get(events::backup))
        .route("/problems/{name}", get(describe::problem))
        .fallback(unknown_path)
        .method_not_allowed_fallback(wrong_method)
        .layer(axum::middleware::from_fn_with_state(Arc::clone(&app.gate), gate::admit))
        .with_state(app)
}

async fn unknown_path() -> RequestError {
    Refusal::new(ProblemType::UnknownPath, "the paths are listed at /v1/openapi.json").into()
}

async fn wrong_method() -> RequestError {
    Refusal::new(ProblemType::MethodNotAllowed, "the methods of each path are listed at /v1/openapi.json").into()
}

impl IntoResponse for RequestError {
    fn into_response(self) -> Response {
        let status = StatusCode::from_u16(self.0.kind.status()).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let body = serde_json::to_string(&self.0.problem()).unwrap_or_default();
        let mut response = (status, [(CONTENT_TYPE, "application/problem+json")], body).into_response();
        if status == StatusCode::UNAUTHORIZED {
            let scheme = axum::http::HeaderValue::from_static("Bearer");
            response.headers_mut().insert(axum::http::header::WWW_AUTHENTICATE, scheme);
        }
        // The connection is not counted among those of clients or nodes: it makes room.
        if self.0.kind == ProblemType::TooManyConnections {
            let close = axum::http::HeaderValue::from_static("close");
            response.headers_mut().insert(axum::http::header::CONNECTION, close);
        }
        if status == StatusCode::SERVICE_UNAVAILABLE {
            let later = axum::http::HeaderValue::from_static("1");
            response.headers_mut().insert(axum::http::header::RETRY_AFTER, later);
        }
        response.extensions_mut().insert(gate::RefusedAs(self.0.kind));
        response
    }
}

/// A response of JSON, with the version as `ETag`.
pub(crate) fn answer(status: StatusCode, value: &impl Serialize, version: Option<u64>) -> Response {
    let body = serde_json::to_string(value).unwrap_or_default();
    written(status, body, version)
}

/// The same for text that is JSON already.
pub(crate) fn written(status: StatusCode, body: String, version: Option<u64>) -> Response {
    let json = (CONTENT_TYPE, "application/json");
    match version {
        Some(version) => (status, [json, (ETAG, &format!("\"{version}\""))], body).into_response(),
        None => (status, [json], body).into_response(),
    }
}
