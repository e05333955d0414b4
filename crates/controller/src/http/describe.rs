//! Description of the API, and the meanings of its problems.

use super::memory::IsStatic;
use super::{events, foreign, groups, jobs, network, reservations};
use crate::service::RequestError;
use axum::Extension;
use axum::body::Bytes;
use axum::extract::Path;
use axum::http::StatusCode;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use srdma_api::ProblemType;
use srdma_controller_core::Refusal;
use std::sync::LazyLock;
use utoipa::OpenApi;

/// Multicast groups and jobs, installed at the nodes of a network.
#[derive(OpenApi)]
#[openapi(
    info(title = "srdma controller", license(name = "MIT OR Apache-2.0")),
    paths(
        groups::list,
        groups::create,
        groups::show,
        groups::close,
        groups::commit,
        groups::receiver,
        groups::join,
        groups::leave,
        reservations::reserve,
        reservations::report,
        groups::source,
        groups::service,
        groups::successor,
        foreign::list,
        foreign::adopt,
        foreign::remove,
        network::list,
        network::register,
        network::show,
        network::sync,
        network::unreachable,
        network::drain,
        network::confirm,
        network::rename,
        network::remove,
        network::topology,
        jobs::list,
        jobs::place,
        jobs::show,
        jobs::remove,
        jobs::what_if,
        jobs::drain,
        events::stream,
        events::audit,
        events::backup
    )
)]
struct Description;

/// The API's description as OpenAPI 3.1, JSON.
pub fn description() -> String {
    Description::openapi().to_pretty_json().unwrap_or_default()
}

pub(super) async fn openapi() -> Response {
    // One text for all responses.
    static DESCRIPTION: LazyLock<Bytes> = LazyLock::new(|| Bytes::from(description()));
    let json = [(CONTENT_TYPE, "application/json")];
    (StatusCode::OK, json, Extension(IsStatic), DESCRIPTION.clone()).into_response()
}

/// The meaning of a problem type, as text.
pub(super) async fn problem(Path(name): Path<String>) -> Response {
    match ProblemType::from_name(&name) {
        Some(kind) => format!("{}: {}\n", kind.name(), kind.title()).into_response(),
        None => RequestError(Refusal::new(ProblemType::UnknownPath, format!("problem type {name} does not exist")))
            .into_response(),
    }
}
