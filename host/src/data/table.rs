//! A matrix with the names of its columns.

use super::Matrix;
use super::columns::shown;
use crate::{Error, Result};

/// A matrix with the names of its columns, where the file has them.
#[derive(Debug, Clone, PartialEq)]
pub struct Table {
    /// The rows.
    pub matrix: Matrix,
    /// One name per column.
    pub names: Option<Vec<String>>,
}

impl Table {
    /// Takes the column `target`, a name or a number counted from 1, out of the table: inputs and
    /// labels. In place.
    ///
    /// # Errors
    /// No such column, several of that name, or no other column.
    ///
    /// ```
    /// use tamis_host::data::{Source, csv};
    /// let table = csv::read(Source::bytes(b"width,height,class\n1.5,2,0\n3,4,1\n")).unwrap();
    /// let (inputs, labels) = table.split("class").unwrap();
    /// assert_eq!((inputs.cols, labels), (2, vec![0.0, 1.0]));
    /// ```
    pub fn split(self, target: &str) -> Result<(Matrix, Vec<f32>)> {
        let column = self.column(target)?;
        let Self { mut matrix, .. } = self;
        let labels = matrix.take_column(column)?;
        Ok((matrix, labels))
    }

    /// The column that `target` means, counted from 0.
    fn column(&self, target: &str) -> Result<usize> {
        let names = self.names.as_deref().unwrap_or_default();
        column_index(names, self.matrix.cols, target, "--target")
    }
}

/// The column that a name, or else a number counted from 1, means; counted from 0.
///
/// # Errors
/// No such column, or several of that name; `flag` is where it was named.
pub(super) fn column_index(
    names: &[String],
    cols: usize,
    wanted: &str,
    flag: &str,
) -> Result<usize> {
    let mut named = (0..names.len()).filter(|&i| names[i] == wanted);
    match (named.next(), named.next(), wanted.parse::<usize>()) {
        (Some(column), None, _) => Ok(column),
        (Some(_), Some(_), _) => Err(Error::new(format!("several columns are named {wanted:?}"))
            .expected("a name that one column has")
            .got("several")
            .help("pass the number of the column, counted from 1")),
        (.., Ok(number)) if (1..=cols).contains(&number) => Ok(number - 1),
        // As columns without a name are called.
        _ if let Some(column) =
            (0..names.len()).find(|&i| names[i].is_empty() && shown("", i) == wanted) =>
        {
            Ok(column)
        }
        _ => Err(no_column(names, cols, wanted, flag)),
    }
}

fn no_column(names: &[String], cols: usize, wanted: &str, flag: &str) -> Error {
    let numbers = format!("a number from 1 to {cols}");
    let listed =
        names.iter().take(20).map(|name| format!("{name:?}")).collect::<Vec<_>>().join(", ");
    let expected = match names.len() {
        0 => numbers,
        1..=20 => format!("{listed} or {numbers}"),
        _ => format!("{listed}, … or {numbers}"),
    };
    let help = match nearest(names, wanted) {
        Some(name) => format!("did you mean {flag} {name}?"),
        None => format!("pass the name of a column, or its number, to {flag}"),
    };
    Error::new("no such column").mismatch(expected, format_args!("{wanted:?}")).help(help)
}

/// The name that is most like `wanted`, if one is alike.
pub(super) fn nearest<'n>(names: &'n [String], wanted: &str) -> Option<&'n str> {
    let folded = wanted.to_lowercase();
    let far = |name: &String| edits(&name.to_lowercase(), &folded);
    let (most, name) = names.iter().map(|name| (far(name), name)).min()?;
    let is_start = folded.len() >= 3 && name.to_lowercase().starts_with(&folded);
    let letters = wanted.chars().count();
    (most <= (1 + letters / 4).min(letters.saturating_sub(1)) || is_start).then_some(name)
}

/// Letters to insert, remove or change, to make one text the other.
fn edits(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut last: Vec<usize> = (0..=b.len()).collect();
    for (i, a) in a.chars().enumerate() {
        let mut diagonal = std::mem::replace(&mut last[0], i + 1);
        for (j, b) in b.iter().enumerate() {
            let change = diagonal + usize::from(a != *b);
            diagonal = last[j + 1];
            last[j + 1] = change.min(last[j] + 1).min(diagonal + 1);
        }
    }
    last[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn misspelt_columns_are_recognised() {
        let names = ["diagnosis", "radius", "4"].map(String::from);
        assert_eq!(nearest(&names, "diagnose"), Some("diagnosis"));
        assert_eq!(nearest(&names, "Radius"), Some("radius"));
        assert_eq!((nearest(&names, "price"), nearest(&names, "y")), (None, None));
        assert_eq!((edits("kitten", "sitting"), edits("", "ab")), (3, 2));
        // A name wins over a number.
        assert_eq!(column_index(&names, 9, "4", "--target").unwrap(), 2);
        assert_eq!(column_index(&names, 9, "5", "--target").unwrap(), 4);
    }
}
