//! Labs as topologies of containerlab: the output is parsed by another YAML library, and is consistent.

use sha2::{Digest, Sha256};
use srdma_host::{GroupFile, PeerInfo};
use srdma_lab::containerlab::{ExportError, ExportedFile, IMAGE, export};
use srdma_lab::topology::{Kind, Lists, Operation};
use srdma_lab::{LabError, Source, Topology, shipped};
use srdma_node::{Configuration, InterfaceFacts, Purpose};
use srdma_node_spec::file::NodeFile;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use yaml_rust2::{Yaml, YamlLoader};

fn topology(name: &str) -> Topology {
    Source::find(name).unwrap().topology().unwrap()
}

fn exported(topology: &Topology) -> Vec<ExportedFile> {
    export(topology, &topology.transfer, IMAGE).unwrap_or_else(|error| panic!("{}: {error}", topology.name))
}

fn text<'f>(files: &'f [ExportedFile], path: &str) -> &'f str {
    let file = files.iter().find(|file| file.path == Path::new(path));
    &file.unwrap_or_else(|| panic!("there is no {path}")).text
}

fn yaml(topology: &Topology, files: &[ExportedFile]) -> Yaml {
    let documents = YamlLoader::load_from_str(text(files, &format!("{}.clab.yml", topology.name))).unwrap();
    documents.into_iter().next().unwrap()
}

fn strings(list: &Yaml) -> Vec<String> {
    list.as_vec().unwrap().iter().map(|entry| entry.as_str().unwrap().to_owned()).collect()
}

/// The labs that containers can be, and those that are refused.
fn labs() -> (Vec<Topology>, Vec<Topology>) {
    let is_exported = |lab: &Topology| lab.nodes.iter().all(|node| node.kind != Kind::Guest);
    shipped::names().map(topology).partition(is_exported)
}

#[test]
fn every_shipped_lab_is_exported_or_refused_by_the_name_of_its_guest() {
    let (exported_labs, refused) = labs();
    assert!(exported_labs.len() >= 12, "{}", exported_labs.len());
    exported_labs.iter().for_each(|lab| drop(exported(lab)));
    let names: Vec<&str> = refused.iter().map(|lab| lab.name.as_str()).collect();
    let expected = ["figure1-cm-rxe", "figure1-controller-rxe", "figure1-ipv4-rxe", "figure1-lossy-rxe", "figure1-rxe"];
    assert_eq!(names, expected);
    let error = export(&refused[4], &refused[4].transfer, IMAGE).unwrap_err();
    assert!(matches!(&error, LabError::Export(ExportError::Guest { node, .. }) if node == "S1"), "{error}");
    assert!(
        error.to_string().contains("`kind = \"endpoint\"`, or run the lab by `srdma lab run figure1-rxe`"),
        "{error}"
    );
}

#[test]
fn the_topology_has_the_nodes_and_links_of_the_lab() {
    for lab in labs().0 {
        let files = exported(&lab);
        let yaml = yaml(&lab, &files);
        assert_eq!(yaml["name"].as_str(), Some(lab.name.as_str()));
        let defaults = &yaml["topology"]["defaults"];
        let found = ["kind", "image", "network-mode"].map(|key| defaults[key].as_str().unwrap());
        assert_eq!(found, ["linux", IMAGE, "none"]);
        let nodes = yaml["topology"]["nodes"].as_hash().unwrap();
        let names: Vec<&str> = nodes.keys().map(|name| name.as_str().unwrap()).collect();
        let expected: Vec<&str> = lab.nodes.iter().map(|node| node.name.as_str()).collect();
        assert_eq!(names, expected);
        let links = yaml["topology"]["links"].as_vec().unwrap();
        assert_eq!(links.len(), lab.links.len());
        let mut interfaces = BTreeSet::new();
        for (link, own) in links.iter().zip(&lab.links) {
            assert_eq!(link["type"].as_str(), Some("veth"));
            assert_eq!(link["mtu"].as_i64(), Some(i64::from(own.mtu)), "{}", own.name);
            for (endpoint, end) in link["endpoints"].as_vec().unwrap().iter().zip(&own.ends) {
                let [node, interface, mac] = ["node", "interface", "mac"].map(|key| endpoint[key].as_str().unwrap());
                assert_eq!((node, interface), (lab.nodes[end.node].name.as_str(), end.interface.as_str()));
                assert!(nodes.contains_key(&Yaml::String(node.to_owned())), "{}: {node}", lab.name);
                assert!(interfaces.insert((node, interface)), "{}: {node} {interface} twice", lab.name);
                assert!(interfaces.insert(("", mac)), "{}: {mac} twice", lab.name);
            }
        }
    }
}

/// Kernels and shells in containers get the settings of the lab's own namespaces.
#[test]
fn containers_have_addresses_routes_and_settings() {
    for lab in labs().0 {
        let files = exported(&lab);
        let yaml = yaml(&lab, &files);
        for (position, node) in lab.nodes.iter().enumerate() {
            let section = &yaml["topology"]["nodes"][node.name.as_str()];
            let exec = strings(&section["exec"]);
            for line in &exec {
                assert!(line.chars().all(|c| !"$\"'`\\\n;&|<>".contains(c)), "{}: {line}", node.name);
            }
            for address in &node.addresses {
                let line = format!("ip addr add {address}/128 dev ");
                assert_eq!(exec.iter().filter(|exec| exec.starts_with(&line)).count(), 1, "{}: {line}", node.name);
            }
            for (link, end, _) in lab.ends_of(position) {
                assert!(exec.iter().any(|line| line.starts_with(&format!("ethtool -K {} ", end.interface))));
                let shaper = exec.iter().any(|line| line.starts_with(&format!("tc qdisc add dev {} ", end.interface)));
                assert_eq!(shaper, lab.links[link].is_shaped());
            }
            let script = |line: &String| line.strip_prefix("sh /etc/srdma/").map(str::to_owned);
            for name in exec.iter().filter_map(script) {
                text(&files, &format!("{}/{name}", node.name));
            }
            let sysctls = &section["sysctls"];
            assert_eq!(sysctls["net.ipv6.conf.all.disable_ipv6"].as_str(), Some("0"));
            let forwarding = if node.kind.is_host() { "0" } else { "1" };
            assert_eq!(sysctls["net.ipv6.conf.all.forwarding"].as_str(), Some(forwarding));
            for (key, value) in &node.sysctls {
                assert_eq!(sysctls[key.as_str()].as_str(), Some(value.as_str()), "{}: {key}", node.name);
            }
            let has_files = files.iter().any(|file| file.path.starts_with(&node.name));
            let binds = format!("{}:/etc/srdma:ro", node.name);
            if has_files {
                assert_eq!(section["binds"][0].as_str(), Some(binds.as_str()));
            } else {
                assert!(section["binds"].is_badvalue(), "{}: nothing to bind", node.name);
            }
            let is_controller = lab.controller.as_ref().is_some_and(|plan| plan.node == position);
            let command = match node.kind {
                Kind::Srdma { .. } => "srdma node --config /etc/srdma/node.toml",
                _ if is_controller => CONTROLLER,
                _ => "sleep infinity",
            };
            assert_eq!(section["cmd"].as_str(), Some(command));
        }
    }
}

const CONTROLLER: &str = "srdma controller run --config /etc/srdma/controller.toml --store /run/srdma/controller.store";

/// The controller has the digest of the token that all others have.
#[test]
fn containers_have_the_files_of_the_controller() {
    let lab = topology("figure1-controller");
    let files = exported(&lab);
    let token = text(&files, "N6/token");
    let configuration: toml::Table = text(&files, "C/controller.toml").parse().unwrap();
    let digest = hex::encode(Sha256::digest(token));
    assert_eq!(configuration["token"][0]["sha256"].as_str(), Some(digest.as_str()));
    assert_eq!(configuration["listen"][0].as_str(), Some("[::]:8470"));
    assert_eq!(configuration["tls"]["key"].as_str(), Some("/etc/srdma/key.pem"));
    assert!(!text(&files, "C/controller.toml").contains(token));
    for node in &lab.nodes {
        assert_eq!(text(&files, &format!("{}/token", node.name)), token);
        let certificate = text(&files, &format!("{}/certificate.pem", node.name));
        assert_eq!(certificate, text(&files, "C/certificate.pem"));
        let has_key = files.iter().any(|file| file.path == Path::new(&node.name).join("key.pem"));
        assert_eq!(has_key, node.name == "C");
    }
    let directory = tempfile::tempdir().unwrap();
    for file in &files {
        file.write(directory.path()).unwrap();
        let mode = fs::metadata(directory.path().join(&file.path)).unwrap().permissions().mode();
        let is_secret = ["token", "key.pem", "node.toml"].iter().any(|name| file.path.ends_with(name));
        assert_eq!(mode & 0o077 == 0, is_secret, "{}", file.path.display());
    }
    let beside = Source::find("figure1-controller").unwrap().text.replace("node = \"C\"", "node = \"N6\"");
    let beside = Topology::parse(Path::new("beside.toml"), &beside).unwrap();
    let error = export(&beside, &beside.transfer, IMAGE).unwrap_err();
    assert!(matches!(&error, LabError::Export(ExportError::Controller { node, .. }) if node == "N6"), "{error}");
    assert!(error.to_string().contains("a container has one command: give it a node of kind router"), "{error}");
}

#[test]
fn every_node_file_is_accepted_by_a_node() {
    for lab in labs().0 {
        for (operation, lists) in [(Operation::Write, Lists::Tlv), (Operation::Send, Lists::Provisioned)] {
            let transfer = srdma_lab::topology::Transfer { operation, lists, ..lab.transfer.clone() };
            let files = export(&lab, &transfer, IMAGE).unwrap();
            for (position, node) in lab.nodes.iter().enumerate() {
                if !matches!(node.kind, Kind::Srdma { .. }) {
                    continue;
                }
                let text = text(&files, &format!("{}/node.toml", node.name));
                let facts: BTreeMap<String, InterfaceFacts> = lab
                    .ends_of(position)
                    .map(|(link, end, _)| {
                        let mac = srdma_wire::MacAddress([2, 0, 0, 0, position as u8, link as u8]);
                        let link_mtu = lab.links[link].mtu as u16;
                        (end.interface.clone(), InterfaceFacts { mac, addresses: Vec::new(), link_mtu })
                    })
                    .collect();
                let configuration = Configuration::parse_for(Path::new("node.toml"), text, Purpose::Interfaces(&facts));
                let configuration = configuration.unwrap_or_else(|error| panic!("{} {error}\n{text}", lab.name));
                configuration.node().unwrap_or_else(|error| panic!("{} {error}\n{text}", lab.name));
                let file: NodeFile = toml::from_str(text).unwrap();
                let written = [file.to_toml().unwrap(), NodeFile::of(&configuration.spec).to_toml().unwrap()];
                for text in written {
                    let again = Configuration::parse_for(Path::new("node.toml"), &text, Purpose::Interfaces(&facts));
                    let again = again.unwrap_or_else(|error| panic!("{} {error}\n{text}", lab.name));
                    assert_eq!(again.spec.entries, configuration.spec.entries, "{}", lab.name);
                }
                for (link, end, _) in lab.ends_of(position) {
                    let port = format!("driver = \"af_packet\"\nname = \"{}\"\n", end.interface);
                    assert_eq!(text.contains(&port), lab.links[link].is_shaped(), "{text}");
                }
            }
        }
    }
}

/// The option of this name in a command line of the script.
fn option<'s>(line: &'s str, name: &str) -> &'s str {
    let words = line.split(' ');
    let mut values = words.filter_map(|word| word.strip_prefix(name)?.strip_prefix('='));
    values.next_back().unwrap_or_else(|| panic!("{line} has no {name}"))
}

fn hexadecimal(text: &str) -> u32 {
    u32::from_str_radix(text.strip_prefix("0x").unwrap(), 16).unwrap()
}

/// The nodes' configuration of receivers equals the receivers' own.
#[test]
fn receivers_have_the_parameters_of_the_node_files() {
    let lab = topology("figure1");
    let files = exported(&lab);
    let script = text(&files, "transfer.sh");
    let receivers: Vec<&str> = script.lines().filter(|line| line.starts_with("receive ")).collect();
    assert_eq!(receivers.len(), 5);
    let group = lab.group.as_ref().unwrap();
    for (line, receiver) in receivers.into_iter().zip(&group.receivers) {
        let own = &lab.nodes[receiver.node];
        assert!(
            line.starts_with(&format!("receive {0} clab-figure1-{0} srdma recv --peer={1} ", own.name, group.proxy))
        );
        let edge = &lab.nodes[group.tree[receiver.edge].node].name;
        let node: toml::Table = toml::from_str(text(&files, &format!("{edge}/node.toml"))).unwrap();
        let root: toml::Table = toml::from_str(text(&files, "N6/node.toml")).unwrap();
        let address = toml::Value::String(own.addresses[0].to_string());
        let known = |list: &toml::Value| {
            let entries = list["receiver"].as_array().unwrap().clone();
            entries.into_iter().find(|entry| entry["address"] == address)
        };
        let headend = root["group"][0]["headend"]["list"].as_array().unwrap();
        let entries = [known(&node["group"][0]), headend.iter().find_map(known)];
        assert!(entries.iter().any(|entry| entry.is_some()), "no group names {}", own.name);
        for entry in entries.into_iter().flatten() {
            assert_eq!(entry["qpn"].as_integer(), Some(i64::from(hexadecimal(option(line, "--qpn")))));
            let rkey: i64 = option(line, "--rkey").parse().unwrap();
            let base: i64 = option(line, "--virtual-address").parse().unwrap();
            if entry.get("rkey").is_some() {
                assert_eq!((entry["rkey"].as_integer(), entry["base"].as_integer()), (Some(rkey), Some(base)));
            }
        }
    }
    let file: GroupFile = toml::from_str(text(&files, "S1/group.toml")).unwrap();
    assert_eq!((file.proxy, file.designated_qpn), (group.proxy, group.designated_qpn));
    let source = script.lines().find(|line| line.starts_with("begin S1.source clab-figure1-S1 srdma send ")).unwrap();
    assert_eq!(option(source, "--group"), "/etc/srdma/group.toml");
    assert_eq!(option(source, "--op"), "write");
}

#[test]
fn sources_have_the_parameters_of_their_receivers() {
    for lab in labs().0.into_iter().filter(|lab| lab.group.is_none()) {
        let files = exported(&lab);
        if lab.controlled_group().is_some() {
            continue;
        }
        // A lab whose groups are created elsewhere has no transfer of its own.
        if lab.pairs.is_empty() {
            assert!(!files.iter().any(|file| file.path == Path::new("transfer.sh")), "{}", lab.name);
            continue;
        }
        let script = text(&files, "transfer.sh");
        let receivers = script.lines().filter(|line| line.starts_with("receive "));
        let mut count = 0;
        for (line, pair) in receivers.zip(&lab.pairs) {
            let source = &lab.nodes[pair.source].name;
            let info = PeerInfo::parse(text(&files, &format!("{source}/peer-info.json"))).unwrap();
            assert_eq!(info.address, pair.address);
            assert_eq!(option(line, "--address"), pair.address.to_string());
            assert_eq!(info.qpn.get(), hexadecimal(option(line, "--qpn")));
            assert_eq!(info.rkey.to_string(), option(line, "--rkey"));
            assert_eq!(info.virtual_address.to_string(), option(line, "--virtual-address"));
            assert_eq!(info.peer_qpn.unwrap().get(), hexadecimal(option(line, "--peer-qpn")));
            let sends = format!("begin {source}.source clab-{}-{source} srdma send ", lab.name);
            let sends = script.lines().find(|line| line.starts_with(&sends)).unwrap();
            assert_eq!(option(sends, "--peer-info"), "/etc/srdma/peer-info.json");
            count += 1;
        }
        assert_eq!(count, lab.pairs.len(), "{}", lab.name);
    }
}

/// The script has the controller create the group, and hosts get its number.
#[test]
fn hosts_of_a_controller_get_its_group() {
    let lab = topology("figure1-controller");
    let transfer = srdma_lab::topology::Transfer { lists: Lists::Provisioned, ..lab.transfer.clone() };
    let files = export(&lab, &transfer, IMAGE).unwrap();
    let script = text(&files, "transfer.sh");
    let create = script.lines().find(|line| line.starts_with("group=$(groups create --json ")).unwrap();
    assert_eq!((option(create, "--source"), option(create, "--proxy")), ("2001:db8:aa::1", "2001:db8:cc::1"));
    assert!(create.contains(r#""lists":"provisioned""#), "{create}");
    let receivers: Vec<&str> = script.lines().filter(|line| line.starts_with("receive ")).collect();
    assert_eq!(receivers.len(), 5);
    let source = script.lines().find(|line| line.starts_with("begin S1.source clab-figure1-controller-S1 ")).unwrap();
    assert!(source.contains(" --receivers=5 --commit"), "{source}");
    for line in receivers.into_iter().chain([source]) {
        assert!(line.contains(r#" '--group=https://[2001:db8:ff:c::1]:8470/'"$group"'' "#), "{line}");
        assert_eq!(option(line, "--token-file"), "/etc/srdma/token");
        assert_eq!(option(line, "--ca"), "/etc/srdma/certificate.pem");
        assert!(!line.contains(" --peer") && !line.contains(" --psn"), "{line}");
    }
    let places = ["ready clab-figure1-controller-N6 sh -c ", "group=$(", "receive R5 ", "begin S1", "groups close "];
    let places = places.map(|place| script.find(&format!("\n{place}")).unwrap_or_else(|| panic!("{place}: {script}")));
    assert!(places.is_sorted(), "{script}");
    assert!(!files.iter().any(|file| file.path.ends_with("group.toml")));
}

#[test]
fn an_image_is_a_name() {
    let lab = topology("usid");
    for image in ["", "two words", "x\ny", "$(reboot)"] {
        let error = export(&lab, &lab.transfer, image).unwrap_err();
        assert!(matches!(&error, LabError::Export(ExportError::Image(name)) if name == image), "{error}");
    }
    let files = export(&lab, &lab.transfer, "registry.example:5000/srdma@sha256:00").unwrap();
    assert_eq!(
        yaml(&lab, &files)["topology"]["defaults"]["image"].as_str(),
        Some("registry.example:5000/srdma@sha256:00")
    );
}

/// Names that YAML would interpret, also as numbers, are quoted.
#[test]
fn names_are_quoted() {
    let node = |name: &str| format!("[[node]]\nname = \"{name}\"\nkind = \"router\"\n");
    let names = ["no", "null", "true", "E1", "NaN"];
    let nodes: String = names.iter().map(|name| node(name)).collect();
    let lab = Topology::parse(Path::new("yes.toml"), &format!("description = \"names: # odd\"\n{nodes}")).unwrap();
    let files = exported(&lab);
    let yaml = yaml(&lab, &files);
    assert_eq!(yaml["name"].as_str(), Some("yes"));
    let found: Vec<&str> =
        yaml["topology"]["nodes"].as_hash().unwrap().keys().map(|name| name.as_str().unwrap()).collect();
    assert_eq!(found, names);
    assert!(!files.iter().any(|file| file.path == Path::new("transfer.sh")), "there is nothing to transfer");
}
