//! A logarithmic axis and the small drawings over it: a dot for a median and a line for its
//! interval.

use crate::axis::{Axis as Places, Range};
use crate::report::text::width;
use crate::units::Unit;

/// A logarithmic axis in so many columns.
#[derive(Debug, Clone, Copy)]
pub struct Axis {
    columns: usize,
    places: Places,
}

impl Axis {
    /// An axis for all these values; none if no value is above zero or there is no room.
    pub fn over(values: impl IntoIterator<Item = f64>, unit: Unit, columns: usize) -> Option<Axis> {
        let positive = values.into_iter().filter(|value| *value > 0.0);
        let last = columns.checked_sub(1).filter(|last| *last > 6)?;
        Some(Axis { columns, places: Places::over(Range::Ratio, positive, unit, (0.0, last as f64))? })
    }

    /// Its width in columns.
    pub fn columns(&self) -> usize {
        self.columns
    }

    /// The column of a value.
    fn column(&self, value: f64) -> usize {
        self.places.at(value).round() as usize
    }

    /// The line of labels and the line of ticks.
    pub fn drawn(&self) -> (String, String) {
        let mut labels = vec![' '; self.columns];
        let mut ticks = vec!['─'; self.columns];
        let mut free_from = 0;
        let roomy = self.places.ticks(|label| width(label) as f64 + 1.0);
        // If there is room for only one label, ticks without labels are better than none.
        let close = || self.places.ticks(|label| width(label) as f64 * 0.73);
        for tick in if roomy.len() > 1 { roomy } else { close() } {
            let column = tick.at.round() as usize;
            ticks[column] = '┼';
            let length = width(&tick.label);
            // A label that touches the previous one moves aside, as long as it is still above its tick.
            let middle = column.saturating_sub(length / 2).min(self.columns.saturating_sub(length));
            let start = middle.max(free_from);
            if start <= column && start + length <= self.columns {
                let places = labels[start..start + length].iter_mut();
                places.zip(tick.label.chars()).for_each(|(place, letter)| *place = letter);
                free_from = start + length + 1;
            }
        }
        (labels.into_iter().collect(), ticks.into_iter().collect())
    }

    /// The dot with the line of its interval, or with the single values.
    pub fn draw(&self, value: f64, interval: Option<(f64, f64)>, points: &[f64]) -> String {
        let mut cells = vec![' '; self.columns];
        if value <= 0.0 || !value.is_finite() {
            return cells.into_iter().collect();
        }
        for point in points.iter().filter(|point| **point > 0.0) {
            cells[self.column(*point)] = '·';
        }
        if let Some((low, high)) = interval {
            let (low, high) = (self.column(low.max(f64::MIN_POSITIVE)), self.column(high));
            if low < high {
                cells[low..=high].fill('─');
                cells[low] = '├';
                cells[high] = '┤';
            }
        }
        cells[self.column(value)] = '●';
        cells.into_iter().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<&str> {
        text.split_whitespace().collect()
    }

    #[test]
    fn decades_are_labelled_and_dots_stand_where_they_belong() {
        let axis = Axis::over([0.0008, 0.22], Unit::Seconds, 40).unwrap();
        let (labels, ticks) = axis.drawn();
        assert_eq!(labels.split_whitespace().step_by(2).collect::<Vec<_>>(), ["1", "3", "10", "30", "100"]);
        assert_eq!(ticks.chars().filter(|letter| *letter == '┼').count(), 5);
        let drawn = axis.draw(0.01, Some((0.005, 0.02)), &[]);
        let column = |text: &str, letter| text.chars().position(|own| own == letter).unwrap();
        let tick = ticks.chars().enumerate().filter(|(_, letter)| *letter == '┼').nth(2).unwrap().0;
        assert_eq!(column(&drawn, '●'), tick);
        assert!(column(&drawn, '├') < tick && column(&drawn, '┤') > tick);
        assert_eq!(axis.draw(0.01, Some((0.01, 0.01)), &[]).trim(), "●");
        assert_eq!(axis.draw(0.0, None, &[]).trim(), "");
    }

    #[test]
    fn a_small_range_has_ticks_too() {
        let axis = Axis::over([0.0101], Unit::Seconds, 30).unwrap();
        assert!(axis.drawn().1.contains('┼'), "{:?}", axis.drawn());
        assert_eq!(words(&axis.drawn().0), ["10.0", "ms", "10.5", "ms"]);
        assert!(axis.draw(0.0101, None, &[0.0099]).contains('·'));
        assert!(Axis::over([0.0], Unit::Seconds, 30).is_none());
        // Numbers that only a damaged file contains are drawn too.
        for ends in [[1.0, f64::MAX], [5e-324, 1.0], [5e-324, f64::MAX], [5e-324; 2]] {
            let axis = Axis::over(ends, Unit::Seconds, 30).unwrap();
            assert_eq!((width(&axis.drawn().1), width(&axis.draw(1.0, None, &ends))), (30, 30), "{ends:?}");
        }
    }
}
