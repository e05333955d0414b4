//! Captures of links.

use srdma_capture::{InterfaceId, Writer};
use srdma_frame::{Frame, Pool};
use srdma_wire::Instant;
use std::cell::RefCell;
use std::io::{self, Write};
use std::rc::Rc;

/// A capture of one direction of a link.
pub(crate) struct Tap {
    file: Rc<RefCell<File>>,
    interface: InterfaceId,
}

/// A pcapng file that the two directions share, until its output fails.
struct File {
    writer: Option<Writer<Box<dyn Write>>>,
    result: io::Result<()>,
}

impl Tap {
    /// Begins a file with an interface for each direction.
    pub(crate) fn both_directions(output: Box<dyn Write>, down: &str, up: &str) -> io::Result<[Tap; 2]> {
        let mut writer = Writer::new(output)?;
        let interfaces = [writer.add_interface(down)?, writer.add_interface(up)?];
        let file = Rc::new(RefCell::new(File { writer: Some(writer), result: Ok(()) }));
        Ok(interfaces.map(|interface| Tap { file: Rc::clone(&file), interface }))
    }

    pub(crate) fn write(&mut self, now: Instant, frame: &Frame, pool: &Pool) {
        let pieces: Vec<&[u8]> = frame.pieces(pool).collect();
        let File { writer, result } = &mut *self.file.borrow_mut();
        if let (Some(writer), Ok(())) = (writer, &result) {
            *result = writer.write_packet(self.interface, now.as_ns(), &pieces);
        }
    }

    /// Ends the file. The second of the two directions to ask has nothing left to do.
    pub(crate) fn finish(self) -> io::Result<()> {
        let file = &mut *self.file.borrow_mut();
        let result = std::mem::replace(&mut file.result, Ok(()));
        match file.writer.take() {
            Some(writer) => result.and(writer.finish().map(drop)),
            None => result,
        }
    }
}
