//! Words for whoever looks after the controller.

use std::fmt;
use std::io::{self, Write};

/// Says something on stderr. A controller goes on when nobody reads it any more.
pub(crate) fn say(text: fmt::Arguments<'_>) {
    let _ = writeln!(io::stderr(), "srdma controller: {text}");
}
