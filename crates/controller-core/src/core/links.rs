//! Number of groups on each link of the network.

use srdma_group::Record;
use std::collections::BTreeMap;
use std::net::Ipv6Addr;

/// A link by the loopbacks of its ends, the lower first.
pub(super) type Link = (Ipv6Addr, Ipv6Addr);

/// Groups on links.
#[derive(Clone, Debug, Default)]
pub(super) struct Load(BTreeMap<Link, u32>);

impl Load {
    /// Replaces the links of a group's tree.
    pub(super) fn replace(&mut self, from: &[Link], to: &[Link]) {
        for link in to {
            *self.0.entry(*link).or_default() += 1;
        }
        for link in from {
            if let Some(groups) = self.0.get_mut(link) {
                *groups -= 1;
                if *groups == 0 {
                    self.0.remove(link);
                }
            }
        }
    }

    /// Number of groups that a link carries.
    pub(super) fn of(&self, link: Link) -> u32 {
        self.0.get(&link).copied().unwrap_or(0)
    }
}

/// The links of a record's tree.
pub(super) fn links_of(record: &Record) -> Vec<Link> {
    let nodes = record.tree.nodes();
    let link = |node: &srdma_group::TreeNode| {
        let above = nodes.get(node.parent?.0)?;
        Some((node.loopback.min(above.loopback), node.loopback.max(above.loopback)))
    };
    nodes.iter().filter_map(link).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_without_groups_are_removed() {
        let node = |number| Ipv6Addr::new(0x2001, 0xdb8, 0xff, number, 0, 0, 0, 1);
        let [a, b, c] = [(node(1), node(2)), (node(2), node(3)), (node(1), node(3))];
        let mut load = Load::default();
        load.replace(&[], &[a, b]);
        load.replace(&[], &[b, c]);
        assert_eq!([a, b, c].map(|link| load.of(link)), [1, 2, 1]);
        load.replace(&[a, b], &[c]);
        assert_eq!([a, b, c].map(|link| load.of(link)), [0, 1, 2]);
        load.replace(&[b, c], &[]);
        load.replace(&[c], &[]);
        assert!(load.0.is_empty());
    }
}
