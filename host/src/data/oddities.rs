//! What looks wrong in data to learn from; it is said, and nothing is changed.

use super::columns::{Columns, listed, shown};
use super::{Matrix, Problem, Task, Values};

/// Rows, evenly spread, that say how far the numbers of a column lie apart.
const ROWS: usize = 4096;
/// The share of the numbers that are near the median.
const NEAR: f64 = 0.99;
/// So many times as far as these, a number is worth a word.
const FAR: f32 = 1000.0;

/// What there is to say of the rows, their labels and the names of the classes.
pub(super) fn of(problem: &Problem, columns: &Columns) -> Vec<String> {
    let Problem { data, labels, task } = problem;
    let classes = match task {
        Task::Regression => vec![constant(labels)],
        Task::Binary | Task::Multiclass => {
            vec![lonely(&problem.class_rows(), &columns.classes), alike(&columns.classes)]
        }
    };
    classes.into_iter().chain([far(data, columns)]).flatten().collect()
}

/// Labels of one number.
fn constant(labels: &[f32]) -> Option<String> {
    let first = labels.first()?;
    let is_said = labels.len() > 1 && labels.iter().all(|label| label == first);
    is_said.then(|| format!("warning: all labels are {first}, and there is nothing to learn"))
}

/// Classes of a single row.
fn lonely(counts: &[usize], names: &[String]) -> Option<String> {
    let lonely = counts.iter().enumerate().filter(|(_, count)| **count == 1);
    let name = |class: usize| names.get(class).cloned().unwrap_or_else(|| class.to_string());
    let lonely: Vec<String> = lonely.map(|(class, _)| name(class)).collect();
    let is_said = !lonely.is_empty() && counts.iter().sum::<usize>() > 2 * counts.len();
    let lonely = listed(&lonely);
    is_said.then(|| format!("classes of a single row, which can hardly be learnt: {lonely}"))
}

/// Classes whose names differ only in capitals and blanks.
fn alike(names: &[String]) -> Option<String> {
    let plain = |name: &String| name.split_whitespace().collect::<String>().to_lowercase();
    let mut sorted: Vec<(String, &String)> = names.iter().map(|name| (plain(name), name)).collect();
    sorted.sort();
    let equal = sorted.chunk_by(|(a, _), (b, _)| a == b).filter(|of| of.len() > 1).flatten();
    let equal: Vec<String> = equal.map(|(_, name)| format!("{name:?}")).collect();
    let is_said = !equal.is_empty();
    is_said
        .then(|| format!("warning: classes differ only in capitals or blanks: {}", listed(&equal)))
}

/// Columns with a number that is much farther from the median than nearly all others: often a wrong one.
fn far(data: &Matrix, columns: &Columns) -> Option<String> {
    let Values::F32(values) = &data.values else { return None };
    let (rows, cols) = (data.rows, data.cols);
    let mut farthest = vec![[f32::MAX, f32::MIN]; cols];
    for row in values.chunks_exact(cols.max(1)) {
        for ([low, high], &value) in farthest.iter_mut().zip(row) {
            (*low, *high) = (low.min(value), high.max(value));
        }
    }
    let taken = rows.min(ROWS);
    let number = |(column, [low, high]): (usize, &[f32; 2])| {
        let row = |at: usize| values[at * rows / taken * cols + column];
        let mut some: Vec<f32> = (0..taken).map(row).collect();
        let (_, &mut median, _) = some.select_nth_unstable_by(taken / 2, f32::total_cmp);
        some.iter_mut().for_each(|value| *value = (*value - median).abs());
        let at = ((taken as f64 * NEAR) as usize).min(taken - 1);
        let (_, &mut near, _) = some.select_nth_unstable_by(at, f32::total_cmp);
        let end = if median - low > high - median { *low } else { *high };
        // Where nearly all are the same, another number may be anything.
        let is_far = near > 0.0 && (end - median).abs() > FAR * near;
        let name = columns.input_name(column).unwrap_or_else(|| shown("", column));
        is_far.then(|| format!("{end} in {name}"))
    };
    if taken == 0 {
        return None;
    }
    let far: Vec<String> = farthest.iter().enumerate().filter_map(number).collect();
    let is_said = !far.is_empty();
    is_said.then(|| {
        format!(
            "warning: numbers 1000 times as far from the median as 99 % of their column: {}",
            listed(&far)
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(classes: &[&str]) -> Columns {
        Columns { classes: classes.iter().map(|&name| name.into()).collect(), ..Columns::default() }
    }

    fn said(values: Vec<f32>, labels: Vec<f32>, task: Task, classes: &[&str]) -> Vec<String> {
        let data = Matrix { rows: labels.len(), cols: 1, values: Values::F32(values) };
        of(&Problem { data, labels, task }, &named(classes))
    }

    #[test]
    fn only_odd_data_are_spoken_of() {
        let rows: Vec<f32> = (0..300).map(|k| (k * 7 % 300) as f32 - 5.0).collect();
        let halves: Vec<f32> = (0..300).map(|k| (k % 2) as f32).collect();
        let none: [&str; 0] = [];
        assert_eq!(said(rows.clone(), halves.clone(), Task::Binary, &["no", "yes"]), none);
        let mut odd = rows.clone();
        odd[7] = -1e9;
        let notes = said(odd, halves, Task::Binary, &["Yes", " yes"]);
        assert!(notes[0].contains("\" yes\", \"Yes\""), "{notes:?}");
        assert!(notes[1].contains("-1000000000 in column 1"), "{notes:?}");
        assert!(said(rows, vec![3.0; 300], Task::Regression, &[])[0].contains("all labels are 3"));
        // A column that is nearly always 0 has numbers of any size.
        let mut rare = vec![0.0; 300];
        rare[9] = 1e6;
        assert_eq!(said(rare, (0..300).map(|k| k as f32).collect(), Task::Regression, &[]), none);
    }
}
