//! Network namespaces, as `ip netns` keeps them.

use crate::command;
use crate::error::{LabError, Result};
use crate::process;
use nix::sched::{CloneFlags, setns};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

/// Time for processes to end by themselves.
const GRACE: Duration = Duration::from_secs(5);

pub(crate) fn add(name: &str) -> Result<()> {
    command::run(&format!("ip netns add {name}"))?;
    Ok(())
}

pub(crate) fn exists(name: &str) -> bool {
    path(name).exists()
}

/// Runs `action` in a namespace, on a thread of its own: a thread that is in a namespace stays there.
pub(crate) fn enter<T: Send + 'static>(name: &str, action: impl FnOnce() -> T + Send + 'static) -> Result<T> {
    let path = path(name);
    let file = File::open(&path).map_err(LabError::file("open", &path))?;
    let name = name.to_owned();
    let thread = thread::spawn(move || match setns(file, CloneFlags::CLONE_NEWNET) {
        Ok(()) => Ok(action()),
        Err(error) => Err(LabError::system(format!("enter namespace {name}"))(error)),
    });
    match thread.join() {
        Ok(result) => result,
        Err(panic) => std::panic::resume_unwind(panic),
    }
}

/// Ends every process in some namespaces: by SIGTERM, and by SIGKILL what does not go.
pub(crate) fn end_processes(names: &[String]) -> Result<()> {
    let begin = Instant::now();
    for pid in processes(names)? {
        // A process that has ended meanwhile needs no signal.
        let _ = kill(pid, Signal::SIGTERM);
    }
    loop {
        let left = processes(names)?;
        if left.is_empty() {
            return Ok(());
        }
        if begin.elapsed() > GRACE {
            for pid in left {
                let _ = kill(pid, Signal::SIGKILL);
            }
        }
        thread::sleep(Duration::from_millis(10));
    }
}

/// Takes a namespace away, with the interfaces in it.
pub(crate) fn delete(name: &str) -> Result<()> {
    command::run(&format!("ip netns del {name}"))?;
    Ok(())
}

fn processes(names: &[String]) -> Result<Vec<Pid>> {
    let mut pids = Vec::new();
    for name in names {
        let list = command::run(&format!("ip netns pids {name}"))?;
        pids.extend(list.split_whitespace().filter_map(|pid| pid.parse().ok()).map(Pid::from_raw));
    }
    let own = Pid::this();
    Ok(pids.into_iter().filter(|pid| *pid != own && process::is_alive(pid.as_raw())).collect())
}

fn path(name: &str) -> PathBuf {
    Path::new("/run/netns").join(name)
}
