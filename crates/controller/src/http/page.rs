//! The page for people.

use axum::http::header::{CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE};
use axum::response::{Html, IntoResponse, Response};

/// It is one file, whose own policy lets it speak to nobody but its server; this adds what a file cannot say.
const PAGE: &str = include_str!("../../../../page/dist/index.html");
const POLICY: &str = "frame-ancestors 'none'";

pub(super) async fn page() -> Response {
    let headers =
        [(CONTENT_TYPE, "text/html; charset=utf-8"), (CONTENT_SECURITY_POLICY, POLICY), (CACHE_CONTROL, "no-cache")];
    (headers, Html(PAGE)).into_response()
}
