//! Budgets of octets for bodies of requests and responses, so that connections alone cannot fill the memory (D101).

use super::connection_limiter::Permit;
use axum::body::{Body, Bytes};
use axum::http::{Extensions, Method, Request, Response};
use http_body::{Body as _, Frame, SizeHint};
use srdma_api::ProblemType;
use srdma_controller_core::Refusal;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

/// Budgets for requests and responses, octets. Nodes, whose registrations are long, have their own, which other clients
/// cannot use up.
const OF_NODES: (usize, usize) = (48 << 20, 32 << 20);
const OF_OTHERS: (usize, usize) = (16 << 20, 48 << 20);

/// Length of bodies that need no budget, octets.
const FREE_REQUEST_OCTETS: usize = 4 << 10;
const FREE_RESPONSE_OCTETS: usize = 8 << 10;

/// The longest body of a request, octets.
pub(super) const MAX_REQUEST_OCTETS: usize = 4 << 20;

/// Time limit for the body of a request.
const BODY_TIMEOUT: Duration = Duration::from_secs(10);

/// The budgets of a controller.
#[derive(Debug)]
pub(crate) struct Memory {
    nodes: Budgets,
    others: Budgets,
}

#[derive(Debug)]
struct Budgets {
    requests: Arc<Budget>,
    responses: Arc<Budget>,
}

/// A number of octets that may be in use at a time.
#[derive(Debug)]
struct Budget {
    octets: usize,
    used: AtomicUsize,
}

/// A part of a budget that is in use, until it is dropped.
#[derive(Debug)]
struct Share {
    budget: Arc<Budget>,
    octets: usize,
}

impl Default for Memory {
    fn default() -> Self {
        Memory { nodes: Budgets::new(OF_NODES), others: Budgets::new(OF_OTHERS) }
    }
}

impl Budgets {
    fn new((requests, responses): (usize, usize)) -> Self {
        let of = |octets| Arc::new(Budget { octets, used: AtomicUsize::new(0) });
        Budgets { requests: of(requests), responses: of(responses) }
    }
}

impl Memory {
    fn budgets(&self, extensions: &Extensions) -> &Budgets {
        let is_node = extensions.get::<Arc<Permit>>().is_some_and(|permit| permit.is_node());
        if is_node { &self.nodes } else { &self.others }
    }

    /// The body of a request, within the limits of length and time.
    pub(crate) async fn read(&self, request: Request<Body>) -> Result<Bytes, Refusal> {
        let budget = Arc::clone(&self.budgets(request.extensions()).requests);
        let late = |_| {
            let text = format!("the body did not arrive within {} s", BODY_TIMEOUT.as_secs());
            Refusal::new(ProblemType::RequestTimeout, text)
        };
        tokio::time::timeout(BODY_TIMEOUT, read(request.into_body(), &budget)).await.map_err(late)?
    }

    /// Counts a response until it is sent. One that changes nothing is refused when the budget is used up; the outcome
    /// of a change is sent in any case.
    pub(crate) fn counted(
        &self,
        method: &Method,
        extensions: &Extensions,
        response: Response<Body>,
    ) -> Result<Response<Body>, Refusal> {
        let octets = response.body().size_hint().exact().unwrap_or(0);
        let octets = usize::try_from(octets).unwrap_or(usize::MAX);
        // The texts of the program are not copied for a response.
        if octets <= FREE_RESPONSE_OCTETS || response.extensions().get::<IsStatic>().is_some() {
            return Ok(response);
        }
        let budget = &self.budgets(extensions).responses;
        let share = if method.is_safe() { budget.take(octets)? } else { budget.take_always(octets) };
        Ok(response.map(|body| Body::new(Counted { body, _share: share })))
    }
}

/// Marks responses whose body is a text of the program.
#[derive(Clone, Copy, Debug)]
pub(super) struct IsStatic;

async fn read(mut body: Body, budget: &Arc<Budget>) -> Result<Bytes, Refusal> {
    let too_large = || {
        let text = format!("a body has at most {MAX_REQUEST_OCTETS} octets");
        Refusal::new(ProblemType::RequestTooLarge, text)
    };
    let mut octets = Vec::new();
    let mut shares = Vec::new();
    while let Some(frame) = std::future::poll_fn(|context| Pin::new(&mut body).poll_frame(context)).await {
        let frame = frame.map_err(|error| Refusal::new(ProblemType::InvalidRequest, format!("the body: {error}")))?;
        // Trailers are not used.
        let Ok(data) = frame.into_data() else { continue };
        let length = octets.len() + data.len();
        if length > MAX_REQUEST_OCTETS {
            return Err(too_large());
        }
        if length > octets.capacity() {
            let capacity = length.max(2 * octets.capacity()).max(FREE_REQUEST_OCTETS);
            if capacity > FREE_REQUEST_OCTETS {
                shares.push(budget.take(capacity - octets.capacity())?);
            }
            octets.reserve_exact(capacity - octets.len());
        }
        octets.extend_from_slice(&data);
    }
    Ok(octets.into())
}

impl Budget {
    fn take(self: &Arc<Self>, octets: usize) -> Result<Share, Refusal> {
        let taken = self.used.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |used| {
            used.checked_add(octets).filter(|used| *used <= self.octets)
        });
        match taken {
            Ok(_) => Ok(Share { budget: Arc::clone(self), octets }),
            Err(_) => {
                let text = "bodies of requests or responses use the memory that they may use: try again later";
                Err(Refusal::new(ProblemType::Overloaded, text))
            }
        }
    }

    fn take_always(self: &Arc<Self>, octets: usize) -> Share {
        self.used.fetch_add(octets, Ordering::Relaxed);
        Share { budget: Arc::clone(self), octets }
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        self.budget.used.fetch_sub(self.octets, Ordering::Relaxed);
    }
}

/// A body that uses a budget.
struct Counted {
    body: Body,
    _share: Share,
}

impl http_body::Body for Counted {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        Pin::new(&mut self.body).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        // The share is held until the connection has written the body, not only taken it.
        false
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn used(budget: &Budget) -> usize {
        budget.used.load(Ordering::Relaxed)
    }

    /// D101
    #[test]
    fn responses_beyond_the_budget_are_refused() {
        let memory = Memory::default();
        let none = Extensions::new();
        let response = || Response::new(Body::from(vec![b' '; 1 << 20]));
        let counted: Vec<_> = (0..OF_OTHERS.1 >> 20)
            .map(|_| memory.counted(&Method::GET, &none, response()).map_err(|refusal| refusal.kind).unwrap())
            .collect();
        let refused = memory.counted(&Method::GET, &none, response()).map(drop).unwrap_err();
        assert_eq!(refused.kind, ProblemType::Overloaded);
        assert!(memory.counted(&Method::PUT, &none, response()).is_ok(), "the outcome of a change is sent");
        assert!(memory.counted(&Method::GET, &none, Response::new(Body::from("short"))).is_ok());
        drop(counted);
        assert_eq!(used(&memory.others.responses), 0);
    }

    /// D101
    #[test]
    fn bodies_beyond_the_budget_are_refused() {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let budget = Arc::new(Budget { octets: 1 << 20, used: AtomicUsize::new(0) });
        let read = |octets| runtime.block_on(read(Body::from(vec![b' '; octets]), &budget)).map_err(|one| one.kind);
        assert_eq!(read(1 << 20).unwrap().len(), 1 << 20);
        let _share = budget.take(1).unwrap();
        assert_eq!(read(1 << 20).unwrap_err(), ProblemType::Overloaded);
        assert_eq!(read(FREE_REQUEST_OCTETS).unwrap().len(), FREE_REQUEST_OCTETS);
        assert_eq!(read(MAX_REQUEST_OCTETS + 1).unwrap_err(), ProblemType::RequestTooLarge);
        assert_eq!(used(&budget), 1);
    }
}
