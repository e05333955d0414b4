//! Flows that cannot be placed are refused with the name in error, the limit, and exit code 2.

use std::process::Command;
use tempfile::TempDir;

const FIGURE1: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fabrics/figure1.toml");

/// The error text of `srdma plan`, given a fabric and jobs, each as text.
fn refusal(fabric: &str, jobs: (&str, &str), more: &[&str]) -> String {
    let folder = TempDir::new().unwrap();
    let (fabric_file, jobs_file) = (folder.path().join("fabric.toml"), folder.path().join(jobs.0));
    std::fs::write(&fabric_file, fabric).unwrap();
    std::fs::write(&jobs_file, jobs.1).unwrap();
    let files = ["--fabric", fabric_file.to_str().unwrap(), "--jobs", jobs_file.to_str().unwrap()];
    let mut command = Command::new(env!("CARGO_BIN_EXE_srdma"));
    let output = command.args(["plan", "place"]).args(files).args(more).output().unwrap();
    assert_eq!((output.status.code(), output.stdout.len()), (Some(2), 0));
    let folder = format!("{}/", folder.path().display());
    String::from_utf8(output.stderr).unwrap().replace(&folder, "")
}

const NODES: &str = "kind = \"links\"\nhost = [{ name = \"a\" }, { name = \"b\" }]\n";
const LEAF_SPINE: &str = "kind = \"leaf-spine\"\nleaves = 2\nspines = 2\nhosts_per_leaf = 2\n";
const FLOW: (&str, &str) = ("flows.csv", "from,to,bits_per_s\na,b,1\n");
const FLOW_ACROSS: (&str, &str) = ("flows.csv", "from,to,bits_per_s\nh1.1,h2.1,1\n");

#[test]
fn a_fabric_that_is_not_joined() {
    let apart = format!(
        "{NODES}switch = [{{ name = \"s\" }}, {{ name = \"t\" }}]\n\
         link = [{{ ends = [\"a\", \"s\"] }}, {{ ends = [\"b\", \"t\"] }}]\n"
    );
    let expected = "srdma: fabric.toml:2: no path leads from host a to host b: join their switches\n";
    assert_eq!(refusal(&apart, FLOW, &[]), expected);
    let failed = format!("{LEAF_SPINE}[[failed]]\nname = \"spine1\"\n[[failed]]\nname = \"leaf2-spine2\"\n");
    let expected = "no path leads from host h1.1 to host h2.1 on links that have not failed: join their switches\n";
    assert_eq!(refusal(&failed, FLOW_ACROSS, &[]), format!("srdma: fabric.toml:5: {expected}"));
}

#[test]
fn more_nodes_than_ids_of_16_bits() {
    let switches: String = (0..65_537).map(|number| format!("[[switch]]\nname = \"s{number}\"\n")).collect();
    let expected = "switch s16384 is one too many of 65537: 16384 at most have ids of 16 bits\n";
    assert_eq!(refusal(&format!("{NODES}{switches}"), FLOW, &[]), format!("srdma: fabric.toml:32771: {expected}"));
    let high = format!(
        "{NODES}link = [{{ ends = [\"a\", \"s\"] }}, {{ ends = [\"b\", \"s\"] }}]\n\
         [[switch]]\nname = \"s\"\nnumber = 20_000\n"
    );
    let expected =
        "switch s has number 20000, but only numbers up to 18431 of tier 1 have an id of 16 bits: give it one";
    assert_eq!(refusal(&high, FLOW, &[]), format!("srdma: fabric.toml has no plan of SIDs: {expected}\n"));
}

#[test]
fn a_nic_that_is_not_there() {
    let jobs = ("jobs.toml", "[[job]]\nname = \"j\"\nnics = [\"h1.1\", \"h3.1\"]\n");
    assert_eq!(refusal(LEAF_SPINE, jobs, &[]), "srdma: jobs.toml:3: h3.1 is no NIC of this fabric\n");
    let csv = ("flows.csv", "from,to,bits_per_s\nh1.1,h3.1,1\n");
    let expected = "srdma: flows.csv:2: column to: \"h3.1\" is no NIC of this fabric\n";
    assert_eq!(refusal(LEAF_SPINE, csv, &[]), expected);
    let dump = ("graph.xml", "<system version=\"1\">\n  <nic><net dev=\"2\" speed=\"100000\"/></nic>\n</system>\n");
    let servers = ["--server", "h1.", "--server", "h2."];
    let expected = "srdma: graph.xml:2: column 8: NIC 2 is needed, but 2 hosts of this fabric begin with h1.\n";
    assert_eq!(refusal(LEAF_SPINE, dump, &servers), expected);
    let expected = "srdma: graph.xml: a dump of NCCL is about one server: give --server PREFIX for each\n";
    assert_eq!(refusal(LEAF_SPINE, dump, &[]), expected);
}

#[test]
fn a_link_that_differs_both_ways() {
    let links = format!(
        "{NODES}switch = [{{ name = \"s\" }}]\nlink = [{{ ends = [\"a\", \"s\"] }},\n\
         {{ ends = [\"b\", \"s\"], rate_bits_per_s = [100, 50] }}]\n"
    );
    let expected = "the link from b to s has rate_bits_per_s 100, and 50 back: expected the same both ways\n";
    assert_eq!(refusal(&links, FLOW, &[]), format!("srdma: fabric.toml:5: {expected}"));
}

#[test]
fn a_drain_that_cuts_a_nic_off() {
    let cut = |name| refusal(LEAF_SPINE, FLOW_ACROSS, &["--drain", name]);
    let expected = "h2.2 would be cut off: release a link first, or drain fewer\n";
    assert_eq!(cut("h2.2-leaf2"), format!("srdma: cannot drain h2.2-leaf2: {expected}"));
    assert!(cut("leaf1").contains("cannot drain leaf1: h1.1 would be cut off"), "{}", cut("leaf1"));
}

#[test]
fn an_address_that_is_not_a_program() {
    let decode = |address: &str| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_srdma"));
        let output = command.args(["plan", "decode", "--fabric", FIGURE1, address]).output().unwrap();
        assert_eq!((output.status.code(), output.stdout.len()), (Some(2), 0));
        String::from_utf8(output.stderr).unwrap()
    };
    assert_eq!(decode("2001:db8::1"), "srdma: 2001:db8::1 is not in the block 5f00::/32\n");
    let expected = "5f00:0:100:700:: is no program of this fabric: 0x0700 is the id of no switch\n";
    assert_eq!(decode("5f00:0:100:700::"), format!("srdma: {expected}"));
    let expected =
        "5f00:0:100:e009:: is no program of this fabric: 0xe009 would be port 9 of leaf1, where no link is\n";
    assert_eq!(decode("5f00:0:100:e009::"), format!("srdma: {expected}"));
}

/// Dumps and lists are read through the command line too; the rest of the placement is as with jobs.
#[test]
fn files_of_every_kind_are_read() {
    let folder = TempDir::new().unwrap();
    let file = |name: &str, text: &str| {
        let file = folder.path().join(name);
        std::fs::write(&file, text).unwrap();
        file.to_str().unwrap().to_owned()
    };
    let fabric = file("fabric.toml", LEAF_SPINE);
    let csv = file("flows.CSV", "from,to,bits_per_s,job,tenant\nh1.1,h2.1,100000000000,copy,3\n");
    let xml = file("system.xml", "<system><nic><net dev=\"0\" speed=\"100000\"/></nic></system>");
    let place = |arguments: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_srdma"));
        let output = command.args(["plan", "place", "--json", "--fabric", &fabric]).args(arguments).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        serde_json::from_slice::<serde_json::Value>(&output.stdout).unwrap()
    };
    let placed = place(&["--jobs", &csv]);
    assert_eq!(placed["flows"][0]["job"], "copy");
    assert_eq!(placed["flows"][0]["program"]["destination"], "5f00:0:1:4801:2:f003::");
    let placed = place(&["--jobs", &xml, "--server", "h1.1", "--server", "h2.1"]);
    let ends: Vec<_> = placed["flows"].as_array().unwrap().iter().map(|flow| (&flow["from"], &flow["to"])).collect();
    assert_eq!(ends, [(&"h1.1".into(), &"h2.1".into()), (&"h2.1".into(), &"h1.1".into())]);
    assert_eq!(placed["most_loaded"]["load"], 1.0);
}
