//! The files that `srdma lab export` writes for containerlab, executed as containerlab does: namespaces for containers,
//! whose processes run before there are links; then links, then command lines; and `ip netns exec` for `docker exec`.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use yaml_rust2::{Yaml, YamlLoader};

/// The view of a container: its files as /etc/srdma, the users that programs look for, and a /run of its own.
const VIEW: &str = r#"set -e
users=$(cat /etc/passwd)
groups=$(cat /etc/group)
mount -t tmpfs tmpfs /etc
echo "$users" > /etc/passwd
echo "$groups" > /etc/group
mkdir /etc/srdma
[ ! -d "$FILES" ] || mount --bind "$FILES" /etc/srdma
mount --bind "$RUN" /run
exec "$@""#;

/// An exported lab, deployed.
struct Deployed {
    lab: &'static str,
    directory: tempfile::TempDir,
    topology: Yaml,
    processes: Vec<Child>,
}

impl Deployed {
    fn of(lab: &'static str, arguments: &[&str]) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let out = directory.path().join("out").display().to_string();
        let output = srdma(&[&["lab", "export", lab, "--out", &out, "--json"], arguments].concat());
        assert!(output.status.success(), "{output:?}");
        let text = fs::read_to_string(format!("{out}/{lab}.clab.yml")).unwrap();
        let topology = YamlLoader::load_from_str(&text).unwrap().remove(0)["topology"].clone();
        let mut deployed = Deployed { lab, directory, topology, processes: Vec::new() };
        deployed.write_docker();
        deployed.deploy();
        deployed
    }

    fn nodes(&self) -> Vec<String> {
        self.topology["nodes"].as_hash().unwrap().keys().map(|name| name.as_str().unwrap().to_owned()).collect()
    }

    fn namespace(&self, node: &str) -> String {
        format!("srdma-clab-{}-{}-{node}", self.lab, std::process::id())
    }

    /// A `docker` with the command `exec` alone.
    fn write_docker(&self) {
        let bin = self.directory.path().join("bin");
        fs::create_dir(&bin).unwrap();
        let (base, namespace) = (self.directory.path().display(), self.namespace(""));
        let lab = self.lab;
        let script = format!(
            "#!/bin/sh\n[ \"$1\" = exec ] || exit 64\nnode=${{2#clab-{lab}-}}\nshift 2\n\
             export FILES={base}/out/$node RUN={base}/run/$node\n\
             exec ip netns exec {namespace}$node sh -c '{VIEW}' sh \"$@\"\n"
        );
        fs::write(bin.join("docker"), script).unwrap();
        fs::set_permissions(bin.join("docker"), fs::Permissions::from_mode(0o755)).unwrap();
    }

    /// `PATH` with our `docker` and `srdma`.
    fn path(&self) -> String {
        let program = Path::new(env!("CARGO_BIN_EXE_srdma")).parent().unwrap();
        let bin = self.directory.path().join("bin");
        format!("{}:{}:{}", bin.display(), program.display(), std::env::var("PATH").unwrap())
    }

    fn docker(&self, node: &str, words: &[&str]) -> Command {
        let mut command = Command::new(self.directory.path().join("bin/docker"));
        command.args(["exec", &format!("clab-{}-{node}", self.lab)]).args(words).env("PATH", self.path());
        command.stdin(Stdio::null());
        command
    }

    fn deploy(&mut self) {
        for node in self.nodes() {
            let namespace = self.namespace(&node);
            ip(&format!("netns add {namespace}"));
            for (key, value) in self.topology["nodes"][node.as_str()]["sysctls"].as_hash().unwrap() {
                let setting = format!("{}={}", key.as_str().unwrap(), value.as_str().unwrap());
                ip(&format!("netns exec {namespace} sysctl -qw {setting}"));
            }
            fs::create_dir_all(self.run(&node).join("srdma")).unwrap();
            let words = self.topology["nodes"][node.as_str()]["cmd"].as_str().unwrap().to_owned();
            let words: Vec<&str> = words.split(' ').collect();
            let log = File::create(self.log(&node)).unwrap();
            let process = self.docker(&node, &words).stdout(log.try_clone().unwrap()).stderr(log).spawn().unwrap();
            self.processes.push(process);
        }
        for link in self.topology["links"].as_vec().unwrap() {
            let mtu = link["mtu"].as_i64().unwrap();
            let end = |position: usize| {
                let end = &link["endpoints"][position];
                let [node, interface, mac] = ["node", "interface", "mac"].map(|key| end[key].as_str().unwrap());
                format!("name {interface} mtu {mtu} address {mac} netns {}", self.namespace(node))
            };
            ip(&format!("link add {} type veth peer {}", end(0), end(1)));
            for end in link["endpoints"].as_vec().unwrap() {
                let [node, interface] = ["node", "interface"].map(|key| end[key].as_str().unwrap());
                ip(&format!("-n {} link set {interface} up", self.namespace(node)));
            }
        }
        for node in self.nodes() {
            for line in self.topology["nodes"][node.as_str()]["exec"].as_vec().unwrap() {
                let words: Vec<&str> = line.as_str().unwrap().split(' ').collect();
                let output = self.docker(&node, &words).output().unwrap();
                assert!(output.status.success(), "{node}: {words:?}: {output:?}");
            }
        }
    }

    fn run(&self, node: &str) -> PathBuf {
        self.directory.path().join("run").join(node)
    }

    fn log(&self, node: &str) -> PathBuf {
        self.directory.path().join(format!("{node}.log"))
    }

    /// Runs the lab's script, and returns the last line of each receiver.
    fn transfer(&self) -> Vec<(String, serde_json::Value)> {
        let script = self.directory.path().join("out/transfer.sh");
        let output = Command::new(script).env("PATH", self.path()).output().unwrap();
        let text = String::from_utf8_lossy(&output.stdout);
        let logs: Vec<String> = self
            .nodes()
            .iter()
            .map(|node| format!("{node}: {}", fs::read_to_string(self.log(node)).unwrap_or_default()))
            .collect();
        let problem = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{}: {text}\n{problem}\n{}", self.lab, logs.join("\n"));
        let results = text.lines().map(|line| line.split_once(": ").unwrap());
        results.map(|(name, result)| (name.to_owned(), serde_json::from_str(result).unwrap())).collect()
    }
}

impl Drop for Deployed {
    fn drop(&mut self) {
        for process in &mut self.processes {
            // One that has ended is what is wanted.
            let _ = process.kill();
            let _ = process.wait();
        }
        for node in self.nodes() {
            let namespace = self.namespace(&node);
            let pids = Command::new("ip").args(["netns", "pids", &namespace]).output().unwrap();
            for pid in String::from_utf8_lossy(&pids.stdout).split_whitespace() {
                let _ = Command::new("kill").args(["-KILL", pid]).status();
            }
            let _ = Command::new("ip").args(["netns", "del", &namespace]).status();
        }
    }
}

fn ip(line: &str) {
    let output = Command::new("ip").args(line.split(' ')).output().unwrap();
    assert!(output.status.success(), "ip {line}: {output:?}");
}

fn srdma(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_srdma")).args(arguments).output().expect("the program runs")
}

/// Carries a lab out, and gives the names of its receivers.
fn receivers(lab: &'static str, octets: u64) -> BTreeSet<String> {
    let deployed = Deployed::of(lab, &["--size", &octets.to_string()]);
    let results = deployed.transfer();
    let (sources, receivers): (Vec<_>, Vec<_>) = results.into_iter().partition(|(name, _)| name.ends_with(".source"));
    assert!(!sources.is_empty());
    for (name, result) in &receivers {
        assert_eq!((&result["octets"], &result["matches"]), (&octets.into(), &true.into()), "{lab} {name}: {result}");
        let is_a_source_s =
            sources.iter().any(|(_, source)| source["sha256"] == result["sha256"].as_str().expect("a digest"));
        assert!(is_a_source_s, "{lab} {name}: {result}");
    }
    receivers.into_iter().map(|(name, _)| name).collect()
}

/// MT-5.2-1, D27: receivers have the parameters that nodes were configured with in advance.
#[test]
#[ignore = "needs root"]
fn the_group_of_figure_1_has_the_data() {
    assert_eq!(receivers("figure1", 4 << 20), ["R1", "R2", "R3", "R4", "R5"].map(str::to_owned).into());
}

#[test]
#[ignore = "needs root"]
fn unicast_passes_kernel_routers_and_nodes() {
    for lab in ["usid", "usid-kernel-ends", "sr-policy", "srh-hmac", "pfc", "wan-isis"] {
        assert_eq!(receivers(lab, 1 << 20), ["R".to_owned()].into());
    }
    assert_eq!(receivers("ai-backend-steered", 1 << 20), ["gpu3", "gpu3.2"].map(str::to_owned).into());
    // With packet sockets, whose next hops are the MAC addresses of links.
    assert_eq!(receivers("wan", 1 << 20), ["H3", "H4"].map(str::to_owned).into());
}

/// Command lines with quotes and `$` are scripts.
#[test]
#[ignore = "needs root"]
fn the_command_lines_of_the_lab_run() {
    assert_eq!(receivers("kernel-transit", 1 << 20).len(), 5);
    // FRR, with a configuration that a command line writes.
    assert_eq!(receivers("isis-frr", 1 << 16), ["R".to_owned()].into());
}

/// A controller in a container makes the group: as often as the script is run.
#[test]
#[ignore = "needs root"]
fn a_controllers_group_has_the_data() {
    let deployed = Deployed::of("figure1-controller", &["--size", "1MiB"]);
    for _ in 0..2 {
        let results = deployed.transfer();
        let (_, source) = results.iter().find(|(name, _)| name == "S1.source").expect("the source");
        let digest = source["sha256"].as_str().expect("a digest");
        let matches = results.iter().filter(|(_, result)| result["matches"] == true && result["sha256"] == digest);
        assert_eq!(matches.count(), 5, "{results:?}");
    }
}

#[test]
fn the_written_files_are_listed() {
    let directory = tempfile::tempdir().unwrap();
    let out = directory.path().join("a/b").display().to_string();
    let output = srdma(&["lab", "export", "pfc", "--format", "containerlab", "--out", &out, "--json"]);
    assert!(output.status.success(), "{output:?}");
    let report: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((&report["lab"], &report["directory"]), (&"pfc".into(), &out.clone().into()));
    let files: Vec<&str> = report["files"].as_array().unwrap().iter().map(|file| file.as_str().unwrap()).collect();
    let expected = ["N1/node.toml", "N2/node.toml", "S/peer-info.json", "pfc.clab.yml", "transfer.sh", "README.md"];
    assert_eq!(files, expected);
    for file in files {
        assert!(Path::new(&out).join(file).is_file(), "{file}");
    }
    let mode = fs::metadata(Path::new(&out).join("transfer.sh")).unwrap().permissions().mode();
    assert_eq!(mode & 0o111, 0o111, "transfer.sh can be run");
    let listing = srdma(&["lab", "export", "pfc", "--out", &out]);
    assert_eq!(String::from_utf8_lossy(&listing.stdout).lines().count(), expected.len());
}

#[test]
fn a_lab_with_guests_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let out = directory.path().join("out").display().to_string();
    let output = srdma(&["lab", "export", "figure1-rxe", "--out", &out]);
    assert_eq!(output.status.code(), Some(2));
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(text.starts_with("srdma: S1 of lab figure1-rxe is a guest, a virtual machine, and"), "{text}");
    assert!(!Path::new(&out).exists(), "nothing is written of a lab that is refused");
}
