//! One exchange after the other (D271).

use crate::action::Action;
use crate::exchange::Exchange;
use crate::mad::Mad;
use crate::refusal::Refusal;
use srdma_wire::Instant;
use std::collections::VecDeque;
use std::net::Ipv6Addr;

/// The present exchange, and the one before, whose messages may come again: they are answered as then, and begin
/// nothing.
#[derive(Debug)]
pub struct Exchanges {
    current: Exchange,
    former: Option<Exchange>,
    /// Answers of the former.
    answers: VecDeque<Action>,
}

impl Exchanges {
    /// The first exchange.
    pub fn new(first: Exchange) -> Self {
        Exchanges { current: first, former: None, answers: VecDeque::new() }
    }

    /// The present exchange.
    pub fn current(&self) -> &Exchange {
        &self.current
    }

    /// The present exchange.
    pub fn current_mut(&mut self) -> &mut Exchange {
        &mut self.current
    }

    /// The present exchange has finished: the next one, with numbers of its own, takes its place.
    pub fn succeed(&mut self, next: Exchange) {
        self.former = Some(std::mem::replace(&mut self.current, next));
    }

    /// What is to be done next; to be called until there is nothing more.
    pub fn next_action(&mut self) -> Option<Action> {
        self.answers.pop_front().or_else(|| self.current.next_action())
    }

    /// Takes a message that came to the Proxy Address.
    ///
    /// # Errors
    ///
    /// Why it had no effect.
    pub fn receive(&mut self, now: Instant, from: Ipv6Addr, mad: &Mad) -> Result<(), Refusal> {
        if let Some(former) = &mut self.former {
            let result = former.receive(now, from, mad);
            let actions: Vec<Action> = std::iter::from_fn(|| former.next_action()).collect();
            match result {
                Ok(()) => {
                    self.answers.extend(actions);
                    return Ok(());
                }
                Err(refusal @ (Refusal::OutOfState | Refusal::OtherQueuePair)) => return Err(refusal),
                // It is none of its messages: what it says to that is not sent.
                Err(
                    Refusal::Service
                    | Refusal::Transport
                    | Refusal::Gid
                    | Refusal::PathMtu
                    | Refusal::NoIpAddresses
                    | Refusal::Busy
                    | Refusal::UnknownConnection,
                ) => {}
            }
        }
        self.current.receive(now, from, mad)
    }
}
