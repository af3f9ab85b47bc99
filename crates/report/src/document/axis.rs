//! A logarithmic axis and the small drawings over it: a dot for a median and a line for its
//! interval.

use crate::report::text::width;
use crate::units::Unit;

/// A logarithmic axis in so many columns.
#[derive(Debug, Clone, Copy)]
pub struct Axis {
    low: f64,
    high: f64,
    columns: usize,
    unit: Unit,
}

impl Axis {
    /// An axis that shows all these values; none where no value is above zero or there is no room.
    pub fn over(values: impl IntoIterator<Item = f64>, unit: Unit, columns: usize) -> Option<Axis> {
        let positive = values.into_iter().filter(|value| *value > 0.0 && value.is_finite());
        let ends = |(low, high): (f64, f64), value: f64| (low.min(value), high.max(value));
        let (low, high) = positive.fold((f64::INFINITY, 0.0), ends);
        if low > high || columns < 8 {
            return None;
        }
        // Room at the ends, and never a range so small that noise fills it.
        let margin = (high / low).min(f64::MAX).powf(0.03).max(1.05);
        let (low, high) = ((low / margin).max(f64::MIN_POSITIVE), (high * margin).min(f64::MAX));
        Some(Axis { low: low.ln(), high: high.ln(), columns, unit })
    }

    /// How many columns it takes.
    pub fn columns(&self) -> usize {
        self.columns
    }

    /// The column of a value.
    fn column(&self, value: f64) -> usize {
        let share = (value.ln() - self.low) / (self.high - self.low);
        (share * (self.columns - 1) as f64).round().clamp(0.0, (self.columns - 1) as f64) as usize
    }

    /// The line of labels and the line of ticks.
    pub fn drawn(&self) -> (String, String) {
        let mut labels = vec![' '; self.columns];
        let mut ticks = vec!['─'; self.columns];
        let mut free_from = 0;
        for value in self.ticks() {
            let column = self.column(value);
            ticks[column] = '┼';
            let label = label(self.unit, value);
            let length = width(&label);
            let start = column.saturating_sub(length / 2).min(self.columns.saturating_sub(length));
            if start >= free_from && start + length <= self.columns {
                labels[start..start + length]
                    .iter_mut()
                    .zip(label.chars())
                    .for_each(|(place, letter)| *place = letter);
                free_from = start + length + 1;
            }
        }
        (labels.into_iter().collect(), ticks.into_iter().collect())
    }

    /// Powers of ten; with their doubles and fives where there would be fewer than three; evenly
    /// spread values where there would still be.
    fn ticks(&self) -> Vec<f64> {
        let inside = |value: &f64| (self.low..=self.high).contains(&value.ln());
        let decades = |steps: &[f64]| -> Vec<f64> {
            let first = (self.low / std::f64::consts::LN_10).floor() as i32 - 1;
            let last = (self.high / std::f64::consts::LN_10).ceil() as i32 + 1;
            let of_power = |power| steps.iter().map(move |step| step * 10f64.powi(power));
            (first..=last).flat_map(of_power).filter(inside).collect()
        };
        let found = [&[1.0][..], &[1.0, 2.0, 5.0]].map(decades).into_iter().find(|ticks| ticks.len() >= 3);
        found.unwrap_or_else(|| {
            let (low, high) = (self.low.exp(), self.high.exp());
            let power = 10f64.powf(((high - low) / 3.0).log10().floor());
            let step =
                [5.0, 2.0, 1.0].map(|step| step * power).into_iter().find(|step| (high - low) / step >= 3.0);
            let step = step.unwrap_or(power);
            let first = (low / step).ceil();
            (0..16).map(|index| (first + f64::from(index)) * step).filter(inside).collect()
        })
    }

    /// The dot and the line of its interval, or else the single values.
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

/// A tick's value without digits that it does not need.
fn label(unit: Unit, value: f64) -> String {
    let scale = unit.scale_for(value * 1.0001);
    let rounded = format!("{:.3}", value / scale.divisor);
    let number = rounded.trim_end_matches('0').trim_end_matches('.');
    if scale.symbol.is_empty() { number.to_owned() } else { format!("{number} {}", scale.symbol) }
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
        assert_eq!(words(&labels), ["1", "ms", "10", "ms", "100", "ms"]);
        assert_eq!(ticks.chars().filter(|letter| *letter == '┼').count(), 3);
        let drawn = axis.draw(0.01, Some((0.005, 0.02)), &[]);
        let column = |text: &str, letter| text.chars().position(|own| own == letter).unwrap();
        let tick = ticks.chars().enumerate().filter(|(_, letter)| *letter == '┼').nth(1).unwrap().0;
        assert_eq!(column(&drawn, '●'), tick);
        assert!(column(&drawn, '├') < tick && column(&drawn, '┤') > tick);
        assert_eq!(axis.draw(0.01, Some((0.01, 0.01)), &[]).trim(), "●");
        assert_eq!(axis.draw(0.0, None, &[]).trim(), "");
    }

    #[test]
    fn a_small_range_has_ticks_too() {
        let axis = Axis::over([0.0101], Unit::Seconds, 30).unwrap();
        assert!(axis.drawn().1.contains('┼'), "{:?}", axis.drawn());
        assert_eq!(words(&axis.drawn().0), ["9.8", "ms", "10", "ms", "10.4", "ms"]);
        assert!(axis.draw(0.0101, None, &[0.0099]).contains('·'));
        assert!(Axis::over([0.0], Unit::Seconds, 30).is_none());
        // Numbers that only a damaged file holds are drawn all the same.
        for ends in [[1.0, f64::MAX], [5e-324, 1.0], [5e-324, f64::MAX], [5e-324; 2]] {
            let axis = Axis::over(ends, Unit::Seconds, 30).unwrap();
            assert_eq!((width(&axis.drawn().1), width(&axis.draw(1.0, None, &ends))), (30, 30), "{ends:?}");
        }
    }
}
