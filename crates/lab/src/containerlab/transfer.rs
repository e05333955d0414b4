//! The lab's transfer by hosts whose queue pairs and memory are known before they run.

use super::{ExportedFile, FILES, access, container, quoted, socket};
use crate::error::{LabError, Result};
use crate::group::{self, Member, REGION_BASE as SOURCE_BASE, REGION_RKEY, address};
use crate::host::{GroupAtController, Terms};
use crate::plan::Plan;
use crate::software::{self, Peer, SOURCE_QPN};
use crate::topology::{ControlledGroup, ControllerPlan, Kind, Operation, Topology, Transfer};
use srdma_group::{Group, Policy, ReceiverRegion};
use srdma_host::PeerInfo;
use srdma_wire::Qpn;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The memory of the receiver of rank 0, if there were one; those of the others follow in steps.
const REGION_BASE: u64 = 0x2000_0000_0000;

/// From a receiver's memory to the next one's: as in separate hosts, all are different, and none is at the address that
/// the source uses (D27).
const REGION_STEP: u64 = 1 << 40;

/// One transfer: from a source to a group, or to one receiver.
pub(super) struct Planned {
    plan: Plan,
    terms: Terms,
    /// The file in which the source finds its peer; a controller's group is requested.
    pub(super) peer: Option<ExportedFile>,
}

/// Queue pair and address of the receiver of a rank.
fn member(rank: usize) -> Result<Member> {
    let unexpected = || LabError::Group(format!("there is no queue pair for receiver {rank}"));
    let qpn = u32::try_from(software::receiver_qpn(rank)).ok().and_then(Qpn::new).ok_or_else(unexpected)?;
    Ok(Member { qpn, region: Some(ReceiverRegion { base: base(rank), rkey: u32::from(key(rank)) }) })
}

fn base(rank: usize) -> u64 {
    REGION_BASE + rank as u64 * REGION_STEP
}

/// The key of a receiver's memory is its own business, and may be that of another's.
fn key(rank: usize) -> u8 {
    rank as u8
}

/// The group of a lab that has one.
pub(super) fn group(topology: &Topology, transfer: &Transfer) -> Result<Option<Group>> {
    let Some(plan) = &topology.group else {
        return Ok(None);
    };
    let members = (1..=plan.receivers.len()).map(member).collect::<Result<Vec<_>>>()?;
    let source = Qpn::new(SOURCE_QPN).ok_or_else(|| LabError::Group("the source has no queue pair".to_owned()))?;
    group::group(topology, plan, transfer, source, &members).map(Some)
}

/// All transfers of a lab.
pub(super) fn all(topology: &Topology, transfer: &Transfer) -> Result<Vec<Planned>> {
    let plans = Plan::all(topology)?.into_iter().map(|plan| {
        let patience = Duration::from_secs(transfer.timeout_s);
        let mut terms = plan.terms(topology, PathBuf::from("srdma"), transfer.clone(), patience);
        terms.at_controller = controlled(topology).map(|(controller, group)| GroupAtController {
            url: format!("{}/{GROUP_NUMBER}", controller.url()),
            access: access(controller),
            receivers: group.receivers.len(),
        });
        let directory = Path::new(&topology.nodes[plan.source].name);
        let file = |name: &str, text| ExportedFile::new(directory.join(name), text);
        let peer = match (&terms.destination, &terms.at_controller) {
            (Some(_), _) => Some(file("peer-info.json", peer_info(topology, &plan, &terms)?)),
            (None, Some(_)) => None,
            (None, None) => Some(file("group.toml", software::group_file(topology, &terms)?)),
        };
        Ok(Planned { plan, terms, peer })
    });
    plans.collect()
}

/// The controller, and the group that it is to create.
fn controlled(topology: &Topology) -> Option<(&ControllerPlan, &ControlledGroup)> {
    topology.controller.as_ref().zip(topology.controlled_group())
}

/// Placeholder of the group number in a URL, replaced by the script.
const GROUP_NUMBER: &str = "{group}";

/// The peer information of the one receiver of a transfer.
fn peer_info(topology: &Topology, plan: &Plan, terms: &Terms) -> Result<String> {
    let name = &topology.nodes[plan.source].name;
    let no_receivers = || LabError::Group(format!("{name} has no receivers"));
    let (rank, _) = *plan.receivers.first().ok_or_else(no_receivers)?;
    let Member { qpn, .. } = member(rank)?;
    let info = PeerInfo {
        address: terms.destination.as_ref().map(|destination| destination.address).ok_or_else(no_receivers)?,
        qpn,
        rkey: u32::from(key(rank)),
        virtual_address: base(rank),
        path_mtu: terms.transfer.path_mtu,
        size: Some(terms.transfer.size_octets),
        psn: Some(terms.sender.first_psn),
        peer_address: Some(terms.sender.address),
        peer_qpn: Some(terms.sender.qpn),
        window: None,
    };
    let line = info.line().map_err(|error| LabError::Unexpected { who: name.clone(), problem: error.to_string() })?;
    Ok(line + "\n")
}

/// `transfer.sh`.
pub(super) fn script(topology: &Topology, transfers: &[Planned]) -> Result<String> {
    let [create, close] = match controlled(topology) {
        Some((controller, group)) => of_controller(topology, controller, group, transfers)?,
        None => [String::new(), String::new()],
    };
    let nodes = topology.nodes.iter().enumerate().filter(|(_, node)| matches!(node.kind, Kind::Srdma { .. }));
    let ready = nodes.map(|(position, node)| {
        let (container, socket) = (container(topology, position), socket(&node.name));
        format!("ready {container} test -S {}\n", socket.display())
    });
    let receivers = transfers.iter().flat_map(|transfer| {
        transfer.plan.receivers.iter().map(|(rank, node)| {
            let mut words = software::recv_command(&transfer.terms, *rank);
            words.push(format!("--rkey={}", key(*rank)));
            words.push(format!("--virtual-address={}", base(*rank)));
            let destination = transfer.terms.destination.as_ref();
            let name = destination.map_or(&topology.nodes[*node].name, |destination| &destination.process);
            line(topology, "receive", *node, name, words)
        })
    });
    let sources = transfers.iter().map(|Planned { plan, terms, peer }| {
        let file = peer.iter().map(|peer| Path::new(FILES).join(peer.path.file_name().unwrap_or_default())).next();
        let mut words = match (&terms.at_controller, file.unwrap_or_default()) {
            (Some(group), _) => software::send_command(terms, &Peer::AtController(group.clone())),
            (None, file) if terms.destination.is_some() => software::send_command(terms, &Peer::Receiver(file)),
            (None, file) => software::send_command(terms, &Peer::Group(file)),
        };
        // No other process commits the group at the nodes.
        words.extend(terms.at_controller.iter().map(|_| "--commit".to_owned()));
        let name = format!("{}.source", topology.nodes[plan.source].name);
        line(topology, "begin", plan.source, &name, words)
    });
    let lines: Vec<String> =
        ready.chain([create]).chain(receivers).chain(["all_listen\n".to_owned()]).chain(sources).collect();
    let text = SCRIPT.replace("{name}", &topology.name).replace("{lines}", &lines.concat()).replace("{close}", &close);
    // The word that contains it is quoted.
    Ok(text.replace(GROUP_NUMBER, r#"'"$group"'"#))
}

/// The lines that create the group when the nodes have greeted the controller, and those that close it.
fn of_controller(
    topology: &Topology,
    controller: &ControllerPlan,
    group: &ControlledGroup,
    transfers: &[Planned],
) -> Result<[String; 2]> {
    let has_greeted = format!("srdma status --json --config {FILES}/node.toml | grep -q '\"is_reached\": *true'");
    let takes_groups = topology.nodes.iter().enumerate().filter(|(_, node)| match &node.kind {
        Kind::Srdma { config } => config.contains_key("controller"),
        Kind::Router | Kind::Endpoint | Kind::Guest => false,
    });
    let greeted =
        takes_groups.map(|(node, _)| format!("ready {} sh -c {}\n", container(topology, node), quoted(&has_greeted)));
    let mut create = greeted.collect::<String>();
    let access = access(controller);
    let to_controller = format!(
        "docker exec {} srdma group \"$@\" {} --token-file {} --ca {}",
        container(topology, controller.node),
        quoted(&format!("--controller={}", access.url)),
        access.token_file.display(),
        access.ca_file.display()
    );
    create += &format!("groups() {{\n    {to_controller}\n}}\n");
    for Planned { terms, .. } in transfers {
        let Transfer { size_octets, path_mtu, operation, lists, .. } = terms.transfer;
        let lists = serde_json::to_string(&Policy { lists: group::list_mode(lists), ..Policy::default() });
        let policy = lists.map_err(|error| LabError::Group(error.to_string()))?;
        let mut words = vec![
            "create --json".to_owned(),
            format!("--source={}", address(topology, group.source)?.to_canonical()),
            format!("--source-qpn={SOURCE_QPN:#x}"),
            format!("--proxy={}", group.proxy.to_canonical()),
            format!("--designated-qpn={:#x}", group.designated_qpn.get()),
            format!("--psn={:#x}", group.initial_psn.get()),
            format!("--path-mtu={path_mtu}"),
            quoted(&format!("--policy={policy}")),
        ];
        if operation == Operation::Write {
            words.push(format!("--region={SOURCE_BASE:#x},{size_octets},{REGION_RKEY:#x}"));
        }
        create += &format!("group=$(groups {} | sed -n 's/^{{\"id\":\\([0-9]*\\),.*/\\1/p')\n", words.join(" "));
        create += "[ -n \"$group\" ] || { echo \"the controller has created no group\" >&2; exit 1; }\n";
    }
    Ok([create, CLOSE.to_owned()])
}

/// Another run of the script may have the same addresses.
const CLOSE: &str = r#"groups close "$group" > results/close
groups watch "$group" --until closed --timeout 30s > results/close
"#;

/// A line of the script that starts a host's process: the function, the file of results, the container, the command.
fn line(topology: &Topology, function: &str, node: usize, name: &str, words: Vec<String>) -> String {
    let own = &topology.nodes[node];
    let words: Vec<String> = words.iter().chain(&own.options).map(|word| quoted(word)).collect();
    format!("{function} {name} {} {}\n", container(topology, node), words.join(" "))
}

/// A receiver prints two lines of JSON, the address of its memory and the result; a source only the second.
const SCRIPT: &str = r#"#!/bin/sh
# The transfer of lab {name}: receivers first, then sources. What each says is kept in results/NAME.
set -eu
cd "$(dirname "$0")"
mkdir -p results
started=""

# Waits until a command succeeds in a container.
ready() {
    container=$1
    shift
    tries=300
    until docker exec "$container" "$@"; do
        tries=$((tries - 1))
        [ $tries -gt 0 ] || { echo "$container is not ready: docker logs $container" >&2; exit 1; }
        sleep 0.1
    done
}

# Runs a command in a container, and notes its process.
begin() {
    name=$1
    container=$2
    shift 2
    docker exec "$container" "$@" > "results/$name" 2> "results/$name.log" &
    started="$started $name:$!"
}

listening=""
receive() {
    listening="$listening $1"
    begin "$@"
}

# Waits until each receiver has said where its memory is.
all_listen() {
    for name in $listening; do
        tries=300
        until [ -s "results/$name" ]; do
            tries=$((tries - 1))
            [ $tries -gt 0 ] || { cat "results/$name.log" >&2; exit 1; }
            sleep 0.1
        done
    done
}

{lines}
code=0
for part in $started; do
    name=${part%%:*}
    if wait "${part##*:}"; then
        echo "$name: $(tail -n 1 "results/$name")"
    else
        echo "$name: FAILED: $(tail -n 1 "results/$name") $(cat "results/$name.log")"
        code=1
    fi
done
{close}exit $code
"#;
