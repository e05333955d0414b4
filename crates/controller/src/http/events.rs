//! `/v1/events`, `/v1/audit` and `/v1/backup`.

use super::{App, answer};
use crate::backup::write_backup;
use crate::service::{Events, RequestError};
use crate::store::StoreError;
use axum::body::Body;
use axum::extract::{Query, State};
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use serde::Deserialize;
use srdma_api::ProblemType;
use srdma_api::{AuditPage, EVENT_KEEP_ALIVE, Event, EventKind};
use srdma_controller_core::{AUDIT_PREFIX, EventCursor, Principal, Refusal, audit_entry, audit_key};
use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};
use tokio::sync::broadcast::error::RecvError;
use tokio::sync::mpsc;

/// Entries of a page of the audit log.
const PAGE: usize = 100;
const MAX_PAGE: usize = 10_000;

/// Stream events (server-sent events) behind `Last-Event-ID`, or from now on; 0 for all kept events. An event
/// `events-missed` reports a gap. Without events there is a comment every ten seconds.
#[utoipa::path(
    get,
    path = "/v1/events",
    params(("Last-Event-ID" = Option<String>, Header)),
    responses((status = 200, content_type = "text/event-stream", body = Event))
)]
pub(super) async fn stream(
    State(app): State<App>,
    principal: Principal,
    headers: HeaderMap,
) -> Result<Response, RequestError> {
    let cursor = headers.get("last-event-id").map(|id| id.to_str().ok().and_then(EventCursor::parse));
    if cursor == Some(None) {
        let text = "Last-Event-ID: expected the id of an event, or 0";
        return Err(Refusal::new(ProblemType::InvalidRequest, text).into());
    }
    let Events { run, kept, next: mut events } = app.service.events(cursor.flatten());
    let (sender, receiver) = mpsc::channel(64);
    tokio::spawn(async move {
        let is_visible = |event: &Event| match (&event.kind, &event.tenant) {
            (EventKind::EventsMissed { .. }, _) => true,
            (_, Some(tenant)) => principal.may_read(tenant).is_ok(),
            (_, None) => principal.may_read_network().is_ok(),
        };
        for event in kept.iter().filter(|event| is_visible(event)) {
            if sender.send(line(run, event)).await.is_err() {
                return;
            }
        }
        loop {
            let text = match tokio::time::timeout(EVENT_KEEP_ALIVE, events.recv()).await {
                Ok(Ok(event)) if is_visible(&event) => line(run, &event),
                Ok(Ok(_)) => continue,
                // A client that reads too slowly is disconnected; it may reconnect with its last id.
                Ok(Err(RecvError::Lagged(_) | RecvError::Closed)) => return,
                Err(_) => ": keep-alive\n\n".to_owned(),
            };
            if sender.send(text).await.is_err() {
                return;
            }
        }
    });
    let headers = [(CONTENT_TYPE, "text/event-stream"), (CACHE_CONTROL, "no-store")];
    Ok((headers, Body::new(Lines(receiver))).into_response())
}

fn line(run: u64, event: &Event) -> String {
    format!(
        "id: {}\ndata: {}\n\n",
        EventCursor::id(run, event.number),
        serde_json::to_string(event).unwrap_or_default()
    )
}

/// A body of lines from a channel.
struct Lines(mpsc::Receiver<String>);

impl http_body::Body for Lines {
    type Data = axum::body::Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<http_body::Frame<Self::Data>, Infallible>>> {
        let line = self.0.poll_recv(context);
        line.map(|line| line.map(|line| Ok(http_body::Frame::data(line.into()))))
    }
}

#[derive(Deserialize, utoipa::IntoParams)]
#[serde(deny_unknown_fields)]
pub(super) struct AuditQuery {
    /// The `next` of the previous page.
    after: Option<u64>,
    /// Entries of a page [default: 100].
    limit: Option<usize>,
}

/// Read the audit log, oldest entries first.
#[utoipa::path(get, path = "/v1/audit", params(AuditQuery), responses((status = 200, body = AuditPage)))]
pub(super) async fn audit(
    State(app): State<App>,
    principal: Principal,
    query: Result<Query<AuditQuery>, axum::extract::rejection::QueryRejection>,
) -> Result<Response, RequestError> {
    let Query(query) = query.map_err(|error| Refusal::new(ProblemType::InvalidRequest, error.to_string()))?;
    principal.may_read_network()?;
    let most = query.limit.unwrap_or(PAGE).clamp(1, MAX_PAGE);
    let after = query.after.map(audit_key);
    let service = std::sync::Arc::clone(&app.service);
    let read = tokio::task::spawn_blocking(move || service.rows(AUDIT_PREFIX, after.as_deref(), most + 1)).await;
    let mut found = read.map_err(|error| Refusal::new(ProblemType::StoreFailed, error.to_string()))??;
    let has_more = found.len() > most;
    found.truncate(most);
    let entries = found.iter().map(audit_entry).collect::<Result<Vec<_>, _>>().map_err(StoreError::from)?;
    let next = entries.last().filter(|_| has_more).map(|entry| entry.number);
    Ok(answer(StatusCode::OK, &AuditPage { entries, next }, None))
}

/// Back up the store, a line for each row, for `srdma controller restore`.
#[utoipa::path(get, path = "/v1/backup", responses((status = 200, content_type = "application/jsonl", body = String)))]
pub(super) async fn backup(State(app): State<App>, principal: Principal) -> Result<Response, RequestError> {
    principal.may_operate()?;
    let (sender, receiver) = mpsc::channel(64);
    let service = std::sync::Arc::clone(&app.service);
    tokio::task::spawn_blocking(move || {
        let mut write_line =
            |line: &str| sender.blocking_send(line.to_owned()).map_err(|_| std::io::ErrorKind::BrokenPipe.into());
        // The client recognizes a truncated backup by the missing last line.
        if let Err(error) = write_backup(service.store(), &mut write_line) {
            tracing::warn!(%error, "backup failed");
        }
    });
    Ok(([(CONTENT_TYPE, "application/jsonl")], Body::new(Lines(receiver))).into_response())
}
