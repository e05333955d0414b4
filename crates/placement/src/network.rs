//! Flow networks with bounds below and above, and an integral flow that respects them (Dinic 1970).

use std::collections::VecDeque;

/// An edge with what it may still carry; the edge back is its neighbour, at the number with the last bit inverted.
#[derive(Clone, Copy)]
struct Edge {
    to: u32,
    room: u32,
}

/// A network in which what flows into a node flows out of it.
pub(crate) struct Network {
    edges: Vec<Edge>,
    /// For each node the numbers of the edges that leave it.
    leaving: Vec<Vec<u32>>,
    /// Flow into each node by lower bounds.
    surplus: Vec<i64>,
}

impl Network {
    pub(crate) fn new(nodes: usize) -> Self {
        // Two more: where surplus comes from, and where deficits go.
        Network { edges: Vec::new(), leaving: vec![Vec::new(); nodes + 2], surplus: vec![0; nodes] }
    }

    /// Adds an edge that carries at least `low` and at most `high`, and returns its number.
    pub(crate) fn add(&mut self, from: usize, to: usize, low: u32, high: u32) -> usize {
        self.surplus[to] += i64::from(low);
        self.surplus[from] -= i64::from(low);
        self.edge(from, to, high - low)
    }

    fn edge(&mut self, from: usize, to: usize, room: u32) -> usize {
        let number = self.edges.len();
        self.edges.push(Edge { to: to as u32, room });
        self.edges.push(Edge { to: from as u32, room: 0 });
        self.leaving[from].push(number as u32);
        self.leaving[to].push(number as u32 + 1);
        number
    }

    /// Finds a flow within all bounds; `false` if none exists.
    pub(crate) fn solve(&mut self) -> bool {
        let nodes = self.surplus.len();
        let (source, sink) = (nodes, nodes + 1);
        let mut wanted = 0;
        for node in 0..nodes {
            let surplus = self.surplus[node];
            let amount = surplus.unsigned_abs() as u32;
            if surplus > 0 {
                self.edge(source, node, amount);
                wanted += u64::from(amount);
            } else if surplus < 0 {
                self.edge(node, sink, amount);
            }
        }
        let mut found = 0;
        while let Some(levels) = self.levels(source, sink) {
            let mut next = vec![0; self.leaving.len()];
            while let Some(amount) = self.augment(source, sink, &levels, &mut next) {
                found += u64::from(amount);
            }
        }
        found == wanted
    }

    /// Flow of an edge above its lower bound.
    pub(crate) fn above_low(&self, number: usize) -> u32 {
        self.edges[number ^ 1].room
    }

    /// The distance of every node from the source; `None` if the sink is out of reach.
    fn levels(&self, source: usize, sink: usize) -> Option<Vec<u32>> {
        let mut levels = vec![u32::MAX; self.leaving.len()];
        levels[source] = 0;
        let mut open = VecDeque::from([source]);
        while let Some(node) = open.pop_front() {
            for number in &self.leaving[node] {
                let Edge { to, room } = self.edges[*number as usize];
                if room > 0 && levels[to as usize] == u32::MAX {
                    levels[to as usize] = levels[node] + 1;
                    open.push_back(to as usize);
                }
            }
        }
        (levels[sink] != u32::MAX).then_some(levels)
    }

    /// Sends what it can along one shortest path. `next`: the edges of a node that were tried in vain.
    fn augment(&mut self, source: usize, sink: usize, levels: &[u32], next: &mut [usize]) -> Option<u32> {
        let mut path: Vec<u32> = Vec::new();
        let mut node = source;
        while node != sink {
            match self.leaving[node].get(next[node]).copied() {
                Some(number) => {
                    let Edge { to, room } = self.edges[number as usize];
                    if room > 0 && levels[to as usize] == levels[node] + 1 {
                        path.push(number);
                        node = to as usize;
                    } else {
                        next[node] += 1;
                    }
                }
                None => {
                    let number = path.pop()?;
                    node = self.edges[number as usize ^ 1].to as usize;
                    next[node] += 1;
                }
            }
        }
        let amount = path.iter().map(|number| self.edges[*number as usize].room).min()?;
        for number in path {
            self.edges[number as usize].room -= amount;
            self.edges[number as usize ^ 1].room += amount;
        }
        Some(amount)
    }
}
