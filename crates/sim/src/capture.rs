//! Captures of links as pcapng.

use srdma_capture::{InterfaceId, Writer};
use srdma_frame::{Frame, Pool};
use srdma_wire::Instant;
use std::cell::RefCell;
use std::io::{self, Write};
use std::rc::Rc;

/// A capture of one direction of a link.
pub(crate) struct LinkCapture {
    file: Rc<RefCell<File>>,
    interface: InterfaceId,
}

/// The pcapng file of both directions of a link.
struct File {
    writer: Option<Writer<Box<dyn Write>>>,
    result: io::Result<()>,
}

impl LinkCapture {
    /// Creates a file with one interface for each direction.
    pub(crate) fn both_directions(output: Box<dyn Write>, down: &str, up: &str) -> io::Result<[LinkCapture; 2]> {
        let mut writer = Writer::new(output)?;
        let interfaces = [writer.add_interface(down)?, writer.add_interface(up)?];
        let file = Rc::new(RefCell::new(File { writer: Some(writer), result: Ok(()) }));
        Ok(interfaces.map(|interface| LinkCapture { file: Rc::clone(&file), interface }))
    }

    pub(crate) fn write(&mut self, now: Instant, frame: &Frame, pool: &Pool) {
        let pieces: Vec<&[u8]> = frame.pieces(pool).collect();
        let File { writer, result } = &mut *self.file.borrow_mut();
        if let (Some(writer), Ok(())) = (writer, &result) {
            *result = writer.write_packet(self.interface, now.as_ns(), &pieces);
        }
    }

    /// Finishes the file; the second call, for the other direction, has no effect.
    pub(crate) fn finish(self) -> io::Result<()> {
        let file = &mut *self.file.borrow_mut();
        let result = std::mem::replace(&mut file.result, Ok(()));
        match file.writer.take() {
            Some(writer) => result.and(writer.finish().map(drop)),
            None => result,
        }
    }
}
