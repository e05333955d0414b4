//! Labs of a user without root: in a user namespace of the user, with a mount namespace whose `/run` is its own.
//!
//! ```text
//!   keeper (`srdma lab keep`): user + mount + network namespace; /run is a tmpfs
//!     ├─ /run/netns, /run/srdma: as for root, but of this user
//!     └─ the namespaces and processes of all labs of the user
//!   srdma lab up, run, shell, status, capture, down: join the keeper's namespaces, and go on as root there
//! ```
//!
//! The keeper does nothing; it is there so that the namespaces have a process by which they are found. It ends when no
//! lab is left.

use crate::error::{LabError, Result};
use crate::instance::Instance;
use crate::process;
use nix::mount::{MsFlags, mount};
use nix::sched::{CloneFlags, setns, unshare};
use nix::sys::signal::{Signal, kill};
use nix::unistd::{Gid, Pid, Uid, getegid, geteuid, pause, setsid};
use serde::{Deserialize, Serialize};
use std::env;
use std::fs::{self, DirBuilder, File};
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// Line by which the keeper says that its namespaces are complete.
const READY: &str = "ready";

/// The namespaces of a keeper, in the order in which they are joined.
const NAMESPACES: [(&str, CloneFlags); 3] =
    [("user", CloneFlags::CLONE_NEWUSER), ("mnt", CloneFlags::CLONE_NEWNS), ("net", CloneFlags::CLONE_NEWNET)];

/// What to do without a keeper.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Missing {
    /// Start one.
    Start,
    /// Go on as the user: there are no labs.
    GoOn,
}

/// The keeper that this process has joined.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Keeper {
    pid: i32,
}

/// As the keeper's file has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Entry {
    pid: i32,
    /// The number alone may belong to another process by now.
    start_ticks: u64,
}

/// Makes this process, which must have one thread only, root of the user's namespaces for labs; `None` for root itself,
/// and where there are none and none are wanted. `program` is `srdma`.
///
/// # Errors
///
/// If the system does not let the user make namespaces; the error names the setting.
pub fn enter(program: &Path, missing: Missing) -> Result<Option<Keeper>> {
    let user = geteuid();
    if user.is_root() {
        return Ok(None);
    }
    find_system_programs(program)?;
    let directory = directory(user)?;
    let path = directory.join("keeper.json");
    // Of two that begin at once, one starts a keeper.
    let lock_path = directory.join("lock");
    let lock = File::create(&lock_path).map_err(LabError::file("create", &lock_path))?;
    lock.lock().map_err(LabError::file("lock", &lock_path))?;
    let entry = match (running(&path), missing) {
        (Some(entry), _) => entry,
        (None, Missing::GoOn) => return Ok(None),
        (None, Missing::Start) => start(program, &path)?,
    };
    let here = env::current_dir().map_err(LabError::system("find the current directory"))?;
    for (name, kind) in NAMESPACES {
        let path = PathBuf::from(format!("/proc/{}/ns/{name}", entry.pid));
        let file = File::open(&path).map_err(LabError::file("open", &path))?;
        setns(file, kind).map_err(LabError::system(format!("enter the {name} namespace of process {}", entry.pid)))?;
    }
    // A process that joins a mount namespace is at its root.
    env::set_current_dir(&here).map_err(LabError::file("enter", &here))?;
    Ok(Some(Keeper { pid: entry.pid }))
}

impl Keeper {
    /// Ends it if no lab is left. Its namespaces go with it.
    ///
    /// # Errors
    ///
    /// If the labs cannot be listed.
    pub fn end_if_idle(self) -> Result<()> {
        if Instance::all()?.is_empty() {
            // It may have been killed.
            let _ = kill(Pid::from_raw(self.pid), Signal::SIGTERM);
        }
        Ok(())
    }
}

/// The body of the keeper: makes the namespaces, says [`READY`], and waits to be ended.
///
/// # Errors
///
/// As [`enter`].
pub fn keep() -> Result<()> {
    let (user, group) = (geteuid(), getegid());
    // A hang-up of the terminal is not for it.
    setsid().map_err(LabError::system("begin a session"))?;
    let flags = NAMESPACES.iter().fold(CloneFlags::empty(), |flags, (_, kind)| flags | *kind);
    unshare(flags).map_err(refused("make a user, mount and network namespace"))?;
    map_ids(user, group).map_err(refused("become root of a user namespace"))?;
    let none: Option<&str> = None;
    mount(none, "/", none, MsFlags::MS_REC | MsFlags::MS_SLAVE, none)
        .map_err(refused("separate the mounts of a user namespace"))?;
    let options = MsFlags::MS_NOSUID | MsFlags::MS_NODEV;
    mount(Some("tmpfs"), "/run", Some("tmpfs"), options, Some("mode=755"))
        .map_err(refused("mount a file system at /run in a user namespace"))?;
    let output = |error| LabError::File { action: "write", path: "/dev/stdout".into(), error };
    writeln!(io::stdout(), "{READY}").map_err(output)?;
    io::stdout().flush().map_err(output)?;
    loop {
        pause();
    }
}

/// Users of Debian do not have the directories of `tc` and `ethtool` in their search path: this process starts itself
/// again with them.
fn find_system_programs(program: &Path) -> Result<()> {
    let path = env::var_os("PATH").unwrap_or_default();
    let is_missing =
        |directory: &&Path| directory.is_dir() && !env::split_paths(&path).any(|known| known == **directory);
    let missing: Vec<&Path> = ["/usr/sbin", "/sbin"].map(Path::new).into_iter().filter(is_missing).collect();
    if missing.is_empty() {
        return Ok(());
    }
    let all = env::split_paths(&path).chain(missing.into_iter().map(Path::to_owned));
    let all = env::join_paths(all).map_err(io::Error::other).map_err(LabError::system("extend the search path"))?;
    let error = Command::new(program).args(env::args_os().skip(1)).env("PATH", all).exec();
    Err(LabError::Start { line: program.display().to_string(), error })
}

/// User and group become those of root, inside; no other is there.
fn map_ids(user: Uid, group: Gid) -> io::Result<()> {
    // Without it the kernel does not let an unprivileged process map its group (user_namespaces(7)).
    fs::write("/proc/self/setgroups", "deny")?;
    fs::write("/proc/self/uid_map", format!("0 {user} 1"))?;
    fs::write("/proc/self/gid_map", format!("0 {group} 1"))
}

/// Starts a keeper, waits until it is ready, and keeps note of it.
fn start(program: &Path, path: &Path) -> Result<Entry> {
    let line = format!("{} lab keep", program.display());
    let spawned = Command::new(program)
        .args(["lab", "keep"])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .current_dir("/")
        .spawn();
    let mut keeper = spawned.map_err(|error| LabError::Start { line: line.clone(), error })?;
    let mut said = String::new();
    if let Some(output) = keeper.stdout.take() {
        BufReader::new(output).read_line(&mut said).map_err(LabError::system("read from the keeper of namespaces"))?;
    }
    if said.trim_end() != READY {
        return Err(LabError::Rootless(reason(keeper)));
    }
    let pid = keeper.id() as i32;
    let start_ticks = process::start_ticks(pid).ok_or(LabError::Rootless("the keeper has ended".to_owned()))?;
    let entry = Entry { pid, start_ticks };
    let text = serde_json::to_string(&entry).map_err(io::Error::other).map_err(LabError::file("write", path))?;
    fs::write(path, text).map_err(LabError::file("write", path))?;
    Ok(entry)
}

/// The last words of a keeper that is not ready.
fn reason(mut keeper: Child) -> String {
    let mut text = String::new();
    if let Some(mut errors) = keeper.stderr.take() {
        // What can be read is better than nothing.
        let _ = errors.read_to_string(&mut text);
    }
    // It has ended: its output has.
    let _ = keeper.wait();
    text.trim().trim_start_matches("srdma: ").to_owned()
}

/// The keeper of a file, if it still runs.
fn running(path: &Path) -> Option<Entry> {
    let entry: Entry = serde_json::from_str(&fs::read_to_string(path).ok()?).ok()?;
    (process::start_ticks(entry.pid) == Some(entry.start_ticks)).then_some(entry)
}

/// The directory of the user's keeper, which no other user may write to.
fn directory(user: Uid) -> Result<PathBuf> {
    let runtime = env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from).filter(|path| path.is_dir());
    let path = match runtime {
        Some(runtime) => runtime.join("srdma-lab"),
        None => env::temp_dir().join(format!("srdma-lab-{user}")),
    };
    match DirBuilder::new().mode(0o700).create(&path) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
            return Err(LabError::file("create", &path)(error));
        }
        Ok(()) | Err(_) => {}
    }
    let data = fs::symlink_metadata(&path).map_err(LabError::file("read", &path))?;
    if !data.is_dir() || data.uid() != user.as_raw() || data.mode() & 0o022 != 0 {
        let problem = io::Error::other("expected a directory of this user that no other may write to");
        return Err(LabError::file("use", &path)(problem));
    }
    Ok(path)
}

/// For `map_err`: what the system does not permit, and the setting that forbids it.
fn refused<E: Into<io::Error>>(action: &'static str) -> impl FnOnce(E) -> LabError {
    let read = |path: &str| fs::read_to_string(path).ok();
    move |error| {
        let causes = causes(read);
        let causes = if causes.is_empty() { String::new() } else { format!("; {}", causes.join("; ")) };
        LabError::Rootless(format!("cannot {action}: {}{causes}", error.into()))
    }
}

/// Settings that forbid unprivileged user namespaces, or capabilities in them, where they have such values.
fn causes(read: impl Fn(&str) -> Option<String>) -> Vec<&'static str> {
    let is = |path: &str, value: &str| read(path).is_some_and(|text| text.trim() == value);
    let settings = [
        (
            !Path::new("/proc/self/ns/user").exists(),
            "this kernel has no user namespaces: use one with CONFIG_USER_NS=y",
        ),
        (
            is("/proc/sys/kernel/unprivileged_userns_clone", "0"),
            "kernel.unprivileged_userns_clone is 0: set it to 1 (sysctl -w, as root)",
        ),
        (
            is("/proc/sys/user/max_user_namespaces", "0"),
            "user.max_user_namespaces is 0: set it to 1000 (sysctl -w, as root)",
        ),
        (
            is("/proc/sys/kernel/apparmor_restrict_unprivileged_userns", "1"),
            "kernel.apparmor_restrict_unprivileged_userns is 1, so that AppArmor takes the capabilities away: set it \
             to 0 (sysctl -w, as root), or give srdma a profile with `userns,`",
        ),
    ];
    settings.into_iter().filter(|(holds, _)| *holds).map(|(_, text)| text).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_that_forbid_namespaces_are_named() {
        assert!(causes(|_| None).is_empty());
        assert!(causes(|_| Some("1000\n".to_owned())).is_empty());
        let debian = |path: &str| (path == "/proc/sys/kernel/unprivileged_userns_clone").then(|| "0\n".to_owned());
        assert_eq!(causes(debian), ["kernel.unprivileged_userns_clone is 0: set it to 1 (sysctl -w, as root)"]);
        let ubuntu = |path: &str| path.contains("apparmor").then(|| "1\n".to_owned());
        assert!(causes(ubuntu)[0].contains("AppArmor"));
        let none_left = |path: &str| path.contains("max_user").then(|| "0\n".to_owned());
        let error = refused("make a namespace")(io::Error::from_raw_os_error(28)).to_string();
        assert!(error.contains("cannot make a namespace: No space left on device"), "{error}");
        assert!(causes(none_left)[0].starts_with("user.max_user_namespaces is 0"));
    }

    #[test]
    fn a_keeper_that_has_ended_is_not_found() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("keeper.json");
        assert_eq!(running(&path), None);
        let own = Entry { pid: std::process::id() as i32, start_ticks: 0 };
        fs::write(&path, serde_json::to_string(&own).unwrap()).unwrap();
        assert_eq!(running(&path), None, "another process of this number");
        let start_ticks = process::start_ticks(own.pid).unwrap();
        let own = Entry { start_ticks, ..own };
        fs::write(&path, serde_json::to_string(&own).unwrap()).unwrap();
        assert_eq!(running(&path), Some(own));
        fs::write(&path, "{").unwrap();
        assert_eq!(running(&path), None);
    }
}
