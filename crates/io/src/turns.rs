//! Round-robin polling of sources.

use std::task::Poll;

/// Whose turn it is, among sources that may all have something at once: none waits until the others have nothing left.
#[derive(Clone, Copy, Debug, Default)]
pub struct Turns {
    next: usize,
}

impl Turns {
    /// Polls sources until one has something, and returns which; it is the last to be polled next time.
    pub fn poll<S, T>(&mut self, sources: &mut [S], mut ask: impl FnMut(&mut S) -> Poll<T>) -> Poll<(usize, T)> {
        let first = self.next.min(sources.len());
        let (before, from) = sources.split_at_mut(first);
        let from = (first..).zip(from);
        for (number, source) in from.chain((0..).zip(before)) {
            if let Poll::Ready(found) = ask(source) {
                self.next = number + 1;
                return Poll::Ready((number, found));
            }
        }
        Poll::Pending
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn items_with_work_take_turns() {
        let (mut turns, mut has_something) = (Turns::default(), [true, false, true]);
        let ask = |has: &mut bool| if *has { Poll::Ready(()) } else { Poll::Pending };
        let numbers: Vec<_> = (0..4).map(|_| turns.poll(&mut has_something, ask)).collect();
        assert_eq!(numbers, [0, 2, 0, 2].map(|number| Poll::Ready((number, ()))));
        assert_eq!(turns.poll(&mut [false; 3], ask), Poll::Pending);
        assert_eq!(turns.poll(&mut [true], ask), Poll::Ready((0, ())), "the others have gone");
        assert_eq!(turns.poll(&mut [], ask), Poll::Pending, "no item");
    }
}
