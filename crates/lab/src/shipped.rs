//! The labs that are part of the program.

/// A lab that is part of the program: the name of its file, and the file.
pub(crate) const LABS: &[(&str, &str)] = &[
    ("ai-backend", include_str!("../../../labs/ai-backend.toml")),
    ("ai-backend-steered", include_str!("../../../labs/ai-backend-steered.toml")),
    ("collapsed-spine", include_str!("../../../labs/collapsed-spine.toml")),
    ("eight-receivers", include_str!("../../../labs/eight-receivers.toml")),
    ("fast-cnp", include_str!("../../../labs/fast-cnp.toml")),
    ("figure1", include_str!("../../../labs/figure1.toml")),
    ("figure1-cm-rxe", include_str!("../../../labs/figure1-cm-rxe.toml")),
    ("figure1-controller", include_str!("../../../labs/figure1-controller.toml")),
    ("figure1-controller-rxe", include_str!("../../../labs/figure1-controller-rxe.toml")),
    ("figure1-ipv4-rxe", include_str!("../../../labs/figure1-ipv4-rxe.toml")),
    ("figure1-lossy", include_str!("../../../labs/figure1-lossy.toml")),
    ("figure1-lossy-rxe", include_str!("../../../labs/figure1-lossy-rxe.toml")),
    ("figure1-rxe", include_str!("../../../labs/figure1-rxe.toml")),
    ("group-hpcc", include_str!("../../../labs/group-hpcc.toml")),
    ("isis-frr", include_str!("../../../labs/isis-frr.toml")),
    ("kernel-transit", include_str!("../../../labs/kernel-transit.toml")),
    ("ospf-frr", include_str!("../../../labs/ospf-frr.toml")),
    ("pfc", include_str!("../../../labs/pfc.toml")),
    ("sr-policy", include_str!("../../../labs/sr-policy.toml")),
    ("srh-hmac", include_str!("../../../labs/srh-hmac.toml")),
    ("trimming", include_str!("../../../labs/trimming.toml")),
    ("usid", include_str!("../../../labs/usid.toml")),
    ("usid-kernel-ends", include_str!("../../../labs/usid-kernel-ends.toml")),
    ("wan", include_str!("../../../labs/wan.toml")),
    ("wan-isis", include_str!("../../../labs/wan-isis.toml")),
];

/// Their names.
pub fn names() -> impl Iterator<Item = &'static str> {
    LABS.iter().map(|(name, _)| *name)
}

/// The topology file of a shipped lab.
pub fn text(name: &str) -> Option<&'static str> {
    LABS.iter().find(|(other, _)| *other == name).map(|(_, text)| *text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::topology::Topology;
    use std::path::Path;

    #[test]
    fn every_shipped_lab_is_a_topology() {
        for (name, text) in LABS {
            let topology = Topology::parse(Path::new(&format!("{name}.toml")), text).unwrap();
            assert_eq!(topology.name, *name);
        }
    }
}
