//! Trees of the checks.

use crate::record::{Change, CommitOrder, Record};
use anyhow::bail;

/// A tree with a name, and its possible changes.
#[allow(missing_docs, reason = "the names say it")]
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shape {
    pub name: &'static str,
    /// Drawing.
    pub drawing: &'static str,
    /// Each node's parent; node 0 is the root.
    parents: &'static [Option<usize>],
    /// Each receiver's edge node; `None`: initially no member.
    edges: &'static [Option<usize>],
    /// Possible changes; if empty, all evictions are possible.
    changes: &'static [Change],
}

/// All shapes.
pub const SHAPES: [Shape; 10] = [
    Shape { name: "star2", drawing: "0(r0 r1)", parents: &[None], edges: &[Some(0), Some(0)], changes: &[] },
    Shape { name: "star3", drawing: "0(r0 r1 r2)", parents: &[None], edges: &[Some(0); 3], changes: &[] },
    Shape { name: "pair", drawing: "0(1(r0 r1))", parents: &[None, Some(0)], edges: &[Some(1), Some(1)], changes: &[] },
    Shape {
        name: "fork",
        drawing: "0(1(r0) 2(r1))",
        parents: &[None, Some(0), Some(0)],
        edges: &[Some(1), Some(2)],
        changes: &[],
    },
    Shape {
        name: "fork3",
        drawing: "0(1(r0 r1) 2(r2))",
        parents: &[None, Some(0), Some(0)],
        edges: &[Some(1), Some(1), Some(2)],
        changes: &[],
    },
    Shape {
        name: "chain",
        drawing: "0(1(2(r0 r1)))",
        parents: &[None, Some(0), Some(1)],
        edges: &[Some(2), Some(2)],
        changes: &[],
    },
    Shape {
        name: "three",
        drawing: "0(1(2(r0 r1)) 3(r2))",
        parents: &[None, Some(0), Some(1), Some(0)],
        edges: &[Some(2), Some(2), Some(3)],
        changes: &[],
    },
    Shape {
        name: "rehome",
        drawing: "0(1(3(r0) r1) 2(r2)), then 0(1(r1) 2(r2 3(r0)))",
        parents: &[None, Some(0), Some(0), Some(1)],
        edges: &[Some(3), Some(1), Some(2)],
        changes: &[Change::Rehome { node: 3, to: 2 }],
    },
    Shape {
        name: "move",
        drawing: "0(1(r0 r1) 2(r2)), then 0(1(r1) 2(r2 r0))",
        parents: &[None, Some(0), Some(0)],
        edges: &[Some(1), Some(1), Some(2)],
        changes: &[Change::Move { receiver: 0, to: 2 }, Change::Move { receiver: 0, to: 1 }],
    },
    Shape {
        name: "join",
        drawing: "0(1(r0) 2(r1)), then 0(1(r0) 2(r1 r2))",
        parents: &[None, Some(0), Some(0)],
        edges: &[Some(1), Some(2), None],
        changes: &[Change::Join { receiver: 2, edge: 2 }],
    },
];

impl Shape {
    /// The shape of this name.
    pub fn named(name: &str) -> anyhow::Result<&'static Shape> {
        let Some(shape) = SHAPES.iter().find(|shape| shape.name == name) else {
            let names: Vec<&str> = SHAPES.iter().map(|shape| shape.name).collect();
            bail!("there is no shape {name:?}; there are {}", names.join(", "));
        };
        Ok(shape)
    }

    /// Its records up to this number of changes, in order.
    pub(crate) fn records(&self, changes: u8, order: CommitOrder) -> Vec<Record> {
        let evictions: Vec<Change> = (0..self.edges.len()).map(Change::Evict).collect();
        let possible = if self.changes.is_empty() { &evictions } else { self.changes };
        let mut records = vec![Record::first(self.parents, self.edges)];
        let mut done = 0;
        while done < records.len() {
            if records[done].epoch < changes {
                let after = possible.iter().filter_map(|&change| records[done].after(change, done, order)).collect();
                let after: Vec<Record> = after;
                records.extend(after);
            }
            done += 1;
        }
        records
    }
}
