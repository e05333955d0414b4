//! A process of [`host`](super::host) as the measurement drives it, and the processor time of processes.

use super::host::{Order, Program, Report};
use anyhow::{Context, bail};
use nix::unistd::{SysconfVar, sysconf};
use srdma_io::namespace::Namespace;
use srdma_lab::{ControllerAccess, Interrupt};
use std::fs;
use std::io::{self, BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::thread;
use std::time::Duration;

/// Interval of checks for an interrupt.
const CHECK_INTERVAL: Duration = Duration::from_millis(100);

/// A source or a receiver, in the namespace of its host. Dropping it kills it.
#[derive(Debug)]
pub(super) struct HostProcess {
    name: String,
    child: Child,
    orders: Option<ChildStdin>,
    /// Lines of its standard output, which a thread reads.
    reports: Receiver<io::Result<String>>,
}

impl HostProcess {
    /// Starts `program`, which is `srdma`, with the access to the controller in its environment.
    pub(super) fn start(
        srdma: &Path,
        namespace: &str,
        name: &str,
        access: &ControllerAccess,
        program: &Program,
    ) -> anyhow::Result<Self> {
        let namespace = Namespace::existing(namespace).with_context(|| format!("there is no namespace {namespace}"))?;
        let mut command = namespace.command(srdma.to_str().context("the path of srdma is not UTF-8")?);
        command.args(["bench", "application-host", &serde_json::to_string(program)?]);
        command.envs(access.environment()).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().with_context(|| format!("cannot start {name}"))?;
        let orders = child.stdin.take();
        let output = BufReader::new(child.stdout.take().context("no standard output")?);
        let (lines, reports) = mpsc::channel();
        // It ends with the output, or with the receiver of the lines.
        thread::spawn(move || output.lines().try_for_each(|line| lines.send(line)));
        Ok(HostProcess { name: name.to_owned(), child, orders, reports })
    }

    /// Gives an order.
    pub(super) fn order(&mut self, order: Order) -> anyhow::Result<()> {
        let line = serde_json::to_string(&order)?;
        let orders = self.orders.as_mut().context("it gets no orders any more")?;
        writeln!(orders, "{line}").with_context(|| format!("{} takes no orders", self.name))
    }

    /// Waits for the next report.
    pub(super) fn report(&mut self, interrupt: &Interrupt) -> anyhow::Result<Report> {
        loop {
            match self.reports.recv_timeout(CHECK_INTERVAL) {
                Ok(line) => {
                    let line = line?;
                    return serde_json::from_str(&line).with_context(|| format!("{} reports {line:?}", self.name));
                }
                Err(RecvTimeoutError::Timeout) => interrupt.sleep(Duration::from_millis(1))?,
                Err(RecvTimeoutError::Disconnected) => bail!("{} has ended: {}", self.name, self.child.wait()?),
            }
        }
    }

    /// Gives an order, and waits until it has been carried out.
    pub(super) fn carry_out(&mut self, order: Order, interrupt: &Interrupt) -> anyhow::Result<()> {
        self.order(order)?;
        match self.report(interrupt)? {
            Report::Done => Ok(()),
            other => bail!("{} reports {other:?} for {order:?}", self.name),
        }
    }

    /// Ends its input, and waits for its end.
    pub(super) fn end(mut self) -> anyhow::Result<()> {
        drop(self.orders.take());
        let status = self.child.wait()?;
        if !status.success() {
            bail!("{} has ended: {status}", self.name);
        }
        Ok(())
    }

    /// The number of the process.
    pub(super) fn pid(&self) -> u32 {
        self.child.id()
    }
}

impl Drop for HostProcess {
    fn drop(&mut self) {
        // It may have ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Processor time of processes so far, in user and in kernel mode, in seconds; those that have ended have none.
pub(super) fn processor_seconds(pids: impl IntoIterator<Item = u32>) -> f64 {
    let ticks_per_s = sysconf(SysconfVar::CLK_TCK).ok().flatten().unwrap_or(100) as f64;
    let ticks = pids.into_iter().filter_map(|pid| ticks(&fs::read_to_string(format!("/proc/{pid}/stat")).ok()?));
    ticks.sum::<u64>() as f64 / ticks_per_s
}

/// `utime` and `stime` of /proc/PID/stat. The second field, the name, may hold anything.
fn ticks(stat: &str) -> Option<u64> {
    let (_, rest) = stat.rsplit_once(") ")?;
    let mut fields = rest.split(' ').skip(11);
    let mut next = || fields.next()?.parse::<u64>().ok();
    Some(next()? + next()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// proc_pid_stat(5): utime and stime are fields 14 and 15.
    #[test]
    fn ticks_are_user_and_kernel_time() {
        let stat = "17 (a) b (c)) S 4 5 6 7 8 9 10 11 12 13 140 15 16 17 18";
        assert_eq!(ticks(stat), Some(155));
        assert_eq!(ticks("17 (x) S 4"), None);
        assert!(processor_seconds([std::process::id()]) >= 0.0);
    }
}
