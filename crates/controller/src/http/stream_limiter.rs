//! Limiter of streams: in all and for each token (D101).

use srdma_api::ProblemType;
use srdma_controller_core::{Principal, Refusal};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Counts open streams of one kind.
#[derive(Debug)]
pub(crate) struct StreamLimiter {
    what: &'static str,
    max: usize,
    max_per_token: usize,
    open: Mutex<Open>,
}

#[derive(Debug, Default)]
struct Open {
    all: usize,
    by_token: BTreeMap<String, usize>,
}

/// Counts one stream until it is dropped.
#[derive(Debug)]
pub(crate) struct StreamPermit {
    limiter: Arc<StreamLimiter>,
    token: String,
}

impl StreamLimiter {
    pub(crate) fn new(what: &'static str, max: usize, max_per_token: usize) -> Arc<Self> {
        Arc::new(StreamLimiter { what, max, max_per_token, open: Mutex::default() })
    }

    /// A permit for a stream, if there is room.
    pub(crate) fn acquire(self: &Arc<Self>, principal: &Principal) -> Result<StreamPermit, Refusal> {
        let (what, token) = (self.what, &principal.name);
        let mut open = self.lock();
        let of_token = open.by_token.get(token).copied().unwrap_or(0);
        let text = match (open.all >= self.max, of_token >= self.max_per_token) {
            (true, _) => format!("{} streams of {what} are open, the limit: try again later", self.max),
            (false, true) => {
                format!("{of_token} streams of {what} are open with token {token}, the limit of one token")
            }
            (false, false) => {
                open.all += 1;
                open.by_token.insert(token.clone(), of_token + 1);
                return Ok(StreamPermit { limiter: Arc::clone(self), token: token.clone() });
            }
        };
        Err(Refusal::new(ProblemType::TooManyStreams, text))
    }

    fn lock(&self) -> MutexGuard<'_, Open> {
        // Two counters that are always changed together, by nothing that panics.
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for StreamPermit {
    fn drop(&mut self) {
        let mut open = self.limiter.lock();
        open.all -= 1;
        match open.by_token.get_mut(&self.token) {
            Some(count) if *count > 1 => *count -= 1,
            Some(_) | None => drop(open.by_token.remove(&self.token)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use srdma_controller_core::Role;

    #[test]
    fn streams_are_limited_for_each_token_and_in_all() {
        let limiter = StreamLimiter::new("events", 3, 2);
        let acquire = |name: &str| {
            let principal = Principal { name: name.to_owned(), role: Role::Read, tenant: None, node: None };
            limiter.acquire(&principal).map_err(|refusal| refusal.detail)
        };
        let a = [acquire("a").unwrap(), acquire("a").unwrap()];
        assert!(acquire("a").unwrap_err().contains("token a"));
        let _b = acquire("b").unwrap();
        assert!(acquire("c").unwrap_err().contains("3 streams of events are open"));
        drop(a);
        let _c = [acquire("a").unwrap(), acquire("c").unwrap()];
        let open = limiter.lock();
        assert_eq!((open.all, open.by_token.len()), (3, 3));
    }
}
