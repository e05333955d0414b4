//! Configuration and command.

use crate::FabricReport;
use srdma_report::units::{grouped, rate, time};
use srdma_report::{Block, Section};
use std::collections::BTreeMap;

pub(super) fn section(experiment: &FabricReport<'_>) -> Section {
    let blocks = vec![
        Block::Text("The same command gives the same results on every machine:".to_owned()),
        Block::Code(experiment.provenance.command.clone()),
        fabric(experiment),
        variants(experiment),
        Block::Folded("All runs".to_owned(), vec![runs(experiment)]),
        Block::Folded("The scenario file".to_owned(), vec![Block::Code(experiment.provenance.file_text.to_owned())]),
    ];
    let lead = "All parameters that determine the results, and the command that reproduces them.";
    Section::new("Configuration", lead, blocks)
}

fn fabric(experiment: &FabricReport<'_>) -> Block {
    let scenario = experiment.scenario;
    let topology = &scenario.topology;
    let mut speeds: BTreeMap<(u64, u64), usize> = BTreeMap::new();
    for link in topology.links() {
        *speeds.entry((link.rate_bits_per_s, link.delay_ns)).or_default() += 1;
    }
    let mut rows = vec![
        ["hosts".to_owned(), grouped(topology.hosts().len() as u64)],
        ["switches".to_owned(), format!("{} in {} tiers", topology.switches().len(), topology.tiers())],
    ];
    rows.extend(speeds.into_iter().map(|((rate_bits_per_s, delay_ns), links)| {
        [format!("{links} links"), format!("{}, {}", rate(rate_bits_per_s), time(delay_ns))]
    }));
    let (switches, hosts) = (&scenario.switches, &scenario.hosts);
    rows.extend([
        ["path MTU".to_owned(), format!("{} octets", hosts.path_mtu().octets())],
        ["queue limit".to_owned(), format!("{} octets", grouped(switches.queue_limit_octets.get()))],
        ["duration".to_owned(), time(scenario.measures.duration_us.get() * 1000)],
    ]);
    Block::table("Fabric", &["", "value"], rows.into_iter().map(Vec::from).collect())
}

fn variants(experiment: &FabricReport<'_>) -> Block {
    let scenario = experiment.scenario;
    let row = |variant: &crate::scenario::Variant| {
        let ecn = variant.ecn.unwrap_or(scenario.switches.ecn);
        let pfc = variant.pfc_thresholds.unwrap_or(scenario.switches.pfc);
        let notification = variant.notification.unwrap_or(scenario.switches.notification);
        let pfc = if variant.pfc {
            format!("{} / {}", grouped(pfc.xoff_octets.get()), grouped(pfc.xon_octets.get()))
        } else {
            "off".to_owned()
        };
        let (k_min, k_max) = (grouped(ecn.k_min_octets.get()), grouped(ecn.k_max_octets.get()));
        vec![
            variant.title().to_owned(),
            variant.name.clone(),
            format!("{:?}", variant.signal),
            format!("{:?}", variant.control),
            pfc,
            format!("{k_min} / {k_max}, {}", ecn.p_max.get()),
            grouped(notification.threshold_octets.get()),
        ]
    };
    let columns = [
        "variant",
        "name",
        "signal",
        "control",
        "PFC: XOFF / XON, octets",
        "ECN: Kmin / Kmax, octets, Pmax",
        "Fast CNP from, octets",
    ];
    Block::table("Variants", &columns, scenario.variants.iter().map(row).collect())
}

fn runs(experiment: &FabricReport<'_>) -> Block {
    let row = |run: &crate::VariantResult| {
        vec![
            run.title.clone(),
            run.seed.to_string(),
            time(run.simulated_ns),
            grouped(run.packet_hops),
            grouped(run.flows.len() as u64),
            grouped(run.summary.unfinished),
        ]
    };
    let columns = ["variant", "seed", "simulated", "packet-hops", "flows", "unfinished"];
    Block::table("All runs", &columns, experiment.results.runs.iter().map(row).collect())
}
