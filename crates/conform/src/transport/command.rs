//! A command that turns captures into captures.
//!
//! The command is started once for each step, with all input of the case up to that step; the output beyond that of the
//! previous step is the result of the step. So time stamps in its output have no meaning.

use super::{Device, DeviceError};
use crate::{Frame, Step};
use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;
use srdma_capture::{Reader, Writer};
use srdma_wire::units::{NS_PER_MS, NS_PER_S};
use std::fs::File;
use std::io::BufWriter;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

/// Time of the first step in the captures, in nanoseconds since 1970.
const BEGIN_NS: u64 = 1_700_000_000_000_000_000;
/// From step to step: longer than any timer that a case waits for.
const STEP_NS: u64 = NS_PER_S;
/// Time between frames of a step, in nanoseconds, beyond the gap of the step.
const FRAME_NS: u64 = 1_000;

/// A command, in whose text `{in}`, `{out}`, `{in_file}`, `{out_file}` and `{config}` are replaced.
#[derive(Debug)]
pub struct CommandDevice {
    template: String,
    ports: Vec<&'static str>,
    configuration: String,
    timeout: Duration,
}

impl CommandDevice {
    /// A command for a device with these ports. `configuration` is what `{config}` is a file of. A run that takes
    /// longer than `timeout` is ended.
    pub fn new(template: &str, ports: &[&'static str], configuration: &str, timeout: Duration) -> Self {
        let (template, configuration) = (template.to_owned(), configuration.to_owned());
        CommandDevice { template, ports: ports.to_vec(), configuration, timeout }
    }

    /// All output for this input, by port.
    fn pass(&self, steps: &[Step]) -> Result<Vec<Vec<Vec<u8>>>, DeviceError> {
        let failed = |error| DeviceError::system("write captures to a temporary directory", error);
        let directory = tempfile::tempdir().map_err(failed)?;
        let path = directory.path();
        self.write(path, steps).map_err(failed)?;
        let line = self.line(path);
        let log = File::create(path.join("stderr")).map_err(failed)?;
        let mut command = Command::new("sh");
        command.args(["-c", &line]).stdin(Stdio::null()).stdout(Stdio::null()).stderr(log).process_group(0);
        let status = self.wait(&mut command)?;
        if !status.success() {
            let log = std::fs::read_to_string(path.join("stderr")).unwrap_or_default();
            let last = log.lines().last().unwrap_or("it says nothing");
            return Err(DeviceError::NoAnswer(format!("the command ended with {status}: {last}")));
        }
        self.read(path)
    }

    /// One capture for each port, and one of all, whose interfaces have the names of the ports.
    fn write(&self, directory: &Path, steps: &[Step]) -> std::io::Result<()> {
        let inputs = directory.join("in");
        std::fs::create_dir(&inputs)?;
        std::fs::create_dir(directory.join("out"))?;
        std::fs::write(directory.join("node.toml"), &self.configuration)?;
        let mut all = Writer::new(BufWriter::new(File::create(directory.join("in.pcapng"))?))?;
        for port in &self.ports {
            let mut one = Writer::new(BufWriter::new(File::create(inputs.join(format!("{port}.pcapng")))?))?;
            let interface = one.add_interface(port)?;
            for (frame, time_ns) in timed(steps).filter(|(frame, _)| frame.port == *port) {
                one.write_packet(interface, time_ns, &[&frame.octets])?;
            }
            one.finish()?;
        }
        let interfaces = self.ports.iter().map(|port| all.add_interface(port)).collect::<Result<Vec<_>, _>>()?;
        for (frame, time_ns) in timed(steps) {
            if let Some(at) = self.ports.iter().position(|port| *port == frame.port) {
                all.write_packet(interfaces[at], time_ns, &[&frame.octets])?;
            }
        }
        all.finish().map(drop)
    }

    fn line(&self, directory: &Path) -> String {
        let places = [
            ("{in}", "in"),
            ("{out}", "out"),
            ("{in_file}", "in.pcapng"),
            ("{out_file}", "out.pcapng"),
            ("{config}", "node.toml"),
        ];
        places.iter().fold(self.template.clone(), |line, (place, file)| {
            line.replace(place, &directory.join(file).display().to_string())
        })
    }

    /// Runs a command to its end, or ends it with everything that it has started.
    fn wait(&self, command: &mut Command) -> Result<ExitStatus, DeviceError> {
        const PATIENCE: Duration = Duration::from_millis(2);
        let mut child = command.spawn().map_err(|error| DeviceError::system("start sh", error))?;
        let begin = Instant::now();
        loop {
            match child.try_wait() {
                Ok(Some(status)) => return Ok(status),
                Ok(None) if begin.elapsed() < self.timeout => thread::sleep(PATIENCE),
                Ok(None) => {
                    // Its group may have ended by now.
                    let _ = killpg(Pid::from_raw(child.id().cast_signed()), Signal::SIGKILL);
                    let _ = child.wait();
                    let timeout = self.timeout.as_secs_f64();
                    return Err(DeviceError::NoAnswer(format!("the command did not end within {timeout} s")));
                }
                Err(error) => return Err(DeviceError::system("wait for the command", error)),
            }
        }
    }

    /// Captures that the command has written: one for each port, or one of all.
    fn read(&self, directory: &Path) -> Result<Vec<Vec<Vec<u8>>>, DeviceError> {
        let mut frames = vec![Vec::new(); self.ports.len()];
        let mut found = false;
        for (port, frames) in self.ports.iter().zip(&mut frames) {
            for extension in ["pcapng", "pcap"] {
                let file = directory.join("out").join(format!("{port}.{extension}"));
                if file.exists() {
                    found = true;
                    read_capture(&file, |_, octets| frames.push(octets))?;
                }
            }
        }
        let all = directory.join("out.pcapng");
        if all.exists() {
            found = true;
            let mut unknown = None;
            read_capture(&all, |interface, octets| {
                match self.ports.iter().position(|port| interface == Some(*port)) {
                    Some(at) => frames[at].push(octets),
                    None => unknown = Some(interface.unwrap_or("an interface without a name").to_owned()),
                }
            })?;
            if let Some(interface) = unknown {
                let ports = self.ports.join(", ");
                return Err(DeviceError::Unusable(format!(
                    "{{out_file}} has frames of {interface}; the interfaces must be named as the ports: {ports}"
                )));
            }
        }
        if !found {
            let ports = self.ports.join(".pcapng, ");
            return Err(DeviceError::Unusable(format!(
                "the command wrote neither {{out}}/{ports}.pcapng nor {{out_file}}: `{}`",
                self.template
            )));
        }
        Ok(frames)
    }
}

/// The frames of the steps with their times.
fn timed(steps: &[Step]) -> impl Iterator<Item = (&Frame, u64)> {
    steps.iter().zip(0_u64..).flat_map(|(step, number)| {
        let time_ns = BEGIN_NS + number * STEP_NS;
        let gap_ns = FRAME_NS + step.gap_ms * NS_PER_MS;
        step.sent.iter().zip(0_u64..).map(move |(frame, place)| (frame, time_ns + place * gap_ns))
    })
}

fn read_capture(file: &Path, mut take: impl FnMut(Option<&str>, Vec<u8>)) -> Result<(), DeviceError> {
    let damaged = |error| DeviceError::NoAnswer(format!("{}: {error}", file.display()));
    for packet in Reader::open(file).map_err(damaged)? {
        let packet = packet.map_err(damaged)?;
        take(packet.interface.name.as_deref(), packet.octets);
    }
    Ok(())
}

impl Device for CommandDevice {
    fn name(&self) -> String {
        format!("command `{}`", self.template)
    }

    fn put(&mut self, steps: &[Step]) -> Result<Vec<Vec<Frame>>, DeviceError> {
        let mut before: Vec<Vec<Vec<u8>>> = vec![Vec::new(); self.ports.len()];
        let mut observed = Vec::new();
        for end in 1..=steps.len() {
            let now = self.pass(&steps[..end])?;
            let mut added = Vec::new();
            for ((port, before), now) in self.ports.iter().zip(&before).zip(&now) {
                let Some(new) = now.strip_prefix(before.as_slice()) else {
                    return Err(DeviceError::NoAnswer(format!(
                        "port {port}: with the packets of step {end} the command changes its earlier output"
                    )));
                };
                added.extend(new.iter().map(|octets| Frame { port, octets: octets.clone() }));
            }
            observed.push(added);
            before = now;
        }
        Ok(observed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn device(template: &str) -> CommandDevice {
        CommandDevice::new(template, &["a", "b"], "", Duration::from_secs(5))
    }

    fn step(port: &'static str, octet: u8) -> Step {
        Step { sent: vec![Frame { port, octets: vec![octet; 60] }], ..Step::default() }
    }

    /// A wire: each port's input is its output, in either form of output.
    #[test]
    fn the_additional_output_belongs_to_the_step() {
        for wire in ["cp {in}/*.pcapng {out}", "cp {in_file} {out_file}"] {
            let observed = device(wire).put(&[step("a", 1), step("b", 2)]).expect("an answer");
            let sent: Vec<Vec<Frame>> = [step("a", 1), step("b", 2)].into_iter().map(|step| step.sent).collect();
            assert_eq!(observed, sent, "{wire}");
        }
    }

    #[test]
    fn errors_of_a_command_are_reported() {
        let refused = |template: &str| device(template).put(&[step("a", 1)]).expect_err("refused").to_string();
        assert_eq!(refused("echo no such option >&2; exit 3"), "the command ended with exit status: 3: no such option");
        assert!(refused("true").contains("wrote neither {out}/a.pcapng, b.pcapng nor {out_file}"));
        assert!(refused("echo rubbish > {out}/a.pcap").contains("a.pcap"));
        let mut slow = CommandDevice::new("sleep 60", &["a"], "", Duration::from_millis(50));
        assert_eq!(slow.put(&[step("a", 1)]).expect_err("ended").to_string(), "the command did not end within 0.05 s");
    }
}
