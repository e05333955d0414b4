//! tshark over several captures at once: most of the time of a run is its start.

use std::path::Path;
use std::process::{Command, Output};

/// What tshark finds of `fields` in the frames of `files`, one after the other: a line for each frame, with tabs between
/// the fields.
pub(crate) fn lines(files: &[impl AsRef<Path>], options: &[&str], fields: &[&str]) -> Vec<String> {
    let joined = tempfile::NamedTempFile::new().expect("a file");
    let mut mergecap = Command::new("mergecap");
    mergecap.args(["-a", "-F", "pcapng", "-w"]).arg(joined.path()).args(files.iter().map(AsRef::as_ref));
    run(&mut mergecap);
    let mut tshark = Command::new("tshark");
    tshark.args(["-n", "-r"]).arg(joined.path()).args(["-T", "fields"]).args(options);
    let output = run(tshark.args(fields.iter().flat_map(|field| ["-e", field])));
    String::from_utf8(output.stdout).expect("UTF-8").lines().map(str::to_owned).collect()
}

fn run(command: &mut Command) -> Output {
    let output = command.output().expect("tshark is installed, as `cargo xtask ci` sees to");
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && !stderr.contains("Lua"), "{command:?}: {stderr}");
    output
}
