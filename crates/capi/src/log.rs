//! The log of the library as a function of a C program (D202).

use crate::errors::{Failure, call};
use crate::text;
use std::ffi::{c_char, c_int, c_void};
use std::fmt::{self, Write};
use std::sync::{OnceLock, PoisonError, RwLock};
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Level, Metadata, Subscriber};

/// `srdma_log_function`.
pub type SrdmaLogFunction = unsafe extern "C" fn(context: *mut c_void, level: c_int, message: *const c_char);

/// Octets of a message with its NUL; longer ones are cut.
const MESSAGE_OCTETS: usize = 512;

/// Where messages go.
#[derive(Clone, Copy)]
struct Sink {
    level: c_int,
    function: SrdmaLogFunction,
    context: *mut c_void,
}

// SAFETY: `srdma.h` says that the function is called by any thread, with this context.
unsafe impl Send for Sink {}
// SAFETY: see above.
unsafe impl Sync for Sink {}

static SINK: RwLock<Option<Sink>> = RwLock::new(None);

/// See `srdma.h`.
///
/// # Safety
///
/// `function` is NULL, or can be called by any thread until another call of this function has returned.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn srdma_set_log(
    level: c_int,
    function: Option<SrdmaLogFunction>,
    context: *mut c_void,
) -> c_int {
    call(|| {
        if !(1..=4).contains(&level) && function.is_some() {
            return Err(Failure::invalid(format!("level {level} is none of enum srdma_log_level")));
        }
        static INSTALLED: OnceLock<bool> = OnceLock::new();
        let is_installed = *INSTALLED.get_or_init(|| tracing::subscriber::set_global_default(ToSink).is_ok());
        if !is_installed {
            return Err(Failure::new(libc::EBUSY, "the Rust program that has the library has a log of its own"));
        }
        // Messages on their way to the former function have arrived when the lock is taken.
        let sink = function.map(|function| Sink { level, function, context });
        *SINK.write().unwrap_or_else(PoisonError::into_inner) = sink;
        Ok(())
    })
}

/// A number of `enum srdma_log_level`.
fn number(level: Level) -> c_int {
    match level {
        Level::ERROR => 1,
        Level::WARN => 2,
        Level::INFO => 3,
        Level::DEBUG | Level::TRACE => 4,
    }
}

/// Passes on the events of the library; it has no spans.
struct ToSink;

impl Subscriber for ToSink {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        let sink = SINK.read().unwrap_or_else(PoisonError::into_inner);
        let is_own = metadata.target().starts_with("srdma");
        is_own && sink.as_ref().is_some_and(|sink| number(*metadata.level()) <= sink.level)
    }

    fn register_callsite(&self, _: &'static Metadata<'static>) -> tracing::subscriber::Interest {
        // The level changes with each call of `srdma_set_log`.
        tracing::subscriber::Interest::sometimes()
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        let mut line = Line::default();
        event.record(&mut line);
        let mut message = [0; MESSAGE_OCTETS];
        text::write(&line.text(), &mut message);
        let sink = SINK.read().unwrap_or_else(PoisonError::into_inner);
        if let Some(Sink { function, context, .. }) = *sink {
            // SAFETY: the contract of `srdma_set_log`; the message ends by NUL.
            unsafe { function(context, number(*event.metadata().level()), message.as_ptr()) };
        }
    }

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

/// The message, and the fields behind it.
#[derive(Default)]
struct Line {
    message: String,
    fields: String,
}

impl Line {
    fn text(&self) -> String {
        match self.fields.is_empty() {
            true => self.message.clone(),
            false => format!("{} ({})", self.message, self.fields),
        }
    }
}

impl Visit for Line {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        // Writing to a string does not fail.
        let _ = match field.name() {
            "message" => write!(self.message, "{value:?}"),
            name if self.fields.is_empty() => write!(self.fields, "{name} {value:?}"),
            name => write!(self.fields, ", {name} {value:?}"),
        };
    }
}
