//! Captures that a run writes: one a port, under their names only when all are complete.

use super::replay::Sink;
use srdma_capture::{InterfaceId, Writer};
use srdma_frame::PortId;
use srdma_wire::Instant;
use std::fs::Permissions;
use std::io::{self, BufWriter};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use tempfile::NamedTempFile;

/// An output that cannot be written.
#[allow(missing_docs, reason = "the names say it")]
#[derive(Debug, thiserror::Error)]
#[error("cannot write {}: {error}", file.display())]
pub struct OutputError {
    /// The capture, or the directory.
    pub file: PathBuf,
    pub error: io::Error,
}

/// Captures being written, by the positions of their ports. They have temporary names; dropping them removes them.
pub(super) struct Outputs(Vec<Output>);

struct Output {
    /// The name that it is to have.
    file: PathBuf,
    writer: Writer<BufWriter<NamedTempFile>>,
    interface: InterfaceId,
}

/// Octets that are written at once.
const BUFFER_OCTETS: usize = 256 << 10;

/// Permissions of a new file, before the umask.
const MODE: u32 = 0o666;

impl Outputs {
    /// `DIRECTORY/PORT.pcapng` for each port; makes the directory.
    pub(super) fn create(directory: &Path, ports: &[String]) -> Result<Self, OutputError> {
        std::fs::create_dir_all(directory).map_err(|error| OutputError { file: directory.to_owned(), error })?;
        let outputs = ports.iter().map(|port| {
            let file = directory.join(format!("{port}.pcapng"));
            Output::create(directory, port, &file).map_err(|error| OutputError { file, error })
        });
        outputs.collect::<Result<_, _>>().map(Outputs)
    }

    /// Gives the captures their names.
    pub(super) fn finish(self) -> Result<(), OutputError> {
        let mut complete = Vec::new();
        for Output { file, writer, .. } in self.0 {
            match writer.finish().and_then(|buffer| buffer.into_inner().map_err(io::IntoInnerError::into_error)) {
                Ok(written) => complete.push((file, written)),
                Err(error) => return Err(OutputError { file, error }),
            }
        }
        for (file, written) in complete {
            written.persist(&file).map_err(|error| OutputError { file, error: error.error })?;
        }
        Ok(())
    }
}

impl Sink for Outputs {
    type Error = OutputError;

    fn write<'p>(
        &mut self,
        port: PortId,
        time: Instant,
        pieces: impl Iterator<Item = &'p [u8]>,
    ) -> Result<(), OutputError> {
        /// More pieces than a frame has.
        const PIECES: usize = 8;
        let output = &mut self.0[port.index()];
        let mut gathered = [&[][..]; PIECES];
        let mut count = 0;
        for piece in pieces {
            gathered[count] = piece;
            count += 1;
        }
        let written = output.writer.write_packet(output.interface, time.as_ns(), &gathered[..count]);
        written.map_err(|error| OutputError { file: output.file.clone(), error })
    }
}

impl Output {
    fn create(directory: &Path, port: &str, file: &Path) -> io::Result<Self> {
        let temporary = tempfile::Builder::new()
            .prefix(&format!(".{port}.pcapng."))
            .permissions(Permissions::from_mode(MODE))
            .tempfile_in(directory)?;
        let mut writer = Writer::new(BufWriter::with_capacity(BUFFER_OCTETS, temporary))?;
        let interface = writer.add_interface(port)?;
        Ok(Output { file: file.to_owned(), writer, interface })
    }
}
