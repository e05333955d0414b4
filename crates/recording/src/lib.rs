//! Recordings of runs, which the controller's page replays: JSON lines, described in docs/page.md.

mod head;
mod sample;

use head::Head;
use sample::Recorded;
use srdma_sim::{Observer, RunDescription, Snapshot};
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;

/// Writes a recording into a file, sample by sample.
pub struct Recorder {
    title: String,
    output: BufWriter<File>,
    recorded: Recorded,
}

impl Recorder {
    /// Creates the file, so that a path that cannot be written to is reported before a long run, not after it.
    ///
    /// # Errors
    ///
    /// The file cannot be created.
    pub fn create(path: &Path, title: String) -> io::Result<Self> {
        Ok(Recorder { title, output: BufWriter::new(File::create(path)?), recorded: Recorded::default() })
    }

    /// Flushes the file.
    ///
    /// # Errors
    ///
    /// The file cannot be written.
    pub fn finish(mut self) -> io::Result<()> {
        self.output.flush()
    }
}

impl Observer for Recorder {
    fn begin(&mut self, description: &RunDescription) -> io::Result<()> {
        self.recorded = Recorded::of(description);
        serde_json::to_writer(&mut self.output, &Head::new(&self.title, description))?;
        self.output.write_all(b"\n")
    }

    fn observe(&mut self, snapshot: &Snapshot) -> io::Result<()> {
        let Some(sample) = self.recorded.sample(snapshot) else { return Ok(()) };
        serde_json::to_writer(&mut self.output, &sample)?;
        self.output.write_all(b"\n")
    }
}
