//! Recordings of runs, which the controller's page replays: JSON lines, described in docs/page.md.

mod head;
mod sample;

use anyhow::{Context, Result};
use head::Head;
use sample::Recorded;
use srdma_sim::{Moment, Scene, Spectator};
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

/// Writes a recording into a file, sample by sample.
pub(crate) struct Recorder {
    path: PathBuf,
    title: String,
    output: BufWriter<File>,
    recorded: Recorded,
}

impl Recorder {
    /// A recording of nothing yet. The file is there before anything is run: nobody wants to hear at the end that there
    /// is no place for it.
    pub(crate) fn create(path: &Path, title: String) -> Result<Self> {
        let file = File::create(path).with_context(|| format!("cannot create {}", path.display()))?;
        Ok(Recorder { path: path.to_owned(), title, output: BufWriter::new(file), recorded: Recorded::default() })
    }

    /// Writes what is still kept back.
    pub(crate) fn finish(mut self) -> Result<()> {
        self.output.flush().with_context(|| format!("cannot write {}", self.path.display()))
    }
}

impl Spectator for Recorder {
    fn begin(&mut self, scene: &Scene) -> io::Result<()> {
        self.recorded = Recorded::of(scene);
        serde_json::to_writer(&mut self.output, &Head::new(&self.title, scene))?;
        self.output.write_all(b"\n")
    }

    fn see(&mut self, moment: &Moment) -> io::Result<()> {
        let Some(sample) = self.recorded.sample(moment) else { return Ok(()) };
        serde_json::to_writer(&mut self.output, &sample)?;
        self.output.write_all(b"\n")
    }
}
