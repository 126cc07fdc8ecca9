//! Points at which runs are disturbed: one in each run, until a run ends without having come to its
//! own.

use std::fmt;
use std::str::FromStr;

/// Number of points that stands for all: a sweep tests each, where no smaller one is asked for.
pub const EVERY: usize = usize::MAX;

/// A call of a run: its name, and its number among the calls of that name, from 1.
///
/// The number of calls of other names before it differs with the speed of the machine.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Point {
    /// Name of the call.
    pub call: String,
    /// Number of the call; 0 for no call.
    pub nth: usize,
}

impl Point {
    /// Returns the `nth` call of this name.
    pub fn new(call: impl Into<String>, nth: usize) -> Point {
        let call = call.into();
        Point { call, nth }
    }

    /// Returns the first call of this name.
    pub fn first(call: impl Into<String>) -> Point {
        Point::new(call, 1)
    }

    /// Returns the point of a run that nothing disturbs: no call.
    pub fn nowhere() -> Point {
        Point::new("no call", 0)
    }
}

/// Returns the name and the number, as faults are armed by them.
impl From<Point> for (String, usize) {
    fn from(point: Point) -> (String, usize) {
        (point.call, point.nth)
    }
}

impl fmt::Display for Point {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.call, self.nth)
    }
}

/// Parses the displayed form.
impl FromStr for Point {
    type Err = String;

    fn from_str(text: &str) -> Result<Point, String> {
        let point = text.rsplit_once(' ').and_then(|(call, nth)| {
            let nth = nth.parse().ok()?;
            Some(Point::new(call, nth))
        });
        point.ok_or_else(|| format!("not a call and its number: '{text}'"))
    }
}

/// Reads `BC_TEST_POINTS`: how many calls of each name a sweep disturbs, or `all`; `None` if it is
/// not set.
///
/// # Panics
/// If it is something else.
pub fn asked_points() -> Option<usize> {
    let text = std::env::var("BC_TEST_POINTS").ok()?;
    Some(match &*text {
        "all" => EVERY,
        number => number.parse().expect("BC_TEST_POINTS is a number or 'all'"),
    })
}

/// Reads `BC_TEST_CASES`: how many random cases a test tries; `few` if it is not set.
///
/// # Panics
/// If it is no number.
pub fn cases(few: usize) -> usize {
    let asked = std::env::var("BC_TEST_CASES").ok();
    asked.map_or(few, |asked| {
        asked.parse().expect("BC_TEST_CASES is a number")
    })
}

/// The points of one job, handed out one for each run.
///
/// The first run is disturbed [nowhere](Point::nowhere), and shows which calls the job makes. Then
/// the calls of one name come after those of another: the first, the second, and so on until a run
/// ends without having come to its point. That run itself reports so; no number is taken from
/// another run, which may have been faster or slower.
///
/// A sweep of a few points takes the middle one, the last and some between. Their positions are
/// learned from runs that ended undisturbed; one that has fewer calls does not come to its point,
/// and nothing else.
///
/// ```
/// use bc_testkit::{EVERY, Sweep};
///
/// let calls = ["open", "write", "write"];
/// let mut sweep = Sweep::new(EVERY);
/// let mut met = Vec::new();
/// while let Some(point) = sweep.next() {
///     let of_name = calls.iter().filter(|call| **call == point.call);
///     let reached = point.nth > 0 && of_name.count() >= point.nth;
///     if reached {
///         met.push(point.to_string());
///     }
///     sweep.ran(reached, calls);
/// }
/// assert_eq!(met, ["open 1", "write 1", "write 2"]);
/// ```
#[derive(Debug)]
pub struct Sweep {
    many: usize,
    ways: usize,
    /// Names of the calls that are meant, or, if that is not so, of all others.
    listed: (Vec<String>, bool),
    /// Greatest number of names, where not every one was asked for.
    kinds: usize,
    names: Vec<CallsOfName>,
    /// Index of the name whose point was handed out last; `None` for the undisturbed run.
    at: Option<usize>,
    begun: bool,
    way: usize,
    reached: usize,
}

/// Reports on standard error how many points the sweep came to, where their number was asked for.
impl Drop for Sweep {
    #[expect(
        clippy::print_stderr,
        reason = "only tests call it, and their output is for people"
    )]
    fn drop(&mut self) {
        if asked_points().is_some() && !std::thread::panicking() {
            let (thread, names) = (std::thread::current(), self.names.len());
            let test = thread.name().unwrap_or("a thread").to_owned();
            eprintln!("sweep: {test}: {} points of {names} calls", self.reached);
        }
    }
}

/// Calls of one name.
#[derive(Debug)]
struct CallsOfName {
    call: String,
    /// Number of calls in the last run that nothing disturbed.
    count: usize,
    tried: Vec<usize>,
    /// True if a run came to one of its points.
    met: bool,
    /// Ways that are left for the last point.
    ways_left: usize,
    over: bool,
}

impl Sweep {
    /// Makes a sweep of so many points of each name, or of [every](EVERY) one; of the number in
    /// [`BC_TEST_POINTS`](asked_points), if that is set.
    pub fn new(many: usize) -> Sweep {
        Sweep {
            many: asked_points().unwrap_or(many),
            ways: 1,
            listed: (Vec::new(), false),
            kinds: EVERY,
            names: Vec::new(),
            at: None,
            begun: false,
            way: 0,
            reached: 0,
        }
    }

    /// Limits the sweep to calls of these names.
    #[must_use]
    pub fn of(mut self, names: &[&str]) -> Sweep {
        let listed = names.iter().map(|&name| name.to_owned()).collect();
        self.listed = (listed, true);
        self
    }

    /// Limits the sweep to calls of other names than these.
    #[must_use]
    pub fn but(self, names: &[&str]) -> Sweep {
        let mut sweep = self.of(names);
        sweep.listed.1 = false;
        sweep
    }

    /// Limits the sweep to so many names, spread over those that are called; unless
    /// `BC_TEST_POINTS` is set.
    #[must_use]
    pub fn few_names(mut self, many: usize) -> Sweep {
        let kinds = asked_points().map_or(many, |_| EVERY);
        self.kinds = kinds;
        self
    }

    /// Disturbs each point in so many ways: in one of them by turns, or in each of them, if every
    /// point was asked for.
    #[must_use]
    pub fn ways(mut self, ways: usize) -> Sweep {
        self.ways = ways;
        self
    }

    /// The point of the next run; `None` when there is no other.
    #[expect(
        clippy::should_implement_trait,
        reason = "each point depends on what the run of the last one told"
    )]
    pub fn next(&mut self) -> Option<Point> {
        if !self.begun {
            self.begun = true;
            return Some(Point::nowhere());
        }
        let all_ways = asked_points() == Some(EVERY);
        loop {
            let at = self.names.iter().position(|name| !name.over)?;
            self.at = Some(at);
            let name = &mut self.names[at];
            if name.ways_left > 0 {
                name.ways_left -= 1;
                self.way = (self.way + 1) % self.ways;
                return name.tried.last().map(|nth| Point::new(&*name.call, *nth));
            }
            let Some(nth) = name.next(self.many) else {
                name.over = true;
                continue;
            };
            name.tried.push(nth);
            self.way = (self.way + 1) % self.ways;
            name.ways_left = if all_ways { self.ways - 1 } else { 0 };
            return Some(Point::new(&*name.call, nth));
        }
    }

    /// Returns the way in which the point is to be disturbed, from 0.
    pub fn way(&self) -> usize {
        self.way
    }

    /// Takes the result of a run: whether it came to its point, and the calls that it made; the
    /// calls of a disturbed run do not count.
    pub fn ran<S: AsRef<str>>(&mut self, reached: bool, calls: impl IntoIterator<Item = S>) {
        self.reached += usize::from(reached);
        if reached {
            if let Some(at) = self.at {
                self.names[at].met = true;
            }
            return;
        }
        if let Some(at) = self.at {
            let name = &mut self.names[at];
            name.ways_left = 0;
            name.over |= self.many == EVERY;
        }
        let is_first = self.names.is_empty();
        let mut counts: Vec<(String, usize)> = Vec::new();
        for call in calls {
            let call = call.as_ref();
            match counts.iter_mut().find(|(name, _)| name == call) {
                Some((_, count)) => *count += 1,
                None => counts.push((call.to_owned(), 1)),
            }
        }
        for (call, count) in counts {
            if let Some(name) = self.names.iter_mut().find(|name| name.call == call) {
                name.count = count;
            } else if self.is_meant(&call) && (is_first || self.kinds == EVERY) {
                self.names.push(CallsOfName {
                    call,
                    count,
                    tried: Vec::new(),
                    met: false,
                    ways_left: 0,
                    over: false,
                });
            }
        }
        let all = self.names.len();
        if is_first && self.kinds < all {
            let picked = |nth: usize| (2 * nth + 1) * all / (2 * self.kinds);
            let picked: Vec<usize> = (0..self.kinds).map(picked).collect();
            let mut nth = 0..;
            self.names
                .retain(|_| nth.next().is_some_and(|nth| picked.contains(&nth)));
        }
    }

    fn is_meant(&self, call: &str) -> bool {
        let (names, are_meant) = &self.listed;
        names.iter().any(|name| name == call) == *are_meant
    }

    /// Returns the number of runs that came to their points.
    pub fn reached(&self) -> usize {
        self.reached
    }

    /// Returns true if a run came to a point of one of these calls.
    pub fn has_met(&self, calls: &[&str]) -> bool {
        let mut met = self.names.iter().filter(|name| name.met);
        met.any(|name| calls.contains(&&*name.call))
    }
}

impl CallsOfName {
    /// Returns the number of the next call to disturb.
    fn next(&self, many: usize) -> Option<usize> {
        if many == EVERY {
            return Some(self.tried.last().map_or(1, |nth| nth + 1));
        }
        if self.tried.len() >= many {
            return None;
        }
        // One half, the last, then one quarter, three quarters, and so on between those.
        let between = (1..self.count.next_power_of_two()).map(|turn| {
            let halves = turn.ilog2() + 1;
            let odd = 2 * (turn - (1 << (halves - 1))) + 1;
            (odd * self.count).div_ceil(1 << halves)
        });
        let middle = self.count.div_ceil(2);
        let mut all = [middle, self.count].into_iter().chain(between);
        all.find(|nth| *nth > 0 && !self.tried.contains(nth))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Runs a job that makes these calls, as many as it makes in this run; returns the points met.
    fn met(mut sweep: Sweep, calls: impl Fn(usize) -> Vec<&'static str>) -> Vec<String> {
        let mut met = Vec::new();
        for run in 0.. {
            let Some(point) = sweep.next() else {
                return met;
            };
            let calls = calls(run);
            let of_name = calls.iter().filter(|call| **call == point.call);
            let reached = point.nth > 0 && of_name.count() >= point.nth;
            if reached {
                met.push(format!("{point} {}", sweep.way()));
            }
            sweep.ran(reached, calls);
        }
        unreachable!()
    }

    fn three() -> Vec<&'static str> {
        ["a", "b", "b", "c", "b", "a"].into()
    }

    /// Makes a sweep as where no other number is asked for.
    fn sweep(many: usize) -> Sweep {
        let mut sweep = Sweep::new(many);
        sweep.many = many;
        sweep
    }

    #[test]
    fn every_point_is_met_once() {
        let all = ["a 1 0", "a 2 0", "b 1 0", "b 2 0", "b 3 0", "c 1 0"];
        assert_eq!(met(sweep(EVERY), |_| three()), all);
    }

    #[test]
    fn speed_changes_no_point_of_another_name() {
        let slow = |run: usize| [vec!["again"; run % 3], three()].concat();
        let found = met(sweep(EVERY).but(&["again"]), slow);
        assert_eq!(found, met(sweep(EVERY), |_| three()));
        // A name that comes more often now and then has an end, too.
        assert!(met(sweep(EVERY), slow).len() >= 6);
        assert!(met(sweep(3), slow).len() >= 6);
    }

    #[test]
    fn a_few_are_the_middle_the_last_and_some_between() {
        let found = met(sweep(4), |_| vec!["a"; 16]);
        assert_eq!(found, ["a 8 0", "a 16 0", "a 4 0", "a 12 0"]);
        assert_eq!(met(sweep(5), |_| vec!["a"; 3]).len(), 3);
        assert_eq!(met(sweep(100), |_| vec!["a"; 11]).len(), 11);
        assert_eq!(met(sweep(1), |_| three()), ["a 1 0", "b 2 0", "c 1 0"]);
    }

    #[test]
    fn names_are_chosen() {
        let few = |many| {
            let mut few = sweep(1);
            few.kinds = many;
            few
        };
        assert_eq!(met(few(1), |_| three()), ["b 2 0"]);
        assert_eq!(met(few(2), |_| three()), ["a 1 0", "c 1 0"]);
        assert_eq!(met(sweep(1).of(&["c", "d"]), |_| three()), ["c 1 0"]);
    }

    #[test]
    fn calls_that_were_met_are_known() {
        let mut sweep = sweep(1).of(&["a", "b"]);
        while let Some(point) = sweep.next() {
            sweep.ran(point.call == "b", three());
        }
        assert!(sweep.has_met(&["b"]) && sweep.has_met(&["a", "b"]));
        assert!(!sweep.has_met(&["a", "c"]) && !sweep.has_met(&[]));
    }

    #[test]
    fn ways_take_turns() {
        let found = met(sweep(EVERY).ways(2), |_| three());
        let ways: Vec<&str> = found.iter().map(|met| &met[met.len() - 1..]).collect();
        assert!(ways.contains(&"0") && ways.contains(&"1"), "{found:?}");
    }

    #[test]
    fn a_point_is_read_as_it_is_written() {
        for point in [Point::new("open directory", 3), Point::nowhere()] {
            assert_eq!(point.to_string().parse(), Ok(point));
        }
        assert!("unlink".parse::<Point>().is_err());
    }
}
