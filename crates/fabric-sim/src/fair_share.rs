//! Max-min fair rates of flows over time: the reference for victims.
//!
//! Flows are fluids on the links that their packets take, and at every instant the rates are max-min fair over all of
//! these: no flow can get more unless one that has no more gets less (Bertsekas and Gallager, "Data Networks", section
//! 6.5.2).

use super::flows::{FlowSize, PlannedFlow};

/// An active flow.
struct Active {
    number: usize,
    /// Octets left; `None` without end.
    left: Option<f64>,
    octets_per_ns: f64,
}

/// Octets that each flow has delivered by a time, in nanoseconds. `routes` has the positions of the links that each
/// flow takes, `octets_per_ns` how many octets of payload each link carries in a nanosecond. The flows are in the order
/// of their beginnings; there may be more of them than routes, and those take no part.
pub(super) fn delivered(flows: &[PlannedFlow], routes: &[Vec<usize>], octets_per_ns: &[f64], end_ns: u64) -> Vec<f64> {
    let flows = &flows[..routes.len().min(flows.len())];
    let mut delivered = vec![0.0; flows.len()];
    let mut active: Vec<Active> = Vec::new();
    let mut arrivals = flows.iter().enumerate().peekable();
    let (mut now, end) = (0.0_f64, end_ns as f64);
    while now < end {
        while let Some((number, flow)) = arrivals.next_if(|(_, flow)| flow.start_ns as f64 <= now) {
            let left = match flow.size {
                FlowSize::Octets(octets) => Some(f64::from(octets)),
                FlowSize::Messages { octets, .. } => Some(octets as f64),
                FlowSize::Endless(_) => None,
            };
            active.push(Active { number, left, octets_per_ns: 0.0 });
        }
        share(routes, octets_per_ns, &mut active);
        let begins = arrivals.peek().map_or(end, |(_, flow)| flow.start_ns as f64);
        let ends = active.iter().filter_map(|flow| Some(now + flow.left? / flow.octets_per_ns));
        let next = ends.fold(begins.min(end), f64::min);
        for flow in &mut active {
            let octets = (next - now) * flow.octets_per_ns;
            delivered[flow.number] += octets;
            flow.left = flow.left.map(|left| left - octets);
        }
        // Half an octet is less than any flow and more than rounding errors.
        active.retain(|flow| flow.left.is_none_or(|left| left > 0.5));
        now = next;
    }
    delivered
}

/// Assigns rates: the link with the least share per flow determines the rate of its flows, then the next link.
fn share(routes: &[Vec<usize>], octets_per_ns: &[f64], active: &mut [Active]) {
    let mut left = octets_per_ns.to_vec();
    let mut users = vec![0_u32; left.len()];
    for link in active.iter().flat_map(|flow| &routes[flow.number]) {
        users[*link] += 1;
    }
    let mut used: Vec<usize> = (0..users.len()).filter(|link| users[*link] > 0).collect();
    let mut undecided: Vec<usize> = (0..active.len()).collect();
    while !undecided.is_empty() {
        let share_of = |link: usize| left[link] / f64::from(users[link]);
        let Some(least) = used.iter().copied().min_by(|one, other| share_of(*one).total_cmp(&share_of(*other))) else {
            return;
        };
        let rate = share_of(least);
        undecided.retain(|place| {
            let flow = &mut active[*place];
            let route = &routes[flow.number];
            if !route.contains(&least) {
                return true;
            }
            flow.octets_per_ns = rate.max(f64::MIN_POSITIVE);
            for link in route {
                left[*link] = (left[*link] - rate).max(0.0);
                users[*link] -= 1;
            }
            false
        });
        used.retain(|link| users[*link] > 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::FlowKind;
    use srdma_fabric::HostId;

    fn flow(from: u32, to: u32, start_ns: u64, size: FlowSize) -> PlannedFlow {
        PlannedFlow::new(FlowKind::Stream, HostId(from), HostId(to), start_ns, size)
    }

    /// Links of hosts 0 to 5 out and, from 6 on, in.
    fn routes(flows: &[PlannedFlow]) -> Vec<Vec<usize>> {
        flows.iter().map(|flow| vec![flow.from.index(), 6 + flow.to.index()]).collect()
    }

    /// By hand: two flows share host 2's link; the one that ends leaves all of it to the other.
    #[test]
    fn a_link_is_shared_until_one_flow_ends() {
        let flows = [flow(0, 2, 0, FlowSize::Endless(1)), flow(1, 2, 1000, FlowSize::Octets(5000))];
        let delivered = delivered(&flows, &routes(&flows), &[10.0; 12], 3000);
        // 1,000 ns alone, 1,000 ns at half, 1,000 ns alone.
        assert!((delivered[0] - 25_000.0).abs() < 2.0, "{delivered:?}");
        assert!((delivered[1] - 5_000.0).abs() < 2.0, "{delivered:?}");
    }

    /// By hand: flow A shares host 0's link with B and C; what B cannot use, because D shares host 2's link with it and
    /// two others, goes to A and C.
    #[test]
    fn unused_shares_go_to_the_other_flows() {
        let endless = FlowSize::Endless(1);
        let flows = [
            flow(0, 1, 0, endless),
            flow(0, 2, 0, endless),
            flow(0, 3, 0, endless),
            flow(3, 2, 0, endless),
            flow(4, 2, 0, endless),
            flow(5, 2, 0, endless),
        ];
        let delivered = delivered(&flows, &routes(&flows), &[12.0; 12], 1000);
        let expected = [4500.0, 3000.0, 4500.0, 3000.0, 3000.0, 3000.0];
        for (found, expected) in delivered.iter().zip(expected) {
            assert!((found - expected).abs() < 1.0, "{delivered:?}");
        }
    }

    /// By hand: two flows between four hosts meet on a link of the fabric that is half as fast as theirs; a third takes
    /// another one.
    #[test]
    fn the_fabric_may_be_the_bottleneck() {
        let endless = FlowSize::Endless(1);
        let flows = [flow(0, 3, 0, endless), flow(1, 4, 0, endless), flow(2, 5, 0, endless)];
        let mut routes = routes(&flows);
        let mut octets_per_ns = [10.0; 14];
        (octets_per_ns[12], octets_per_ns[13]) = (5.0, 8.0);
        for (route, link) in routes.iter_mut().zip([12, 12, 13]) {
            route.push(link);
        }
        let delivered = delivered(&flows, &routes, &octets_per_ns, 1000);
        for (found, expected) in delivered.iter().zip([2500.0, 2500.0, 8000.0]) {
            assert!((found - expected).abs() < 1.0, "{delivered:?}");
        }
    }
}
