//! The web page.

use super::memory::IsStatic;
use axum::Extension;
use axum::http::header::{CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE};
use axum::response::{Html, IntoResponse, Response};

/// One file, whose own policy allows connections to its server only; the headers here add what a file cannot have.
const PAGE: &str = include_str!("../../../../page/dist/index.html");
const POLICY: &str = "frame-ancestors 'none'";

pub(super) async fn page() -> Response {
    let headers =
        [(CONTENT_TYPE, "text/html; charset=utf-8"), (CONTENT_SECURITY_POLICY, POLICY), (CACHE_CONTROL, "no-cache")];
    (headers, Extension(IsStatic), Html(PAGE)).into_response()
}
