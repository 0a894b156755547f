//! What waits for guests, by the kind of guest that it needs.

use std::collections::VecDeque;

/// What waits for a guest of one kind, in order, and how many guests of it there are.
#[derive(Debug)]
struct Queue<K, T> {
    kind: K,
    waiting: VecDeque<T>,
    guests: usize,
}

/// What waits, for all kinds of guest.
#[derive(Debug)]
pub struct Queues<K, T> {
    queues: Vec<Queue<K, T>>,
}

impl<K, T> Default for Queues<K, T> {
    fn default() -> Self {
        Self { queues: Vec::new() }
    }
}

impl<K: Copy + PartialEq, T> Queues<K, T> {
    /// Adds one that is taken after those that wait for the same kind of guest.
    pub fn push(&mut self, kind: K, item: T) {
        match self.queues.iter_mut().find(|queue| queue.kind == kind) {
            Some(queue) => queue.waiting.push_back(item),
            None => self.queues.push(Queue {
                kind,
                waiting: VecDeque::from([item]),
                guests: 0,
            }),
        }
    }

    /// The next one for who has a guest of kind `current`. It is of the same kind if one
    /// of that waits, since another kind takes a boot; otherwise of the kind of which most
    /// wait for each guest that there is.
    pub fn take(&mut self, current: Option<K>) -> Option<(K, T)> {
        let at = self
            .queues
            .iter()
            .position(|queue| Some(queue.kind) == current);
        let has_more = |&at: &usize| !self.queues[at].waiting.is_empty();
        let at = match at.filter(has_more) {
            Some(at) => at,
            None => {
                let next = self.busiest()?;
                if let Some(left) = at {
                    self.queues[left].guests -= 1;
                }
                self.queues[next].guests += 1;
                next
            }
        };
        let queue = &mut self.queues[at];
        Some((queue.kind, queue.waiting.pop_front()?))
    }

    /// Where most wait for each guest; of equals the first.
    fn busiest(&self) -> Option<usize> {
        let waiting = self.queues.iter().enumerate();
        let waiting = waiting.filter(|(_, queue)| !queue.waiting.is_empty());
        let share = |queue: &Queue<K, T>| queue.waiting.len().div_ceil(queue.guests + 1);
        let found = waiting.min_by_key(|(_, queue)| std::cmp::Reverse(share(queue)));
        found.map(|(at, _)| at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn queues(counts: &[(char, u32)]) -> Queues<char, u32> {
        let mut queues = Queues::default();
        for &(kind, count) in counts {
            (0..count).for_each(|item| queues.push(kind, item));
        }
        queues
    }

    #[test]
    fn who_has_a_guest_stays_with_its_kind() {
        let mut queues = queues(&[('a', 3), ('b', 9), ('c', 1)]);
        assert_eq!(queues.take(Some('a')), Some(('a', 0)));
        assert_eq!(queues.take(Some('a')), Some(('a', 1)));
        assert_eq!(queues.take(Some('c')), Some(('c', 0)));
    }

    #[test]
    fn everything_is_taken_once_and_each_kind_in_order() {
        let mut queues = queues(&[('a', 4), ('b', 3), ('c', 2)]);
        let mut kinds = [None; 2];
        let mut taken = Vec::new();
        while taken.len() < 9 {
            for kind in &mut kinds {
                if let Some((of, item)) = queues.take(*kind) {
                    *kind = Some(of);
                    taken.push((of, item));
                }
            }
        }
        let of = |kind| taken.iter().filter(move |(of, _)| *of == kind);
        for (kind, count) in [('a', 4), ('b', 3), ('c', 2)] {
            assert!(of(kind).map(|(_, item)| *item).eq(0..count), "{taken:?}");
        }
        // Two guests have kinds of their own as long as there are some.
        assert_eq!(taken[..2], [('a', 0), ('b', 0)]);
        for kind in kinds {
            assert_eq!(queues.take(kind), None);
        }
    }

    #[test]
    fn who_has_nothing_left_helps_where_most_waits() {
        let mut queues = queues(&[('a', 1), ('b', 10), ('c', 4)]);
        assert_eq!(queues.take(None), Some(('b', 0)));
        // Nine for two guests are more than four for one.
        assert_eq!(queues.take(None), Some(('b', 1)));
        // Eight for three are not.
        assert_eq!(queues.take(None), Some(('c', 0)));
        assert_eq!(queues.take(Some('c')), Some(('c', 1)));
        assert_eq!(queues.take(None), Some(('b', 2)));
    }
}
