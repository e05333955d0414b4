//! Hosts of a lab that run the program `versions`: namespaces with sockets, or guests with soft-RoCE.

use crate::own_lab::{ControllerAccess, Lab};
use srdma_testkit::built;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// Emulated machines are slow.
const PATIENCE: Duration = Duration::from_secs(240);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Hosts {
    Namespaces,
    Guests,
}

/// Of the packets of groups at the hosts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum IpVersion {
    Ipv4,
    Ipv6,
}

/// A lab with a controller, and the program at its hosts.
pub(super) struct Site {
    pub(super) lab: Lab,
    access: ControllerAccess,
    directory: tempfile::TempDir,
    hosts: Hosts,
    version: IpVersion,
}

impl Site {
    /// Every link loses one frame in a hundred in each direction.
    pub(super) fn start(hosts: Hosts, version: IpVersion) -> Self {
        let directory = tempfile::tempdir().expect("a directory");
        let program = compile(directory.path());
        let lab = match (hosts, version) {
            (Hosts::Namespaces, IpVersion::Ipv6) => Lab::new("figure1-controller", &[]),
            (Hosts::Namespaces, IpVersion::Ipv4) => Lab::of("figure1-ipv4", &in_namespaces()),
            (Hosts::Guests, IpVersion::Ipv6) => Lab::new("figure1-controller-rxe", &[]),
            (Hosts::Guests, IpVersion::Ipv4) => Lab::new("figure1-ipv4-rxe", &[]),
        };
        let mut arguments = vec!["--loss".to_owned(), "0.01".to_owned()];
        if hosts == Hosts::Guests {
            let files = directory.path().join("files");
            put_into(&files, &program);
            put_into(&files, Path::new(env!("CARGO_BIN_EXE_srdma")));
            arguments.extend(["--guest-files".to_owned(), files.display().to_string()]);
        }
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        let begin = Instant::now();
        lab.up_with(&arguments);
        println!("{hosts:?}, {version:?}: up after {:?}", begin.elapsed());
        let access = lab.controller();
        let site = Site { lab, access, directory, hosts, version };
        if hosts == Hosts::Guests {
            let ControllerAccess([_, token, certificate]) = &site.access;
            let copies = [(token, "/tmp/token"), (certificate, "/tmp/certificate.pem")];
            for host in ["S1", "R1", "R2", "R3", "R4", "R5"] {
                for (from, to) in copies {
                    let text = fs::read_to_string(from).expect("a file of the lab");
                    site.lab.guest_shell(host, &format!("umask 077; cat >{to} <<'END'\n{}\nEND", text.trim()));
                }
            }
        }
        site
    }

    /// A Proxy Address, by its number: that of a group is free again when all nodes have left it.
    pub(super) fn proxy(&self, number: u8) -> String {
        match self.version {
            IpVersion::Ipv4 => format!("10.255.0.{number}"),
            IpVersion::Ipv6 => format!("2001:db8:cc::{number}"),
        }
    }

    /// The address of S1.
    pub(super) fn source(&self) -> &'static str {
        match self.version {
            IpVersion::Ipv4 => "10.1.0.1",
            IpVersion::Ipv6 => "2001:db8:aa::1",
        }
    }

    /// Makes a file that programs at a host wait for.
    pub(super) fn touch(&self, host: &str, path: &str) {
        match self.hosts {
            Hosts::Namespaces => fs::write(path, "").expect("a file"),
            Hosts::Guests => drop(self.lab.guest_shell(host, &format!("touch {path}"))),
        }
    }

    /// Writes a line to a file, or to a pipe that a program reads.
    pub(super) fn write(&self, host: &str, path: &str, line: &str) {
        match self.hosts {
            Hosts::Namespaces => fs::write(path, line).expect("a file"),
            Hosts::Guests => drop(self.lab.guest_shell(host, &format!("cat >{path} <<'END'\n{line}\nEND"))),
        }
    }

    /// A path of a file at a host, which does not exist yet.
    pub(super) fn path(&self, name: &str) -> String {
        match self.hosts {
            Hosts::Namespaces => self.directory.path().join(name).display().to_string(),
            Hosts::Guests => format!("/tmp/{name}"),
        }
    }

    /// The provider of these hosts.
    pub(super) fn provider(&self) -> &'static str {
        match self.hosts {
            Hosts::Namespaces => "udp",
            Hosts::Guests => "verbs:rxe0",
        }
    }

    /// Starts the program at a host.
    pub(super) fn starts(&self, host: &str, name: &str, arguments: &[&str]) -> Running<'_> {
        self.starts_with(self.provider(), host, name, arguments)
    }

    /// The same with another provider.
    pub(super) fn starts_with(&self, provider: &str, host: &str, name: &str, arguments: &[&str]) -> Running<'_> {
        let program = match self.hosts {
            Hosts::Namespaces => self.directory.path().join("versions").display().to_string(),
            Hosts::Guests => "versions".to_owned(),
        };
        // A signal to the shell is one to the program, which takes its place.
        self.starts_line(provider, host, name, &[&["exec", program.as_str()], arguments].concat().join(" "))
    }

    /// Starts `srdma` at a host, which prints "ended" when it has.
    pub(super) fn starts_srdma(&self, host: &str, name: &str, arguments: &str) -> Running<'_> {
        let program = match self.hosts {
            Hosts::Namespaces => env!("CARGO_BIN_EXE_srdma"),
            Hosts::Guests => "srdma",
        };
        // A connection to the controller takes longer than its timeout, five seconds, when the machine is loaded and
        // packets are lost.
        let path = self.path(name);
        let is_late = format!("tail -n 1 {path} | grep -q \"timeout: connect\"");
        let line = format!("for attempt in 1 2 3 4 5; do {program} {arguments} && break; {is_late} || break; done");
        self.starts_line("udp", host, name, &format!("{line}; echo ended"))
    }

    /// Options of `srdma` for these hosts.
    pub(super) fn device(&self) -> &'static str {
        match self.hosts {
            Hosts::Namespaces => "",
            Hosts::Guests => "--device rxe0",
        }
    }

    fn starts_line(&self, provider: &str, host: &str, name: &str, line: &str) -> Running<'_> {
        let path = self.path(name);
        let process = match self.hosts {
            Hosts::Namespaces => {
                let namespace = self.lab.existing(host);
                let mut command = namespace.command("sh");
                self.access.set(&mut command);
                let file = fs::File::create(&path).expect("a file");
                command.env("SRDMA_PROVIDER", provider).args(["-c", &format!("exec 2>&1; {line}")]);
                command.stdout(Stdio::from(file)).stderr(Stdio::inherit());
                Process::Child(command.spawn().expect("it starts"))
            }
            Hosts::Guests => {
                let environment = format!(
                    "SRDMA_CONTROLLER={} SRDMA_TOKEN_FILE=/tmp/token SRDMA_CA=/tmp/certificate.pem SRDMA_PROVIDER={provider}",
                    self.access.url()
                );
                let line = format!("{environment} sh -c '{line}' >{path} 2>&1 </dev/null & echo $!");
                Process::InGuest(self.lab.guest_shell(host, &line).trim().to_owned())
            }
        };
        Running { site: self, host: host.to_owned(), path, process }
    }
}

enum Process {
    Child(Child),
    InGuest(String),
}

/// The program at a host, with its output in a file.
pub(super) struct Running<'a> {
    site: &'a Site,
    host: String,
    path: String,
    process: Process,
}

impl Drop for Running<'_> {
    fn drop(&mut self) {
        if let Process::Child(child) = &mut self.process {
            // It may have ended.
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

impl Running<'_> {
    /// Kills it by SIGKILL.
    pub(super) fn is_killed(&mut self) {
        match &mut self.process {
            Process::Child(child) => {
                child.kill().expect("it runs");
                child.wait().expect("a child");
            }
            Process::InGuest(pid) => drop(self.site.lab.guest_shell(&self.host, &format!("kill -9 {pid}"))),
        }
    }

    /// What it has printed.
    pub(super) fn lines(&self) -> Vec<String> {
        let text = match self.site.hosts {
            Hosts::Namespaces => fs::read_to_string(&self.path).expect("a file"),
            Hosts::Guests => self.site.lab.guest_shell(&self.host, &format!("cat {}", self.path)),
        };
        text.lines().map(|line| line.trim().to_owned()).filter(|line| !line.is_empty()).collect()
    }

    /// Waits until something is so, as long as the program prints more.
    #[track_caller]
    pub(super) fn waits(&self, what: &str, is_so: impl Fn(&[String]) -> bool) -> Vec<String> {
        let (mut last_progress, mut printed) = (Instant::now(), 0);
        loop {
            let lines = self.lines();
            if is_so(&lines) {
                return lines;
            }
            if lines.len() > printed {
                (last_progress, printed) = (Instant::now(), lines.len());
            }
            let is_over = lines.last().is_some_and(|line| line == "ended" || line.starts_with("error "));
            let is_late = last_progress.elapsed() >= PATIENCE;
            assert!(!is_over && !is_late, "{}: in vain: {what}: {lines:?}", self.host);
            // A look into a guest costs time of its processor.
            sleep(match self.site.hosts {
                Hosts::Namespaces => Duration::from_millis(100),
                Hosts::Guests => Duration::from_secs(1),
            });
        }
    }

    /// Waits for its end; all that it has printed.
    #[track_caller]
    pub(super) fn ends(&self) -> Vec<String> {
        self.waits("its end", |lines| lines.last().is_some_and(|line| line == "ended"))
    }
}

/// Numbers of versions in lines such as `version 3 right`.
pub(super) fn versions(lines: &[String]) -> Vec<u64> {
    let number = |line: &String| {
        let (number, is_right) = line.strip_prefix("version ")?.split_once(' ').expect("a number and a word");
        assert_eq!(is_right, "right", "{lines:?}");
        Some(number.parse().expect("a number"))
    };
    lines.iter().filter_map(number).collect()
}

/// The shipped lab of IPv4 hosts, with namespaces as hosts.
fn in_namespaces() -> String {
    let text = include_str!("../../../../../labs/figure1-ipv4-rxe.toml");
    assert!(text.contains("kind = \"guest\""));
    text.replace("kind = \"guest\"", "kind = \"endpoint\"")
}

fn run(command: &mut Command) -> String {
    let output = command.output().expect("it starts");
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("text")
}

fn compile(directory: &Path) -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let program = directory.join("versions");
    let mut cc = Command::new("cc");
    cc.args(["-std=c99", "-D_POSIX_C_SOURCE=200809L", "-Wall", "-Wextra", "-Werror", "-O2", "-s", "-o"]).arg(&program);
    cc.arg(root.join("crates/cli/tests/cli/lab_providers/versions.c"));
    cc.arg(format!("-I{}", root.join("crates/capi/include").display()));
    cc.arg("-Wl,--gc-sections").arg(built::static_library("libsrdma_capi"));
    run(cc.args(["-lgcc_s", "-lpthread", "-ldl", "-lm"]));
    program
}

/// Puts a program, and the libraries that it is linked to, into a directory for guests.
pub(super) fn put_into(files: &Path, program: &Path) {
    let libraries = files.join("usr/lib/x86_64-linux-gnu");
    fs::create_dir_all(files.join("bin")).expect("a directory");
    fs::create_dir_all(&libraries).expect("a directory");
    let name = program.file_name().expect("a name");
    run(Command::new("strip").arg("-o").arg(files.join("bin").join(name)).arg(program));
    for line in run(Command::new("ldd").arg(program)).lines() {
        let Some((name, rest)) = line.trim().split_once(" => ") else { continue };
        let path = rest.split(' ').next().expect("a path");
        fs::copy(path, libraries.join(name)).expect("a library");
    }
}
