//! `/v1/events`, `/v1/audit` and `/v1/backup`.

use super::stream_limiter::StreamPermit;
use super::{App, answer};
use crate::backup::write_backup;
use crate::service::{Events, RequestError, Service};
use crate::store::StoreError;
use axum::body::{Body, Bytes};
use axum::extract::{Query, State};
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use serde::Deserialize;
use srdma_api::ProblemType;
use srdma_api::{AuditPage, EVENT_KEEP_ALIVE, Event, Problem};
use srdma_controller_core::{AUDIT_PREFIX, EventCursor, KeptEvent, Principal, Refusal, audit_entry, audit_key};
use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use tokio::sync::{mpsc, watch};

/// Entries of a page of the audit log.
const PAGE: usize = 100;
const MAX_PAGE: usize = 10_000;

/// Stream events (server-sent events) behind `Last-Event-ID`, or from now on; 0 for all kept events. An event
/// `events-missed` reports a gap. Without events there is a comment every ten seconds.
#[utoipa::path(
    get,
    path = "/v1/events",
    params(("Last-Event-ID" = Option<String>, Header)),
    responses((status = 200, content_type = "text/event-stream", body = Event), (status = "4XX", body = Problem))
)]
pub(super) async fn stream(
    State(app): State<App>,
    principal: Principal,
    headers: HeaderMap,
) -> Result<Response, RequestError> {
    principal.may_watch()?;
    let cursor = headers.get("last-event-id").map(|id| id.to_str().ok().and_then(EventCursor::parse));
    if cursor == Some(None) {
        let text = "Last-Event-ID: expected the id of an event, or 0";
        return Err(Refusal::new(ProblemType::InvalidRequest, text).into());
    }
    let permit = app.gate.events.acquire(&principal)?;
    let events = app.service.events(cursor.flatten());
    let headers = [(CONTENT_TYPE, "text/event-stream"), (CACHE_CONTROL, "no-store")];
    let stream = EventStream { service: app.service, events, principal, waiting: None, _permit: permit };
    Ok((headers, Body::new(stream)).into_response())
}

/// A body of events. It has a position in the log and no event of its own, and reads a batch when the connection has
/// room for it (D101).
struct EventStream {
    service: Arc<Service>,
    events: Events,
    principal: Principal,
    waiting: Option<Waiting>,
    _permit: StreamPermit,
}

/// Resolves when there are events, or after the keep-alive interval; the receiver is returned.
type Waiting = Pin<Box<dyn Future<Output = (watch::Receiver<u64>, bool)> + Send>>;

impl http_body::Body for EventStream {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<http_body::Frame<Bytes>, Infallible>>> {
        let stream = &mut *self;
        loop {
            if let Some(waiting) = &mut stream.waiting {
                let (receiver, has_events) = ready!(waiting.as_mut().poll(context));
                stream.waiting = None;
                stream.events.changes = receiver;
                if !has_events {
                    return Poll::Ready(Some(Ok(http_body::Frame::data(Bytes::from_static(b": keep-alive\n\n")))));
                }
            }
            let batch = stream.service.next_events(&mut stream.events, &stream.principal);
            if !batch.events.is_empty() {
                let lines: String = batch.events.iter().map(|event| line(stream.events.run, event)).collect();
                return Poll::Ready(Some(Ok(http_body::Frame::data(lines.into()))));
            }
            if batch.is_last {
                let mut changes = stream.events.changes.clone();
                stream.waiting = Some(Box::pin(async move {
                    let changed = tokio::time::timeout(EVENT_KEEP_ALIVE, changes.changed()).await;
                    let has_events = matches!(changed, Ok(Ok(())));
                    (changes, has_events)
                }));
            }
        }
    }
}

fn line(run: u64, event: &KeptEvent) -> String {
    format!("id: {}\ndata: {}\n\n", EventCursor::id(run, event.number()), event.text())
}

/// A body of lines from a channel.
struct Lines {
    lines: mpsc::Receiver<String>,
    _permit: StreamPermit,
}

impl http_body::Body for Lines {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<http_body::Frame<Self::Data>, Infallible>>> {
        let line = self.lines.poll_recv(context);
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
    let permit = app.gate.backups.acquire(&principal)?;
    let (sender, receiver) = mpsc::channel(4);
    let service = Arc::clone(&app.service);
    tokio::task::spawn_blocking(move || {
        let mut write_line =
            |line: &str| sender.blocking_send(line.to_owned()).map_err(|_| std::io::ErrorKind::BrokenPipe.into());
        // The client recognizes a truncated backup by the missing last line.
        if let Err(error) = write_backup(service.store(), &mut write_line) {
            tracing::warn!(%error, "backup failed");
        }
    });
    Ok(([(CONTENT_TYPE, "application/jsonl")], Body::new(Lines { lines: receiver, _permit: permit })).into_response())
}
