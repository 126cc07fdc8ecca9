//! The middle of measured values, and how certain it is.

/// Returns the middle value, or the mean of the two in the middle.
pub(crate) fn median(values: impl Iterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.collect();
    values.sort_unstable_by(f64::total_cmp);
    let middle = values.len() / 2;
    match values.len() {
        0 => f64::NAN,
        n if n % 2 == 1 => values[middle],
        _ => f64::midpoint(values[middle - 1], values[middle]),
    }
}

/// The median of some values, and the interval that contains that of all with a probability of 95 %.
/// It is taken from the values in order, whatever their distribution.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Interval {
    median: f64,
    from: f64,
    to: f64,
}

impl Interval {
    pub(crate) fn of(values: impl Iterator<Item = f64>) -> Interval {
        let mut values: Vec<f64> = values.collect();
        values.sort_unstable_by(f64::total_cmp);
        let count = values.len() as f64;
        // The binomial distribution's, as a normal one has it.
        let beside = 0.98 * count.sqrt();
        let lower = (count / 2.0 - beside).round() - 1.0;
        let upper = (count / 2.0 + beside).round();
        let at = |place: f64| values.get(place.clamp(0.0, count - 1.0) as usize).copied();
        Interval {
            median: median(values.iter().copied()),
            from: at(lower).unwrap_or(f64::NAN),
            to: at(upper).unwrap_or(f64::NAN),
        }
    }
}

impl std::fmt::Display for Interval {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Interval { median, from, to } = self;
        write!(f, "{median:.2} ({from:.2}–{to:.2})")
    }
}

#[cfg(test)]
mod tests {
    use super::{Interval, median};

    #[test]
    fn intervals_leave_out_the_same_number_on_both_sides() {
        let of = |count: u32| Interval::of((1..=count).map(f64::from)).to_string();
        assert_eq!(of(1), "1.00 (1.00–1.00)");
        assert_eq!(of(31), "16.00 (10.00–22.00)");
        assert_eq!(of(100), "50.50 (40.00–61.00)");
    }

    #[test]
    fn median_of_odd_and_even_counts() {
        assert_eq!(median([3.0, 1.0, 2.0].into_iter()), 2.0);
        assert_eq!(median([4.0, 1.0, 2.0, 3.0].into_iter()), 2.5);
    }
}
