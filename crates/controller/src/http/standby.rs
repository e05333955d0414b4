//! Responses of a standby controller: the address of the leader.

use crate::service::RequestError;
use crate::store::Leadership;
use axum::Router;
use axum::extract::State;
use axum::http::HeaderValue;
use axum::http::header::{CONNECTION, RETRY_AFTER};
use axum::response::{IntoResponse, Response};
use srdma_api::ProblemType;
use srdma_controller_core::Refusal;
use tokio::sync::watch;

/// Refuses all requests.
pub(crate) fn router(leadership: watch::Receiver<Leadership>) -> Router {
    Router::new().fallback(refuse).with_state(leadership)
}

async fn refuse(State(leadership): State<watch::Receiver<Leadership>>) -> Response {
    let detail = match &*leadership.borrow() {
        Leadership::Other { url } => format!("the controller at {url} is the leader: use that one"),
        Leadership::Own => "this controller has become the leader and is reading its store: try again".to_owned(),
        Leadership::Unknown { reason } => format!("the leader is unknown: {reason}"),
    };
    let mut response = RequestError(Refusal::new(ProblemType::NotLeader, detail)).into_response();
    response.headers_mut().insert(RETRY_AFTER, HeaderValue::from_static("1"));
    // Later requests of the connection would be refused even when this controller is the leader.
    response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
    response
}
