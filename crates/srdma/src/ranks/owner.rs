//! The rank that has the receiver of the host, and serves the others.

use super::message::End;
use super::server::Server;
use super::{Context, Outcome};
use crate::error::{Over, Result};
use crate::event::Event;
use crate::receiver::{Held, Receiver};
use std::os::fd::AsFd;
use std::time::Duration;

/// The owner: it has joined the group.
pub(super) struct Owner {
    receiver: Receiver,
    // Last: the next owner joins when this receiver has left.
    server: Server<Held>,
}

impl Owner {
    pub(super) fn new(receiver: Receiver, server: Server<Held>) -> Self {
        Owner { receiver, server }
    }

    /// Passes on what the receiver reports, to the application and to the other ranks.
    pub(super) fn run(mut self, context: &Context, newest: &mut Option<u64>) -> Outcome {
        loop {
            if context.wake.is_closing() {
                return Outcome::Closed(self.close(context, newest));
            }
            let readable = self.server.wait(&[context.wake.as_fd(), self.receiver.as_fd()]);
            context.wake.take();
            let over = self.pass_on(context, newest);
            if let Some(end) = over.as_ref().and_then(End::of) {
                self.server.table().over(&end);
            }
            let events = self.server.work(readable);
            context.shared.push(events, |_| {});
            if let Some(over) = over {
                return Outcome::Over(over);
            }
        }
    }

    /// What the receiver has reported; the reason if it has ended.
    fn pass_on(&mut self, context: &Context, newest: &mut Option<u64>) -> Option<Over> {
        // The handle is one of this process.
        while let Ok(Some(event)) = self.receiver.next_event() {
            match event {
                Event::Version { .. } => self.pass_versions(context, newest),
                Event::Over(over) => {
                    self.pass_versions(context, newest);
                    return Some(over);
                }
                Event::Joined => {
                    self.server.table().joined();
                    context.shared.push([Event::Joined], |_| {});
                }
                Event::Rejected { version, why } => {
                    self.server.table().rejected(version, &why.to_string());
                    context.shared.push([Event::Rejected { version, why }], |_| {});
                }
                Event::SourceSilent => {
                    self.server.table().source_is_silent();
                    context.shared.push([Event::SourceSilent], |_| {});
                }
                // Of sources, of receivers that follow, or of the handle of a rank; and this thread does fetch its
                // events.
                Event::Published { .. }
                | Event::Resumed { .. }
                | Event::Slow { .. }
                | Event::Failed { .. }
                | Event::RankAttached { .. }
                | Event::RankDetached { .. }
                | Event::RankHolds { .. }
                | Event::OwnerLost
                | Event::Lost(_) => {}
            }
        }
        None
    }

    fn pass_versions(&mut self, context: &Context, newest: &mut Option<u64>) {
        while let Ok(version) = self.receiver.next_version(Duration::ZERO) {
            let number = version.number();
            let now = self.server.now();
            self.server.table().version(now, version.shared_manifest(), version.held());
            // As the first version of this receiver it may be one that the former owner of the host had.
            if newest.is_none_or(|newest| number > newest) {
                *newest = Some(number);
                context.shared.push([Event::Version { version: number }], |versions| versions.push_back(version));
            }
        }
    }

    /// Leaves the group, and passes on what came before.
    fn close(mut self, context: &Context, newest: &mut Option<u64>) -> Result<()> {
        let left = self.receiver.leave();
        self.pass_on(context, newest);
        let Owner { receiver, mut server } = self;
        let closed = receiver.close();
        server.table().ended();
        server.flush();
        left.and(closed)
    }
}
