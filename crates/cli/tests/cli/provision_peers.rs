//! `srdma plan provision` beside the systems that it writes for: FRR of Debian 13 checks and applies the configuration, and
//! SONiC's YANG models hold for it. Where these are not there, the tests say so, and `cargo xtask labs` counts them as
//! skipped: tools/provision has what makes them.

use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;

const FABRIC: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fabrics/figure1.toml");
const TOOLS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tools/provision");
const ROUTERS: [&str; 6] = ["leaf1", "leaf2", "leaf3", "leaf4", "spine5", "spine6"];

/// What an environment variable names, if it is set.
fn peer(variable: &str, what: &str) -> Option<PathBuf> {
    let found = std::env::var_os(variable).map(PathBuf::from);
    if found.is_none() {
        eprintln!("skipped: {variable} is not set: expected {what}");
    }
    found
}

fn frr() -> Option<PathBuf> {
    peer("SRDMA_FRR", "the directory that tools/provision/frr.sh has made").map(|directory| directory.join("root"))
}

fn provision(arguments: &[&str]) -> String {
    let mut srdma = Command::new(env!("CARGO_BIN_EXE_srdma"));
    let output = srdma.args(["plan", "provision", "--fabric", FABRIC]).args(arguments).output().expect("it runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("UTF-8")
}

/// Tenant 7 has NICs 1 and 3.
fn jobs(directory: &Path) -> String {
    let path = directory.join("jobs.toml");
    let text = "[[job]]\nname = \"t\"\ntenant = 7\nnics = [\"nic1\", \"nic3\"]\n\
                [[job.collective]]\nkind = \"send-recv\"\n";
    std::fs::write(&path, text).expect("the jobs are written");
    path.to_str().expect("UTF-8").to_owned()
}

/// The lines that `vtysh -C` refuses.
fn refused(root: &Path, configuration: &str) -> BTreeSet<String> {
    let file = tempfile::NamedTempFile::new_in(root.join("tmp")).expect("a file");
    std::fs::write(file.path(), configuration).expect("the file is written");
    let name = Path::new("/tmp").join(file.path().file_name().expect("a name"));
    let mut vtysh = Command::new("chroot");
    let output = vtysh.arg(root).args(["/usr/bin/vtysh", "-C", "-f"]).arg(name).output().expect("chroot runs");
    let text = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    let line = |line: &str| Some(line.split_once("% Unknown command")?.1.split_once(": ")?.1.trim().to_owned());
    let refused: BTreeSet<String> = text.lines().filter_map(line).collect();
    assert_eq!(output.status.success(), refused.is_empty(), "{text}");
    refused
}

/// PP-5.1-1: FRR 10.3 takes every line of programs by nodes, tenants included. Those of links need FRR 10.4.
#[test]
#[ignore = "needs root"]
fn frr_10_3_takes_all_but_sids_of_links() {
    let Some(root) = frr() else { return };
    let directory = tempfile::tempdir().expect("a directory");
    let jobs = jobs(directory.path());
    for router in ROUTERS {
        let by_nodes = ["--device", router, "--format", "frr", "--jobs", &jobs, "--encoding", "un"];
        assert_eq!(refused(&root, &provision(&by_nodes)), BTreeSet::new(), "{router}");
        let both = provision(&by_nodes[..6]);
        let of_links: BTreeSet<String> =
            both.lines().map(str::trim).filter(|line| line.contains("behavior uA")).map(str::to_owned).collect();
        assert!(!of_links.is_empty() && refused(&root, &both) == of_links, "{router}");
    }
    assert_eq!(refused(&root, "segment-routing\n nonsense\nexit\n"), BTreeSet::from(["nonsense".to_owned()]));
}

/// Starts the daemons, applies a configuration, and prints the kernel's routes. Daemons end with the namespaces.
const APPLY: &str = r#"
root=$1
shift
ip link set lo up
for name in sr0 "$@"; do
    ip link add "$name" type veth peer name "peer-$name"
    ip link set "$name" up
    ip link set "peer-$name" up
done
mount -t proc proc "$root/proc"
mount -t tmpfs tmpfs "$root/run"
mkdir "$root/run/frr"
cat > "$root/run/plan.conf"
for daemon in mgmtd zebra staticd; do
    chroot "$root" "/usr/lib/frr/$daemon" -d -u root -g root -i "/run/frr/$daemon.pid" >&2
done
chroot "$root" /usr/bin/vtysh -f /run/plan.conf >&2
for attempt in $(seq 300); do
    test "$(ip -6 route | grep -v 'proto kernel' | grep -vc '^[[:space:]]')" -ge "$ROUTES" && break
    sleep 0.2
done
ip -j -6 route
"#;

/// Routes by prefix: next hops, and the action of a SID.
type Routes = BTreeMap<String, (BTreeSet<(String, String)>, Option<String>)>;

/// The routes that a router's FRR has put into the kernel.
fn applied(root: &Path, router: &str, plan: &Value) -> Routes {
    let names = plan["ports"].as_array().expect("ports").iter();
    let ports: Vec<&str> = names.map(|port| port["interface"].as_str().expect("a name")).collect();
    let directory = tempfile::tempdir().expect("a directory");
    let configuration = directory.path().join("frr.conf");
    let text = provision(&["--device", router, "--format", "frr", "--encoding", "un"]);
    std::fs::write(&configuration, text).expect("the configuration is written");
    let count = plan["routes"].as_array().expect("routes").len() + plan["sids"].as_array().expect("SIDs").len();
    let mut unshare = Command::new("unshare");
    unshare.args(["--net", "--mount", "--pid", "--fork", "--kill-child", "sh", "-ec", APPLY, "apply"]).arg(root);
    unshare.args(ports).env("ROUTES", count.to_string());
    let output =
        unshare.stdin(std::fs::File::open(configuration).expect("it is there")).output().expect("unshare runs");
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{router}: {stderr}");
    let routes: Vec<Value> = serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {stderr}"));
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let of_route = |route: &Value| {
        let own = [route.clone()];
        let hops = route["nexthops"].as_array().map_or(&own[..], Vec::as_slice);
        let hops = hops.iter().map(|hop| (text(&hop["gateway"]), text(&hop["dev"]))).collect();
        let flavors = route["flavors"].as_array().into_iter().flatten().map(text).collect::<Vec<_>>().join(",");
        let action = route["action"].as_str().map(|action| format!("{action} {flavors} {}", route["nflen"]));
        (text(&route["dst"]), (hops, action))
    };
    let is_of_frr = |route: &&Value| route["protocol"].as_str().expect("a protocol") != "kernel";
    routes.iter().filter(is_of_frr).map(of_route).collect()
}

/// PP-4-2, PP-5.1-1: what FRR 10.3 makes of the configuration, as the kernel shows it: the plan's routes by all their
/// next hops, and the uN as End with NEXT-CSID.
#[test]
#[ignore = "needs root"]
fn frr_10_3_puts_the_plan_into_the_kernel() {
    let Some(root) = frr() else { return };
    for router in ["leaf3", "spine5"] {
        let plan: Value =
            serde_json::from_str(&provision(&["--device", router, "--encoding", "un"])).expect("the plan");
        let plan = &plan[router];
        let port = |number: &Value| {
            let of_number = |port: &&Value| port["port"] == *number;
            let port = plan["ports"].as_array().expect("ports").iter().find(of_number).expect("the port");
            (
                port["peer_address"].as_str().expect("text").to_owned(),
                port["interface"].as_str().expect("text").to_owned(),
            )
        };
        let route = |route: &Value| {
            let hops = route["ports"].as_array().expect("ports").iter().map(port).collect();
            (route["prefix"].as_str().expect("text").to_owned(), (hops, None))
        };
        let mut expected: Routes = plan["routes"].as_array().expect("routes").iter().map(route).collect();
        let sid = plan["sids"][0]["sid"].as_str().expect("text").to_owned();
        let at = BTreeSet::from([(String::new(), "sr0".to_owned())]);
        expected.insert(sid, (at, Some("End next-csid 16".to_owned())));
        assert_eq!(applied(&root, router, plan), expected, "{router}");
    }
}

/// SONiC's models, with which its `config` command checks a configuration, take both encodings; they refuse a change.
#[test]
#[ignore = "needs root"]
fn sonics_models_hold_for_the_configuration() {
    let Some(models) = peer("SRDMA_SONIC_MODELS", "src/sonic-yang-models of sonic-net/sonic-buildimage") else {
        return;
    };
    let directory = tempfile::tempdir().expect("a directory");
    let (jobs, config) = (jobs(directory.path()), directory.path().join("config.json"));
    let check = |text: &str| {
        std::fs::write(&config, text).expect("the configuration is written");
        let mut python = Command::new("python3");
        let output = python.arg(Path::new(TOOLS).join("sonic.py")).arg(&models).arg(&config).output();
        let output = output.expect("python3 runs");
        (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    for encoding in ["un", "ua"] {
        let options = ["--format", "sonic", "--interfaces", "Ethernet{port}", "--jobs", &jobs, "--encoding", encoding];
        let made = provision(&options);
        assert_eq!(check(&made), (Some(0), String::new()), "{encoding}");
        let (code, problem) = check(&made.replacen("\"pipe\"", "\"hose\"", 1));
        assert!(code == Some(1) && problem.contains("hose"), "{code:?} {problem}");
    }
}
