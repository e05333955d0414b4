//! Invalid topologies, and their errors.

use srdma_fabric::{FatTree, LeafSpine, Place, Speeds, Topology};

fn refused(text: &str) -> String {
    Topology::from_toml(text).expect_err(text).to_string()
}

const NODES: &str = "kind = \"links\"\nhost = [{ name = \"a\" }, { name = \"b\" }]\nswitch = [{ name = \"s\" }]\n";

#[test]
fn mistakes_in_a_file_name_the_line() {
    let files = [
        "leaves = 4\n".to_owned(),
        "kind = \"ring\"\n".to_owned(),
        "kind = \"leaf-spine\"\nspines = 2\n".to_owned(),
        "kind = \"leaf-spine\"\nleaves = 4\nspines = 2\nhosts = 2\n".to_owned(),
        "kind = \"leaf-spine\"\nleaves = 4\nspines = -2\nhosts_per_leaf = 2\n".to_owned(),
        "kind = \"leaf-spine\"\nleaves = 4\nspines = 0\nhosts_per_leaf = 2\n".to_owned(),
        "kind = \"fat-tree\"\nk = 8\nleaves = 4\n".to_owned(),
        "kind = \"fat-tree\"\nk = 7\n".to_owned(),
        "kind = \"fat-tree\"\nk = 8\ntiers = 4\n".to_owned(),
        "kind = \"fat-tree\"\nk = 8\nfabric_rate_bits_per_s = 1\noversubscription = 2\n".to_owned(),
        "kind = \"fat-tree\"\nk = 8\n\noversubscription = 0\n".to_owned(),
        "kind = \"fat-tree\"\nk = 8\nhost_rate_bits_per_s = 0\n".to_owned(),
        "kind = \"fat-tree\"\nk = 8\nfabric_rate_bits_per_s = 9223372036854775807\n".to_owned(),
        "kind = \"fat-tree\"\nk = 8\nhost_delay_ns = 9223372036854775807\n".to_owned(),
        "kind = \"links\"\n".to_owned(),
        format!("{NODES}link = [{{ ends = [\"a\", \"s\"] }},\n{{ ends = [\"b\", \"t\"] }}]\n"),
        format!("{NODES}link = [{{ ends = [\"a\", \"s\"] }},\n{{ ends = [\"b\", \"b\"] }}]\n"),
        format!("{NODES}link = [{{ ends = [\"a\", \"s\"] }},\n{{ ends = [\"a\", \"b\"] }}]\n"),
        format!("{NODES}link = [{{ ends = [\"a\", \"s\"] }}]\n"),
        format!(
            "{NODES}[[link]]\nends = [\"a\", \"s\"]\nports = [0, 4]\n[[link]]\nends = [\"b\", \"s\"]\nports = [0, 4]\n"
        ),
        format!("{NODES}[[link]]\nends = [\"a\", \"s\"]\nports = [0, 1024]\n"),
        format!("{NODES}[[link]]\nends = [\"a\", \"s\"]\nrate_bits_per_s = 0\n"),
        format!("{NODES}[[link]]\nends = [\"a\", \"s\"]\nrate_bits_per_s = 10_000_000_000_001\n"),
        format!("{NODES}[[link]]\nends = [\"a\", \"s\"]\ndelay_ns = 10_000_000_001\n"),
        "kind = \"links\"\nhost = [{ name = \"a\" },\n{ name = \"a\" }]\n".to_owned(),
        "kind = \"links\"\nhost = [{ name = \"a\" },\n{ name = \"b c\" }]\n".to_owned(),
        "kind = \"links\"\nhost = [{ name = \"a\" },\n{ name = \"b\", number = 1 }]\n".to_owned(),
        "kind = \"links\"\nhost = [{ name = \"a\" },\n{ name = \"b\", number = 0xff00_0000 }]\n".to_owned(),
        format!(
            "{}[[link]]\nends = [\"a\", \"s\"]\n[[link]]\nends = [\"b\", \"s\"]\n",
            NODES.replace("{ name = \"s\" }", "{ name = \"s\" },\n{ name = \"t\" }")
        ),
        format!("{}\n[[switch]]\nname = \"t\"\ntier = 0\n", NODES.replace("switch = [{ name = \"s\" }]\n", "")),
        format!(
            "{}\n[[link]]\nends = [\"a\", \"s\"]\n[[link]]\nends = [\"b\", \"t\"]\n",
            NODES.replace("{ name = \"s\" }", "{ name = \"s\" }, { name = \"t\" }")
        ),
    ];
    // One message lists all valid keys.
    let errors: Vec<String> = files.iter().map(|file| refused(file).chars().take(99).collect()).collect();
    insta::assert_snapshot!(errors.join("\n"), @r#"
line 1: missing key `kind`
line 1: unknown value `ring`, expected one of `leaf-spine`, `fat-tree`, `rails`, `planes`, `dual-ho
line 1: a topology of kind leaf-spine needs the key leaves
line 4: unknown key `hosts`, expected one of `kind`, `leaves`, `spines`, `hosts_per_leaf`, `tiers`,
line 3: invalid value: integer `-2`, expected u16
line 3: spines = 0: expected 1 to 512
line 3: a topology of kind fat-tree has no key leaves
line 2: k = 7: expected an even number, 2 to 64
line 3: tiers = 4: expected 2 or 3
line 4: expected fabric_rate_bits_per_s or oversubscription, not both
line 4: expected the ratio of hosts to uplinks, such as 1.0 or 3.0
line 3: a rate of 0: expected 1 to 10000000000000 bits a second
line 3: a rate of 9223372036854775807: expected 1 to 10000000000000 bits a second
line 3: a delay of 9223372036854775807: expected 10000000000 nanoseconds at most
line 1: 0 hosts: a topology needs at least 2
line 5: t is no host and no switch
line 5: the link begins and ends at b
line 5: a and b are hosts: put a switch between them
line 2: host b has no link: join it to a switch
line 7: port 4 of s is joined to a already: use another
line 4: port 1024 of s: expected 1023 at most
line 4: the link from a to s has rate 0: expected bits a second
line 4: the link from a to s has rate 10000000000001: expected 10000000000000 at most
line 4: the link from a to s has delay 10000000001: expected 10000000000 at most
line 3: two nodes are called a: give one another name
line 3: "b c" is no name of a node: expected 1 to 32 letters, digits, dots, hyphens and underscores
line 3: host b has number 1, which is a's
line 3: host b has number 4278190080: expected 4278190079 at most
line 4: switch t has no link
line 4: switch t has tier 0: tiers count from 1, where hosts are attached
line 2: no path leads from host a to host b: join their switches
"#);
}

#[test]
fn generators_name_the_parameter_that_is_out_of_range() {
    let leaf_spine = |leaves, spines, hosts_per_leaf| {
        LeafSpine { leaves, spines, hosts_per_leaf, speeds: Speeds::DEFAULT }.topology().unwrap_err()
    };
    assert_eq!(leaf_spine(0, 1, 1).to_string(), "leaves = 0: expected 1 to 512");
    assert_eq!(leaf_spine(1, 513, 1).to_string(), "spines = 513: expected 1 to 512");
    assert_eq!(leaf_spine(1, 1, 1).to_string(), "1 hosts: a topology needs at least 2");
    let fat_tree = |tiers, k| FatTree { tiers, k, pods: None, speeds: Speeds::DEFAULT }.topology().unwrap_err();
    assert_eq!(fat_tree(3, 66).to_string(), "k = 66: expected an even number, 2 to 64");
    assert_eq!(fat_tree(1, 4).place, Place::Parameter("tiers"));
}
