//! Flows from files of other programs. The dumps of NCCL are written by hand, after those quoted in NVIDIA/nccl issues
//! 392 and 524.

use proptest::prelude::*;
use srdma_fabric::{NodeId, Topology};
use srdma_placement::{ListedFlow, NcclAlgorithm, flows_from_csv, flows_from_nccl, flows_from_nccl_log};

fn rail() -> Topology {
    Topology::from_toml(include_str!("../../../../fabrics/rail.toml")).unwrap()
}

fn lines(topology: &Topology, flows: &[ListedFlow]) -> Vec<String> {
    let name = |host| topology.name(NodeId::Host(host)).to_owned();
    let line = |own: &ListedFlow| {
        let (from, to) = (name(own.flow.from), name(own.flow.to));
        format!("{from} {to} {} {} {:?}", own.flow.rate_bits_per_s / 1_000_000_000, own.job, own.tenant)
    };
    flows.iter().map(line).collect()
}

#[test]
fn a_csv_of_flows() {
    let topology = rail();
    let text = "\u{feff}from,to,bits_per_s,job,tenant\r\n# a comment\r\nh1.1.1,h1.2.1,50000000000,train,7\r\n\
                \"h1.2.1\", h1.1.1 ,20000000000,,\r\n";
    let flows = flows_from_csv(text, &topology).unwrap();
    assert_eq!(lines(&topology, &flows), ["h1.1.1 h1.2.1 50 train Some(7)", "h1.2.1 h1.1.1 20 flows None"]);
    let short = flows_from_csv("bits_per_s,to,from\n1000000000,h1.1.2,h1.1.1", &topology).unwrap();
    assert_eq!(lines(&topology, &short), ["h1.1.1 h1.1.2 1 flows None"]);
    assert_eq!(flows_from_csv("from,to,bits_per_s\n", &topology).unwrap(), []);
}

#[test]
fn mistakes_in_a_csv_name_line_and_column() {
    let topology = rail();
    let refused = |text: &str| flows_from_csv(text, &topology).unwrap_err().to_string();
    let row = |row: &str| refused(&format!("from,to,bits_per_s,job,tenant\nh1.1.1,h1.2.1,1,,\n{row}\n"));
    assert_eq!(row("h1.1.1,h9.9.9,1,,"), "line 3: column to: \"h9.9.9\" is no NIC of this fabric");
    assert_eq!(row("spine1,h1.1.1,1,,"), "line 3: column from: \"spine1\" is no NIC of this fabric");
    assert_eq!(row("h1.1.1,h1.1.1,1,,"), "line 3: column to: a NIC sends nothing to itself");
    let rate = "line 3: column bits_per_s: \"0\": expected a whole number, 1 to 10000000000000";
    assert_eq!(row("h1.1.1,h1.1.2,0,,"), rate);
    let tenant = "line 3: column tenant: \"4096\": expected a whole number, 0 to 4095";
    assert_eq!(row("h1.1.1,h1.1.2,1,,4096"), tenant);
    assert_eq!(row("h1.1.1,h1.1.2"), "line 3: 2 columns, but the first line has 5");
    let list = "from, to, bits_per_s, job, tenant, the last two if wanted";
    assert_eq!(refused("from,to\n"), format!("line 1: the first line has to name the columns: {list}"));
    assert_eq!(refused(""), format!("line 1: the first line has to name the columns: {list}"));
    assert_eq!(refused("from,to,bits_per_s,x\n"), format!("line 1: \"x\" is no column: expected {list}"));
    assert_eq!(refused("from,to,bits_per_s,to\n"), "line 1: column to stands there twice");
}

/// Two channels of a server with eight GPUs: in by NIC 3 and out by NIC 0, and by NIC 1 both ways; and a tree.
const GRAPHS: &str = r#"<graphs version="1">
  <graph id="0" pattern="4" crossnic="0" nchannels="2" speedintra="12" speedinter="12.5" typeintra="SYS" typeinter="SYS">
    <channel>
      <net dev="3"/>
      <gpu dev="0"/>
      <gpu dev="1"/>
      <net dev="0"/>
    </channel>
    <channel>
      <net dev="1"/>
      <gpu dev="1"/>
      <gpu dev="0"/>
      <net dev="1"/>
    </channel>
  </graph>
  <graph id="1" pattern="3" crossnic="0" nchannels="1" speedintra="6" speedinter="6" typeintra="SYS" typeinter="SYS">
    <channel>
      <net dev="2"/>
      <gpu dev="0"/>
      <gpu dev="1"/>
      <net dev="2"/>
    </channel>
  </graph>
</graphs>
"#;

const SYSTEM: &str = r#"<system version="1">
  <cpu numaid="0" arch="x86_64" vendor="GenuineIntel" familyid="6" modelid="85">
    <pci busid="0000:18:00.0" class="0x060400" link_speed="" link_width="0">
      <pci busid="0000:1b:00.0" class="0x030200" link_speed="" link_width="0">
        <gpu dev="0" sm="70" rank="0" gdr="0"/>
      </pci>
      <pci busid="0000:1a:00.0" class="0x020000" link_speed="" link_width="0">
        <nic>
          <net name="mlx5_0" dev="0" speed="100000" port="1" guid="0x1" maxconn="262144" gdr="0"/>
          <net name="mlx5_1" dev="1" speed="200000" port="1" guid="0x2" maxconn="262144" gdr="0"/>
        </nic>
      </pci>
    </pci>
  </cpu>
</system>
"#;

fn servers(names: &[&str]) -> Vec<String> {
    names.iter().map(|name| (*name).to_owned()).collect()
}

#[test]
fn rings_of_nccl_go_from_server_to_server() {
    let topology = rail();
    let flows =
        flows_from_nccl(GRAPHS, &topology, &servers(&["h1.1.", "h1.2.", "h2.1."]), NcclAlgorithm::Ring).unwrap();
    let expected = [
        "h1.1.1 h1.2.4 100 nccl None",
        "h1.2.1 h2.1.4 100 nccl None",
        "h2.1.1 h1.1.4 100 nccl None",
        "h1.1.2 h1.2.2 100 nccl None",
        "h1.2.2 h2.1.2 100 nccl None",
        "h2.1.2 h1.1.2 100 nccl None",
    ];
    assert_eq!(lines(&topology, &flows), expected);
    let flows = flows_from_nccl(SYSTEM, &topology, &servers(&["h1.1.", "h2.1."]), NcclAlgorithm::Ring).unwrap();
    let expected = [
        "h1.1.1 h2.1.1 100 nccl None",
        "h2.1.1 h1.1.1 100 nccl None",
        "h1.1.2 h2.1.2 200 nccl None",
        "h2.1.2 h1.1.2 200 nccl None",
    ];
    assert_eq!(lines(&topology, &flows), expected);
}

/// D267, by hand, for three servers: the first tree is 0 above 2 above 1, the second, turned by one, 1 above 0 above 2.
/// Server 1 is the lower child of 2, and 2 of 0 in the second tree; the others are upper ones, as below a root. Each end
/// has a quarter of 6 gigabytes a second.
#[test]
fn trees_of_nccl_join_servers_to_their_parents() {
    let topology = rail();
    let three = servers(&["h1.1.", "h1.2.", "h2.1."]);
    let trees = |text: &str| {
        let flows = flows_from_nccl(text, &topology, &three, NcclAlgorithm::Tree).unwrap();
        assert!(flows.iter().all(|own| own.part == "tree" && own.flow.rate_bits_per_s == 12_000_000_000));
        lines(&topology, &flows).iter().map(|line| line.replace(" 12 nccl None", "")).collect::<Vec<_>>()
    };
    let both = |one: &str, other: &str| [format!("{one} {other}"), format!("{other} {one}")];
    let expected = |[lower, upper]: [&str; 2]| -> Vec<String> {
        let edges = [
            both("h1.2.3", &format!("h2.1.{lower}")),
            both("h2.1.3", &format!("h1.1.{upper}")),
            both("h1.1.3", &format!("h1.2.{upper}")),
            both("h2.1.3", &format!("h1.1.{lower}")),
        ];
        let mut sorted: Vec<String> = edges.into_iter().flatten().collect();
        sorted.sort_unstable();
        sorted
    };
    let second = GRAPHS.replace(
        "<net dev=\"2\"/>\n    </channel>\n  </graph>\n</graphs>",
        "<net dev=\"0\"/></channel></graph></graphs>",
    );
    assert_ne!(second, GRAPHS);
    for (pattern, ends) in [(1, ["1", "3"]), (2, ["1", "1"]), (3, ["3", "3"])] {
        let text = second.replace("pattern=\"3\"", &format!("pattern=\"{pattern}\""));
        let mut found = trees(&text);
        found.sort_unstable();
        assert_eq!(found, expected(ends), "pattern {pattern}");
    }
    let refused = |text: &str| flows_from_nccl(text, &topology, &three, NcclAlgorithm::Tree).unwrap_err().to_string();
    let none = "line 1: column 1: no tree (pattern 1 to 3) has a channel with a NIC: was the job on one server?";
    assert_eq!(refused("<graphs version=\"1\"/>"), none);
    assert_eq!(refused(SYSTEM), "line 1: column 1: a topology has no trees: expected <graphs>");
}

/// Two servers with two GPUs each, in the form of NVIDIA/nccl-tests issue 252. Channel 0 goes from rank 2 to 0, channel 1
/// from 1 to 3, by the NICs that the log names, where it does.
const LOG: &str = "\
a:1:1 [0] NCCL INFO Trees [0] 1/2/-1->0->-1 [1] -1/-1/-1->0->1
a:2:2 [1] NCCL INFO Trees [0] -1/-1/-1->1->0 [1] 0/-1/-1->1->3
b:3:3 [0] NCCL INFO Trees [0] 3/-1/-1->2->0 [1] -1/-1/-1->2->3
b:4:4 [1] NCCL INFO Trees [0] -1/-1/-1->3->2 [1] 2/1/-1->3->-1
a:1:1 [0] NCCL INFO Channel 00/0 : 2[0] -> 0[0] [receive] via NET/IB/3/GDRDMA
a:1:1 [0] NCCL INFO Channel 00/0 : 0[0] -> 2[0] [send] via NET/IB/2(1)/GDRDMA
a:1:1 [0] NCCL INFO Channel 00/0 : 0[0] -> 1[1] via P2P/CUMEM
b:4:4 [1] NCCL INFO comm 0x1 rank 3 nRanks 4 nNodes 2 localRanks 2 localRank 1 MNNVL 0
";

#[test]
fn a_log_of_nccl_has_the_trees_of_ranks() {
    let topology = rail();
    let two = servers(&["h1.1.", "h1.2."]);
    let flows = flows_from_nccl_log(LOG, &topology, &two).unwrap();
    // A place in the server where the log names no NIC: eight NICs for two ranks, so rank 1 has the fifth.
    let expected = [
        "h1.2.1 h1.1.4 400 nccl None",
        "h1.1.3 h1.2.1 400 nccl None",
        "h1.1.5 h1.2.5 400 nccl None",
        "h1.2.5 h1.1.5 400 nccl None",
    ];
    assert_eq!(lines(&topology, &flows), expected);
    assert!(flows.iter().all(|own| own.part == "tree"));
    let refused = |text: &str| flows_from_nccl_log(text, &topology, &two).unwrap_err().to_string();
    assert_eq!(refused(""), "line 1: no line has trees: expected `NCCL INFO Trees`, as with NCCL_DEBUG=INFO");
    let without: String = LOG.lines().skip(1).map(|line| format!("{line}\n")).collect();
    assert_eq!(refused(&without), "line 7: rank 0 has no tree of channel 0: expected the logs of all ranks");
    let broken = refused(&LOG.replacen("->0->-1", "->zero", 1));
    assert_eq!(broken, "line 1: [0] 1/2/-1->zero: expected a tree such as [0] 1/-1/-1->0->-1");
    let twice = format!("{LOG}c:1:1 [0] NCCL INFO Trees [0] 1/-1/-1->0->2\n");
    let other = "line 9: rank 0 has another tree of channel 0 above: expected one communicator";
    assert_eq!(refused(&twice), other);
    let three = flows_from_nccl_log(LOG, &topology, &servers(&["h1.1.", "h1.2.", "h2.1."])).unwrap_err().to_string();
    assert_eq!(three, "line 8: 4 ranks and 3 servers: expected as many ranks on each of two or more");
    let nic = refused(&LOG.replace("IB/3", "IB/9"));
    assert_eq!(nic, "line 3: NIC 9 is needed, but 8 hosts of this fabric begin with h1.1.");
}

#[test]
fn mistakes_in_a_dump_name_line_and_column() {
    let topology = rail();
    let two = servers(&["h1.1.", "h1.2."]);
    let refused = |text: &str| flows_from_nccl(text, &topology, &two, NcclAlgorithm::Ring).unwrap_err().to_string();
    assert_eq!(refused("<graphs>"), "line 1: column 1: the root node was opened but never closed");
    let other = "line 1: column 1: <topology> is no dump of NCCL: expected <graphs> or <system>";
    assert_eq!(refused("<topology/>"), other);
    let net = GRAPHS.replacen("net dev=\"3\"", "net dev=\"x\"", 1);
    assert_eq!(refused(&net), "line 4: column 7: <net dev=\"x\">: expected the number of a NIC");
    let speed = GRAPHS.replace("12.5", "-1");
    assert_eq!(refused(&speed), "line 2: column 3: <graph speedinter>: -8000000000 bits a second is no rate of a NIC");
    let many = GRAPHS.replacen("net dev=\"3\"", "net dev=\"8\"", 1);
    let found = "NIC 8 is needed, but 8 hosts of this fabric begin with h1.2.";
    assert_eq!(refused(&many), format!("line 3: column 5: {found}"));
    let none = "no ring (pattern 4) has a channel with a NIC: was the job on one server?";
    assert_eq!(refused("<graphs version=\"1\"/>"), format!("line 1: column 1: {none}"));
    let alone = flows_from_nccl(SYSTEM, &topology, &two[..1], NcclAlgorithm::Ring).unwrap_err().to_string();
    assert!(alone.contains("name the job's servers, two or more"), "{alone}");
    let twice =
        flows_from_nccl(SYSTEM, &topology, &servers(&["h1.1.", "h1.1."]), NcclAlgorithm::Ring).unwrap_err().to_string();
    assert!(twice.ends_with("h1.1. stands for the same NIC as h1.1."), "{twice}");
}

proptest! {
    /// Any file is parsed or refused with a line; its flows are flows of this fabric.
    #[test]
    fn no_file_makes_reading_panic(
        damage in proptest::collection::vec((any::<prop::sample::Index>(), any::<char>()), 0..8),
        which in 0_usize..4,
        junk in "\\PC{0,200}",
    ) {
        let topology = rail();
        let csv = "from,to,bits_per_s,job,tenant\nh1.1.1,h1.2.1,5,a,7\nh1.2.1,h1.1.1,6,,\n";
        let mut text: Vec<char> = [GRAPHS, SYSTEM, csv, LOG][which].chars().collect();
        for (index, character) in damage {
            let at = index.index(text.len());
            text[at] = character;
        }
        let names = servers(&["h1.1.", "h1.2."]);
        for text in [text.into_iter().collect::<String>(), junk] {
            let of_nccl = |algorithm| flows_from_nccl(&text, &topology, &names, algorithm);
            let reads = [
                flows_from_csv(&text, &topology),
                of_nccl(NcclAlgorithm::Ring),
                of_nccl(NcclAlgorithm::Tree),
                flows_from_nccl_log(&text, &topology, &names),
            ];
            for read in reads {
                match read {
                    Ok(flows) => prop_assert!(flows.iter().all(|own| own.flow.from != own.flow.to)),
                    Err(error) => prop_assert!(error.to_string().starts_with("line ")),
                }
            }
        }
    }
}
