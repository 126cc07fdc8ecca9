//! Lists of different lengths in two arrays: of millions of short lists none has an allocation of its
//! own.

/// The lists, by number.
#[derive(Clone, Debug)]
pub(crate) struct Jagged<T> {
    items: Vec<T>,
    /// End of each list in `items`.
    ends: Vec<u32>,
}

impl<T> Default for Jagged<T> {
    fn default() -> Jagged<T> {
        Jagged {
            items: Vec::new(),
            ends: Vec::new(),
        }
    }
}

impl<T: Copy> Jagged<T> {
    /// Puts items into `len` lists: each into the one whose number comes with it, in the order in
    /// which they come. `items` is called twice, and has to give the same both times.
    ///
    /// # Panics
    /// If there is no list of such a number.
    pub(crate) fn sorted<I>(len: usize, items: impl Fn() -> I) -> Jagged<T>
    where
        I: Iterator<Item = (usize, T)>,
    {
        let mut ends = vec![0_u32; len];
        let mut first = None;
        for (list, item) in items() {
            ends[list] += 1;
            first.get_or_insert(item);
        }
        // From lengths to starts, which become ends while the lists are filled.
        let mut count = 0;
        for end in &mut ends {
            count += std::mem::replace(end, count);
        }
        let mut sorted = first.map_or(Vec::new(), |first| vec![first; count as usize]);
        for (list, item) in items() {
            sorted[ends[list] as usize] = item;
            ends[list] += 1;
        }
        Jagged {
            items: sorted,
            ends,
        }
    }

    /// Adds a list.
    pub(crate) fn push(&mut self, list: &[T]) {
        self.items.extend_from_slice(list);
        self.ends.push(self.items.len() as u32);
    }

    /// Returns the number of lists.
    pub(crate) fn len(&self) -> usize {
        self.ends.len()
    }

    /// Returns a list by its number.
    ///
    /// # Panics
    /// If there is none of this number.
    pub(crate) fn list(&self, at: usize) -> &[T] {
        let start = at.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.items[start as usize..self.ends[at] as usize]
    }

    /// Returns the lists in order.
    pub(crate) fn lists(&self) -> impl Iterator<Item = &[T]> + '_ {
        (0..self.len()).map(|at| self.list(at))
    }

    /// Returns the items of all lists, one list after the other.
    pub(crate) fn items(&self) -> &[T] {
        &self.items
    }
}

#[cfg(test)]
mod tests {
    use super::Jagged;

    #[test]
    fn items_come_to_their_lists_in_order() {
        let items = [(3, 'a'), (1, 'b'), (3, 'c'), (0, 'd')];
        let sorted = Jagged::sorted(5, || items.into_iter());
        let mut pushed = Jagged::default();
        for list in [&['d'][..], &['b'], &[], &['a', 'c'], &[]] {
            pushed.push(list);
        }
        for lists in [sorted, pushed] {
            let shown: Vec<&[char]> = lists.lists().collect();
            assert_eq!(shown, [&['d'][..], &['b'], &[], &['a', 'c'], &[]]);
            assert_eq!((lists.len(), lists.list(3)), (5, &['a', 'c'][..]));
            assert_eq!(lists.items(), ['d', 'b', 'a', 'c']);
        }
        let none = Jagged::<char>::sorted(2, std::iter::empty);
        assert!(none.list(0).is_empty() && none.list(1).is_empty());
    }
}
