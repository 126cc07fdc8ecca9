//! Amounts by directory, and the few dozen directories that show best where
//! they are: the largest are cut up again and again, the smallest lumped.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};

/// Amounts counted for a directory.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Amount {
    /// Size of the area.
    pub value: u64,
    /// Files or entries.
    pub count: u64,
    /// The gravest mark of its contents; any scale.
    pub mark: u8,
}

impl Amount {
    /// Adds another amount.
    pub fn add(&mut self, other: Amount) {
        self.value += other.value;
        self.count += other.count;
        self.mark = self.mark.max(other.mark);
    }
}

/// Amounts of directories, with those of the directories below.
#[derive(Debug)]
pub struct Dirs {
    /// Parents come before their children; the first has the empty path.
    nodes: Vec<Node>,
    ids: HashMap<(u32, Box<[u8]>), u32>,
}

#[derive(Debug, Default)]
struct Node {
    parent: u32,
    name: Box<[u8]>,
    own: Amount,
}

/// Part of a directory that a cell stands for.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum What {
    /// A directory with everything below it.
    Whole,
    /// The files directly in it.
    Own,
    /// So many of its smaller directories.
    Smaller(usize),
}

/// A directory, or a part of one; with the parts that it is cut into.
#[derive(Clone, Debug)]
pub struct Cell {
    /// The directory; empty is the directory that relative paths count from.
    pub path: Vec<u8>,
    /// Part of it that this cell is.
    pub what: What,
    /// Amount of its contents.
    pub amount: Amount,
    /// Cells of one number belong together: the same colour.
    pub group: usize,
    /// Parts that it is cut into; largest first.
    pub parts: Vec<Cell>,
}

impl Cell {
    /// Returns the cell without its parts.
    pub fn clone_alone(&self) -> Cell {
        Cell {
            path: self.path.clone(),
            parts: Vec::new(),
            ..*self
        }
    }
}

/// Parts of one cell at most; more are lumped.
const PARTS: usize = 16;

impl Default for Dirs {
    fn default() -> Dirs {
        Dirs {
            nodes: vec![Node::default()],
            ids: HashMap::new(),
        }
    }
}

/// Returns the directory part of a path: empty for a bare name.
pub fn parent(path: &[u8]) -> &[u8] {
    match path.iter().rposition(|byte| *byte == b'/') {
        Some(0) => b"/",
        Some(at) => &path[..at],
        None => b"",
    }
}

impl Dirs {
    /// Adds to a directory.
    pub fn add(&mut self, dir: &[u8], amount: Amount) {
        let (first, rest) = match dir.strip_prefix(b"/") {
            Some(rest) => (Some(&b"/"[..]), rest),
            None => (None, dir),
        };
        let names = rest.split(|byte| *byte == b'/');
        let mut at = 0;
        for name in first.into_iter().chain(names.filter(|_| !rest.is_empty())) {
            let next = self.nodes.len() as u32;
            let parent = at;
            at = *self.ids.entry((parent, name.into())).or_insert(next);
            if at == next {
                self.nodes.push(Node {
                    parent,
                    name: name.into(),
                    own: Amount::default(),
                });
            }
        }
        self.nodes[at as usize].own.add(amount);
    }

    /// Returns the innermost directory that everything is in, cut into at most `most` cells.
    /// Together they are all that was added; `None` if that is nothing.
    pub fn cells(&self, most: usize) -> Option<Cell> {
        let mut totals: Vec<Amount> = self.nodes.iter().map(|node| node.own).collect();
        let mut children: Vec<Vec<u32>> = vec![Vec::new(); self.nodes.len()];
        for id in (1..self.nodes.len()).rev() {
            let parent = self.nodes[id].parent as usize;
            let total = totals[id];
            totals[parent].add(total);
            if total.value > 0 {
                children[parent].push(id as u32);
            }
        }
        let name = |id: &u32| &self.nodes[*id as usize].name;
        for list in &mut children {
            list.sort_by(|a, b| {
                let value = |id: &u32| Reverse(totals[*id as usize].value);
                value(a).cmp(&value(b)).then_with(|| name(a).cmp(name(b)))
            });
        }
        let whole = totals[0];
        if whole.value == 0 {
            return None;
        }
        let mut cutting = Cutting {
            dirs: self,
            totals,
            children,
            cells: Vec::new(),
        };
        cutting.leaf(0, What::Whole, whole);
        cutting.run(most, whole.value);
        let groups = cutting.groups(whole.value);
        Some(cutting.tree(0, &groups, 0))
    }

    fn path(&self, mut id: u32) -> Vec<u8> {
        let mut names = Vec::new();
        while id != 0 {
            let node = &self.nodes[id as usize];
            names.push(&node.name[..]);
            id = node.parent;
        }
        names.reverse();
        match &names[..] {
            [first, rest @ ..] if *first == b"/" => [b"/", &rest.join(&b'/')[..]].concat(),
            _ => names.join(&b'/'),
        }
    }
}

/// Cells by number: the part that each is, and those that it was cut into.
struct Cutting<'a> {
    dirs: &'a Dirs,
    totals: Vec<Amount>,
    children: Vec<Vec<u32>>,
    cells: Vec<(u32, What, Amount, Vec<usize>)>,
}

impl Cutting<'_> {
    /// Adds a cell, and returns its number. A directory that holds nothing but one other is that
    /// one.
    fn leaf(&mut self, mut node: u32, what: What, amount: Amount) -> usize {
        if what == What::Whole {
            while self.dirs.nodes[node as usize].own.value == 0
                && let [only] = self.children[node as usize][..]
            {
                node = only;
            }
        }
        self.cells.push((node, what, amount, Vec::new()));
        self.cells.len() - 1
    }

    /// Cuts the largest cell as long as there may be more of them.
    fn run(&mut self, most: usize, whole: u64) {
        let mut largest = BinaryHeap::from([(whole, Reverse(0))]);
        let mut leaves = 1;
        while let Some((value, Reverse(cell))) = largest.pop() {
            let (node, what, ..) = self.cells[cell];
            let children = std::mem::take(&mut self.children[node as usize]);
            // A cell under a fiftieth has no parts that could be seen.
            if what != What::Whole || children.is_empty() || value < whole / 50 {
                continue;
            }
            let own = self.dirs.nodes[node as usize].own;
            let value_of = |id: &u32| self.totals[*id as usize].value;
            let mut shown = children
                .iter()
                .take_while(|id| value_of(id) >= whole / 400)
                .count()
                .min(PARTS);
            // Where many are alike the lump would be most of the picture.
            let mut lump: u64 = children[shown..].iter().map(value_of).sum();
            while lump > value / 2 && leaves + shown + 1 < most && shown + 1 < children.len() {
                lump -= value_of(&children[shown]);
                shown += 1;
            }
            if children.len() - shown == 1 {
                shown += 1;
            }
            let (shown, rest) = children.split_at(shown);
            let parts = shown.len() + usize::from(!rest.is_empty()) + usize::from(own.value > 0);
            if leaves + parts - 1 > most && cell != 0 {
                continue;
            }
            let mut cut: Vec<usize> = Vec::with_capacity(parts);
            for id in shown {
                cut.push(self.leaf(*id, What::Whole, self.totals[*id as usize]));
            }
            if own.value > 0 {
                cut.push(self.leaf(node, What::Own, own));
            }
            if !rest.is_empty() {
                let mut amount = Amount::default();
                rest.iter()
                    .for_each(|id| amount.add(self.totals[*id as usize]));
                cut.push(self.leaf(node, What::Smaller(rest.len()), amount));
            }
            cut.sort_by_key(|part| Reverse(self.cells[*part].2.value));
            largest.extend(
                cut.iter()
                    .map(|part| (self.cells[*part].2.value, Reverse(*part))),
            );
            leaves += parts - 1;
            self.cells[cell].3 = cut;
        }
    }

    /// Returns the outermost cells; one that is most of the map gives way to its parts.
    fn groups(&self, whole: u64) -> Vec<usize> {
        let mut groups = self.cells[0].3.clone();
        loop {
            let largest = groups
                .iter()
                .enumerate()
                .filter(|(_, cell)| {
                    let (_, _, amount, parts) = &self.cells[**cell];
                    let fits = groups.len() + parts.len() <= PARTS;
                    !parts.is_empty() && fits && amount.value > whole / 4
                })
                .max_by_key(|(at, cell)| (self.cells[**cell].2.value, Reverse(*at)));
            let Some((at, cell)) = largest else {
                return groups;
            };
            let parts = self.cells[*cell].3.clone();
            groups.splice(at..=at, parts);
        }
    }

    fn tree(&self, cell: usize, groups: &[usize], outer: usize) -> Cell {
        let group = groups.iter().position(|one| *one == cell).unwrap_or(outer);
        let (node, what, amount, parts) = &self.cells[cell];
        let parts = parts.iter().map(|part| self.tree(*part, groups, group));
        Cell {
            path: self.dirs.path(*node),
            what: *what,
            amount: *amount,
            group,
            parts: parts.collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bc_testkit::Rng;

    fn dirs(amounts: &[(&str, u64)]) -> Dirs {
        let mut dirs = Dirs::default();
        for (dir, value) in amounts {
            let amount = Amount {
                value: *value,
                count: 1,
                mark: (*value % 7) as u8,
            };
            dirs.add(dir.as_bytes(), amount);
        }
        dirs
    }

    fn leaves<'a>(cell: &'a Cell, out: &mut Vec<&'a Cell>) {
        if cell.parts.is_empty() {
            out.push(cell);
        }
        cell.parts.iter().for_each(|part| leaves(part, out));
    }

    fn text(cell: &Cell) -> String {
        format!(
            "{} {:?} {}",
            String::from_utf8_lossy(&cell.path),
            cell.what,
            cell.amount.value
        )
    }

    #[test]
    fn the_common_directory_is_found_and_chains_are_one() {
        let cell = dirs(&[
            ("/srv/a/b/c", 5),
            ("/srv/a/d", 7),
            ("/srv/a/d/e/f", 2),
            ("/srv/a", 1),
        ])
        .cells(50)
        .unwrap();
        assert_eq!(text(&cell), "/srv/a Whole 15");
        let mut found = Vec::new();
        leaves(&cell, &mut found);
        let found: Vec<String> = found.into_iter().map(text).collect();
        assert_eq!(
            found,
            [
                "/srv/a/d Own 7",
                "/srv/a/d/e/f Whole 2",
                "/srv/a/b/c Whole 5",
                "/srv/a Own 1"
            ]
        );
        assert_eq!(text(&dirs(&[("/", 3)]).cells(9).unwrap()), "/ Whole 3");
        assert_eq!(text(&dirs(&[("", 3)]).cells(9).unwrap()), " Whole 3");
        let relative = dirs(&[("", 3), ("x", 1), ("/x", 1), ("a//b", 1), ("./c", 1)])
            .cells(9)
            .unwrap();
        let mut found = Vec::new();
        leaves(&relative, &mut found);
        let found: Vec<String> = found.into_iter().map(text).collect();
        assert_eq!(
            found,
            [
                " Own 3",
                "./c Whole 1",
                "/x Whole 1",
                "a//b Whole 1",
                "x Whole 1"
            ]
        );
        assert!(dirs(&[]).cells(9).is_none() && dirs(&[("a", 0)]).cells(9).is_none());
    }

    #[test]
    fn cells_are_everything_and_not_too_many() {
        let mut rng = Rng::new(3);
        for _ in 0..60 {
            let names = 1 + rng.below(40);
            let amounts: Vec<(String, u64)> = (0..1 + rng.below(400))
                .map(|_| {
                    let depth = rng.below(5);
                    let dir: Vec<String> =
                        (0..depth).map(|_| rng.below(names).to_string()).collect();
                    (dir.join("/"), (rng.unit() * 20.0).exp2() as u64)
                })
                .collect();
            let amounts: Vec<(&str, u64)> = amounts.iter().map(|(d, v)| (&d[..], *v)).collect();
            let cell = dirs(&amounts).cells(40).unwrap();
            let mut found = Vec::new();
            leaves(&cell, &mut found);
            assert!(found.len() <= 40, "{}", found.len());
            let sum = |f: fn(&Cell) -> u64| found.iter().map(|cell| f(cell)).sum::<u64>();
            assert_eq!(
                sum(|cell| cell.amount.value),
                amounts.iter().map(|a| a.1).sum::<u64>()
            );
            assert_eq!(sum(|cell| cell.amount.count), amounts.len() as u64);
            assert_eq!(
                found.iter().map(|cell| cell.amount.mark).max(),
                amounts.iter().map(|a| (a.1 % 7) as u8).max()
            );
        }
    }

    #[test]
    fn many_small_directories_are_lumped_and_counted() {
        let names: Vec<String> = (0..1000).map(|n| format!("d/{n:04}")).collect();
        let mut amounts: Vec<(&str, u64)> = names.iter().map(|name| (&name[..], 1)).collect();
        let cell = dirs(&amounts).cells(40).unwrap();
        let texts: Vec<String> = cell.parts.iter().map(text).collect();
        assert_eq!(texts.len(), 39);
        assert_eq!(
            (&texts[0][..], &texts[38][..]),
            ("d Smaller(962) 962", "d/0037 Whole 1")
        );
        amounts.push(("d/large", 1000));
        let cell = dirs(&amounts).cells(40).unwrap();
        let texts: Vec<String> = cell.parts.iter().map(text).collect();
        assert_eq!(texts, ["d/large Whole 1000", "d Smaller(1000) 1000"]);
        assert_eq!((cell.parts[0].group, cell.parts[1].group), (0, 1));
    }

    #[test]
    fn a_directory_that_is_nearly_all_is_many_groups() {
        let mut amounts = vec![("r/small".to_owned(), 10)];
        amounts.extend((0..5).map(|n| (format!("r/big/{n}"), 100)));
        let amounts: Vec<(&str, u64)> = amounts.iter().map(|(d, v)| (&d[..], *v)).collect();
        let cell = dirs(&amounts).cells(40).unwrap();
        let mut found = Vec::new();
        leaves(&cell, &mut found);
        let groups: Vec<usize> = found.iter().map(|cell| cell.group).collect();
        assert_eq!(groups, [0, 1, 2, 3, 4, 5]);
    }

    #[test]
    fn a_path_of_many_levels_is_no_deep_recursion() {
        let deep = vec!["x"; 100_000].join("/");
        let cell = dirs(&[(&deep, 4)]).cells(40).unwrap();
        assert_eq!((cell.path.len(), cell.parts.len()), (deep.len(), 0));
    }
}
