//! A matrix with the names of its columns.

use super::Matrix;
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
        let mut named = (0..names.len()).filter(|&i| names[i] == target);
        match (named.next(), named.next(), target.parse::<usize>()) {
            (Some(column), None, _) => Ok(column),
            (Some(_), Some(_), _) => {
                Err(Error::new(format!("several columns are named {target:?}"))
                    .help("pass the number of the column, counted from 1"))
            }
            (.., Ok(number)) if (1..=self.matrix.cols).contains(&number) => Ok(number - 1),
            _ => Err(self.no_column(target)),
        }
    }

    fn no_column(&self, target: &str) -> Error {
        let numbers = format!("a number from 1 to {}", self.matrix.cols);
        let names = self.names.as_deref().unwrap_or_default();
        let listed =
            names.iter().take(20).map(|name| format!("{name:?}")).collect::<Vec<_>>().join(", ");
        let expected = match names.len() {
            0 => numbers,
            1..=20 => format!("{listed} or {numbers}"),
            _ => format!("{listed}, … or {numbers}"),
        };
        Error::new("no such column")
            .mismatch(expected, format_args!("{target:?}"))
            .help("pass the name of a column, or its number, to --target")
    }
}
