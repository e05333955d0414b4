//! Max-min fair allocation by progressive filling: all rates grow together; a flow that reaches a full link keeps its
//! rate.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// A link that may be a bottleneck.
#[derive(Clone, Debug)]
pub(super) struct BottleneckLink {
    /// Unallocated capacity.
    pub(super) left: f64,
    /// The flows that use it, by their positions.
    pub(super) users: Vec<u32>,
    /// Number of these flows without a rate.
    pub(super) waiting: u32,
}

/// The demand of a flow.
#[derive(Clone, Debug)]
pub(super) struct Demand {
    /// Its rate without competition.
    pub(super) limit: f64,
    /// The bottleneck links that it uses, by their positions.
    pub(super) links: Vec<u32>,
    pub(super) rate: Option<f64>,
}

/// Allocates a rate to each flow.
pub(super) fn allocate(links: &mut [BottleneckLink], flows: &mut [Demand]) {
    let mut by_limit: Vec<u32> = (0..flows.len() as u32).collect();
    by_limit.sort_by(|one, other| flows[*one as usize].limit.total_cmp(&flows[*other as usize].limit));
    let mut by_limit = by_limit.into_iter().peekable();
    // Shares are not negative; the bits of such numbers are ordered like the numbers.
    let mut open: BinaryHeap<Reverse<(u64, u32)>> = BinaryHeap::new();
    open.extend((0..).zip(links.iter()).map(|(number, link)| Reverse((share(link).to_bits(), number))));
    loop {
        while by_limit.next_if(|flow| flows[*flow as usize].rate.is_some()).is_some() {}
        let limit = by_limit.peek().map_or(f64::INFINITY, |flow| flows[*flow as usize].limit);
        let Some(Reverse((bits, number))) = open.peek().copied().filter(|Reverse((bits, _))| *bits < limit.to_bits())
        else {
            let Some(flow) = by_limit.next() else { return };
            assign(links, flows, flow, limit);
            continue;
        };
        open.pop();
        let link = &links[number as usize];
        // Allocations since have increased the share of the others.
        let now = share(link);
        if now.to_bits() > bits {
            open.push(Reverse((now.to_bits(), number)));
            continue;
        }
        for flow in link.users.clone() {
            if flows[flow as usize].rate.is_none() {
                assign(links, flows, flow, now);
            }
        }
    }
}

/// Share of each flow without a rate at a link; infinite if there is none.
fn share(link: &BottleneckLink) -> f64 {
    if link.waiting == 0 { f64::INFINITY } else { link.left.max(0.0) / f64::from(link.waiting) }
}

fn assign(links: &mut [BottleneckLink], flows: &mut [Demand], flow: u32, rate: f64) {
    let flow = &mut flows[flow as usize];
    flow.rate = Some(rate);
    for link in &flow.links {
        let link = &mut links[*link as usize];
        link.left -= rate;
        link.waiting -= 1;
    }
}
