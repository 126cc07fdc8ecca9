//! Squarified treemaps: rectangles with areas in proportion to values and
//! sides as equal as may be (M. Bruls, K. Huizing, J. J. van Wijk, "Squarified
//! Treemaps", Data Visualization 2000, pp. 33-42).

/// A rectangle; x to the right, y down.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rect {
    /// Left edge.
    pub x: f64,
    /// Upper edge.
    pub y: f64,
    /// Width.
    pub w: f64,
    /// Height.
    pub h: f64,
}

/// Fills `area` with a rectangle for each value, in the order of the values,
/// which must be positive and should fall from first to last.
pub fn squarify(values: &[f64], area: Rect) -> Vec<Rect> {
    let mut rects = Vec::with_capacity(values.len());
    let mut free = area;
    let mut rest = values;
    let mut left: f64 = values.iter().sum();
    while !rest.is_empty() {
        // A row along the shorter side takes values as long as that makes its
        // worst rectangle squarer.
        let side = free.w.min(free.h);
        let scale = free.w * free.h / left;
        let mut count = 1;
        let mut sum = rest[0];
        while count < rest.len() {
            let more = sum + rest[count];
            let before = worst(&rest[..count], sum * scale, side, scale);
            if worst(&rest[..=count], more * scale, side, scale) > before {
                break;
            }
            (sum, count) = (more, count + 1);
        }
        let last = count == rest.len();
        free = row(
            &rest[..count],
            sum,
            if last { sum } else { left },
            free,
            &mut rects,
        );
        left -= sum;
        rest = &rest[count..];
    }
    rects
}

/// Returns the worst ratio of sides in a row of total area `sum` along `side`.
fn worst(row: &[f64], sum: f64, side: f64, scale: f64) -> f64 {
    let thickness = sum / side;
    row.iter()
        .map(|value| {
            let length = value * scale / thickness;
            (length / thickness).max(thickness / length)
        })
        .fold(0.0, f64::max)
}

/// Places a row and returns the free area left.
fn row(values: &[f64], sum: f64, left: f64, free: Rect, rects: &mut Vec<Rect>) -> Rect {
    let share = sum / left;
    let upright = free.w >= free.h;
    let mut at = 0.0;
    for value in values {
        // From both edges' sums, so that neighbours meet without a seam.
        let (start, end) = (at / sum, (at + value) / sum);
        at += value;
        rects.push(if upright {
            Rect {
                x: free.x,
                y: free.y + free.h * start,
                w: free.w * share,
                h: free.h * (end - start),
            }
        } else {
            Rect {
                x: free.x + free.w * start,
                y: free.y,
                w: free.w * (end - start),
                h: free.h * share,
            }
        });
    }
    if upright {
        let taken = free.w * share;
        Rect {
            x: free.x + taken,
            w: free.w - taken,
            ..free
        }
    } else {
        let taken = free.h * share;
        Rect {
            y: free.y + taken,
            h: free.h - taken,
            ..free
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bc_testkit::Rng;

    const AREA: Rect = Rect {
        x: 3.0,
        y: 5.0,
        w: 600.0,
        h: 400.0,
    };

    fn check(values: &[f64], area: Rect) -> Vec<Rect> {
        let rects = squarify(values, area);
        assert_eq!(rects.len(), values.len());
        let total: f64 = values.iter().sum();
        let near = area.w.max(area.h) * 1e-9;
        for (rect, value) in rects.iter().zip(values) {
            let wanted = area.w * area.h * value / total;
            let got = rect.w * rect.h;
            assert!(
                (got - wanted).abs() <= wanted * 1e-6 + near,
                "{value}: {got} {wanted}"
            );
            assert!(
                rect.x >= area.x - near && rect.y >= area.y - near,
                "{rect:?}"
            );
            assert!(rect.x + rect.w <= area.x + area.w + near, "{rect:?}");
            assert!(rect.y + rect.h <= area.y + area.h + near, "{rect:?}");
        }
        for (i, a) in rects.iter().enumerate() {
            for b in &rects[..i] {
                let w = (a.x + a.w).min(b.x + b.w) - a.x.max(b.x);
                let h = (a.y + a.h).min(b.y + b.h) - a.y.max(b.y);
                assert!(w <= near || h <= near, "{a:?} overlaps {b:?}");
            }
        }
        rects
    }

    /// Figure 4 of the paper: 6, 6, 4, 3, 2, 2, 1 in 6 by 4.
    #[test]
    fn the_example_of_the_paper() {
        let area = Rect {
            x: 0.0,
            y: 0.0,
            w: 6.0,
            h: 4.0,
        };
        let rects = check(&[6.0, 6.0, 4.0, 3.0, 2.0, 2.0, 1.0], area);
        let expected = [
            (0.0, 0.0, 3.0, 2.0),
            (0.0, 2.0, 3.0, 2.0),
            (3.0, 0.0, 12.0 / 7.0, 7.0 / 3.0),
            (3.0 + 12.0 / 7.0, 0.0, 9.0 / 7.0, 7.0 / 3.0),
        ];
        for (rect, (x, y, w, h)) in rects.iter().zip(expected) {
            let apart =
                (rect.x - x).abs() + (rect.y - y).abs() + (rect.w - w).abs() + (rect.h - h).abs();
            assert!(apart < 1e-9, "{rect:?}");
        }
    }

    #[test]
    fn areas_are_proportional_and_nothing_overlaps_or_leaves() {
        let mut rng = Rng::new(7);
        for round in 0..300 {
            let len = 1 + rng.below(70) as usize;
            let mut values: Vec<f64> = (0..len)
                .map(|_| match round % 3 {
                    0 => 1.0,
                    1 => 1.0 + rng.below(1000) as f64,
                    _ => (rng.unit() * 25.0).exp2(),
                })
                .collect();
            values.sort_by(|a, b| b.total_cmp(a));
            check(&values, AREA);
            check(
                &values,
                Rect {
                    w: 300.0,
                    h: 700.0,
                    ..AREA
                },
            );
        }
        assert!(squarify(&[], AREA).is_empty());
    }

    #[test]
    fn equal_values_are_nearly_square() {
        for rect in squarify(&[1.0; 24], AREA) {
            assert!(rect.w / rect.h < 2.0 && rect.h / rect.w < 2.0, "{rect:?}");
        }
    }
}
