//! What an allocation reads and writes of a flow, in a cache line of its own.

/// Links of the paths of a three-tier fabric.
const INLINE: usize = 6;

/// The links of a flow, and its rate.
#[derive(Clone, Copy, Debug, Default)]
#[repr(align(64))]
pub(super) struct Route {
    /// The last allocation in which it took part.
    pub(super) round: u32,
    /// Where its links are in the list of all hops.
    first: u32,
    count: u16,
    /// Hops that it may have there.
    room: u16,
    pub(super) is_in_use: bool,
    /// Number of its bottlenecks, and where they are in the list of the allocation.
    pub(super) crossed: u16,
    pub(super) crossed_at: u32,
    /// Its links, if they are so few.
    inline: [u32; INLINE],
    pub(super) rate: f64,
    /// The rate that the current allocation gives it; not a number until it does.
    pub(super) allocated: f64,
}

const _: () = assert!(size_of::<Route>() == 64);

impl Route {
    /// Its hops in the list of all.
    pub(super) fn range(&self) -> std::ops::Range<usize> {
        self.first as usize..self.first as usize + usize::from(self.count)
    }

    /// Its links; `hops`: the list of all.
    #[inline]
    pub(super) fn links<'a>(&'a self, hops: &'a [u32]) -> &'a [u32] {
        self.inline.get(..usize::from(self.count)).unwrap_or_else(|| &hops[self.range()])
    }

    /// Sets its links, as many as paths of a topology have at most, and adds room for them to the list of all hops.
    pub(super) fn set_links(&mut self, links: &[u32], hops: &mut Vec<u32>) {
        self.count = links.len() as u16;
        if self.room < self.count {
            (self.first, self.room) = (hops.len() as u32, self.count);
            hops.resize(hops.len() + links.len(), 0);
        }
        hops[self.range()].copy_from_slice(links);
        if let Some(inline) = self.inline.get_mut(..links.len()) {
            inline.copy_from_slice(links);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn routes_of_any_length_keep_their_links() {
        let (mut hops, mut routes) = (Vec::new(), [Route::default(); 3]);
        for turn in 0..20_u32 {
            let of = |number: u32| (0..(turn * 7 + number * 5) % 11).map(|hop| hop + 100 * number + turn).collect();
            let expected: [Vec<u32>; 3] = [0, 1, 2].map(of);
            routes.iter_mut().zip(&expected).for_each(|(route, links)| route.set_links(links, &mut hops));
            for (route, links) in routes.iter().zip(&expected) {
                assert_eq!(route.links(&hops), links);
                assert_eq!(&hops[route.range()], links);
            }
        }
        assert!(hops.len() < 3 * 11 * 3, "room is used again");
    }
}
