//! What each request passes before it is served, and each response before it is sent.

use super::connection_limiter::Permit;
use super::memory::Memory;
use super::origin_check::OriginCheck;
use super::refusal_log::{RefusalLog, Refused};
use super::stream_limiter::StreamLimiter;
use crate::access::Access;
use crate::config::Config;
use crate::service::RequestError;
use axum::extract::{Request, State};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use srdma_api::ProblemType;
use std::sync::Arc;

/// Limits of event streams: in all, and with one token.
const MAX_STREAMS: usize = 1024;
const MAX_STREAMS_PER_TOKEN: usize = 256;

/// Limit of backups at a time, each with a thread that reads the store.
const MAX_BACKUPS: usize = 4;

/// Tokens and limits, shared by all requests.
#[derive(Debug)]
pub(crate) struct Gate {
    pub(super) access: Arc<Access>,
    origins: OriginCheck,
    refusals: Arc<RefusalLog>,
    pub(super) memory: Memory,
    pub(super) events: Arc<StreamLimiter>,
    pub(super) backups: Arc<StreamLimiter>,
}

/// Marks the response to a refused request.
#[derive(Clone, Copy, Debug)]
pub(super) struct RefusedAs(pub(super) ProblemType);

impl Gate {
    pub(super) fn new(config: &Config, access: Arc<Access>, refusals: Arc<RefusalLog>) -> Self {
        Gate {
            access,
            origins: OriginCheck::new(config),
            refusals,
            memory: Memory::default(),
            events: StreamLimiter::new("events", MAX_STREAMS, MAX_STREAMS_PER_TOKEN),
            backups: StreamLimiter::new("backups", MAX_BACKUPS, MAX_BACKUPS),
        }
    }
}

/// Checks the head of a request, counts its response, and logs a refusal.
pub(super) async fn admit(State(gate): State<Arc<Gate>>, request: Request, next: Next) -> Response {
    let (head, body) = request.into_parts();
    let (method, uri, extensions) = (head.method.clone(), head.uri.clone(), head.extensions.clone());
    let response = match gate.origins.check(&head) {
        Ok(()) => next.run(Request::from_parts(head, body)).await,
        Err(refusal) => RequestError(refusal).into_response(),
    };
    let counted = gate.memory.counted(&method, &extensions, response);
    let response = counted.unwrap_or_else(|refusal| RequestError(refusal).into_response());
    if let Some(RefusedAs(kind)) = response.extensions().get().copied() {
        let permit = extensions.get::<Arc<Permit>>();
        gate.refusals.note(Refused {
            kind,
            from: permit.map(|permit| permit.from()),
            token: permit.and_then(|permit| permit.token()),
            method: method.as_str(),
            path: uri.path(),
        });
    }
    response
}
