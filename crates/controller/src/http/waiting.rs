//! What a controller answers that does not lead: who does.

use crate::refusal::{Kind, Refusal};
use crate::store::Leadership;
use axum::Router;
use axum::extract::State;
use axum::http::HeaderValue;
use axum::http::header::{CONNECTION, RETRY_AFTER};
use axum::response::{IntoResponse, Response};
use tokio::sync::watch;

/// Refuses all requests.
pub(crate) fn router(told: watch::Receiver<Leadership>) -> Router {
    Router::new().fallback(refuse).with_state(told)
}

async fn refuse(State(told): State<watch::Receiver<Leadership>>) -> Response {
    let detail = match &*told.borrow() {
        Leadership::Anothers { url } => format!("the controller at {url} leads: ask that one"),
        Leadership::Ours => "this controller leads from now on, and reads its store: come again".to_owned(),
        Leadership::Unknown { reason } => format!("it is not known who leads: {reason}"),
    };
    let mut response = Refusal::new(Kind::NotTheLeader, detail).into_response();
    response.headers_mut().insert(RETRY_AFTER, HeaderValue::from_static("1"));
    // The next request on it would come here again, even when this one leads.
    response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
    response
}
