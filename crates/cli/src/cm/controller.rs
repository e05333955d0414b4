//! The group at the controller, in a thread: connection management is answered meanwhile.

use crate::programs_group::{ProgramsGroup, Receiver, Source};
use anyhow::Result;
use std::io;
use std::sync::mpsc::{Receiver as Results, Sender, channel};
use std::thread;

enum Order {
    Make(Box<Source>, Vec<Receiver>),
    /// Close the group; whether all receivers were members until now.
    Close {
        is_checked: bool,
    },
}

/// What was done.
pub(super) enum Done {
    Made(Result<()>),
    Closed(Result<()>),
}

/// Orders to the thread, and what it has done. It ends when this is dropped, and closes the group.
pub(super) struct Controller {
    orders: Sender<Order>,
    done: Results<Done>,
}

impl Controller {
    pub(super) fn start(mut group: ProgramsGroup) -> io::Result<Self> {
        let (orders, received) = channel();
        let (results, done) = channel();
        thread::Builder::new().name("controller".to_owned()).spawn(move || {
            for order in received {
                let result = match order {
                    Order::Make(source, receivers) => {
                        Done::Made(group.create(*source).and_then(|_| group.begin(&receivers)))
                    }
                    Order::Close { is_checked } => {
                        let checked = if is_checked { group.check() } else { Ok(()) };
                        let closed = group.close();
                        Done::Closed(checked.and(closed))
                    }
                };
                if results.send(result).is_err() {
                    return;
                }
            }
        })?;
        Ok(Controller { orders, done })
    }

    // The thread ends after this.

    pub(super) fn make(&self, source: Source, receivers: Vec<Receiver>) {
        let _ = self.orders.send(Order::Make(Box::new(source), receivers));
    }

    pub(super) fn close(&self, is_checked: bool) {
        let _ = self.orders.send(Order::Close { is_checked });
    }

    /// What was done since the last call.
    pub(super) fn done(&self) -> Option<Done> {
        self.done.try_recv().ok()
    }
}
