//! Labels of tasks with several classes.

use crate::data::select;
use crate::{Error, Result};

/// The most classes: outputs of a layer of a model.
pub(super) const MOST: usize = tamis::infer::model::MAX_INPUTS;

/// Labels as classes 0, 1, …: the positions in `keep`, or, without it, the labels themselves.
pub(crate) fn labels(labels: Vec<f32>, keep: Option<&[f32]>) -> Result<Vec<f32>> {
    if let Some(keep) = keep {
        return select::class_indices(&labels, keep);
    }
    match labels.iter().position(|&label| !is_class(label)) {
        None => Ok(labels),
        Some(row) => Err(Error::new("a label is no class")
            .expected(format_args!("whole numbers from 0 to {}", MOST - 1))
            .got(format_args!("{} in row {row} (counted from 0)", labels[row]))
            .help("name the classes with --keep-labels A,B,…, or use --task regression")),
    }
}

/// Checks that rows are not all of one class; `expected` names the labels.
pub(super) fn check_several(labels: &[f32], expected: &str) -> Result<()> {
    let first = labels.first().copied().unwrap_or(0.0);
    if labels.iter().any(|&label| label != first) {
        return Ok(());
    }
    Err(Error::new("there is nothing to tell apart")
        .expected(expected)
        .got(format_args!("{first} in all {} rows", labels.len()))
        .help("check which file the labels come from"))
}

/// Checks that each class has rows.
pub(super) fn check(labels: &[f32], classes: usize) -> Result<()> {
    let mut seen = vec![false; classes];
    for &label in labels {
        seen[label as usize] = true;
    }
    match seen.iter().position(|&seen| !seen) {
        None => Ok(()),
        Some(class) => Err(Error::new("a class has no rows")
            .expected(format_args!("labels 0 to {}, each at least once", classes - 1))
            .got(format_args!("no row with label {class}"))
            .help("name the classes that there are with --keep-labels A,B,…: they become 0, 1, …")),
    }
}

/// Checks labels that a model of `classes` outputs is scored on; they may be positions in `keep`.
pub(crate) fn check_known(labels: &[f32], keep: Option<&[f32]>, classes: usize) -> Result<()> {
    if let Some(keep) = keep
        && keep.len() > classes
    {
        return Err(Error::new("more labels are kept than the model has classes")
            .expected(format_args!("--keep-labels with at most {classes} labels"))
            .got(format_args!("{} labels", keep.len()))
            .help("pass the --keep-labels of the training, in the same order"));
    }
    let is_anew = |keep: &[f32]| (0_u16..).zip(keep).any(|(k, &label)| label != f32::from(k));
    if let Some(keep) = keep.filter(|keep| keep.len() < classes && is_anew(keep)) {
        return Err(Error::new("--keep-labels would number some classes of the model anew")
            .expected(format_args!("{classes} labels, each at the place of its class"))
            .got(format_args!("{} labels, of which {} would be class 0", keep.len(), keep[0]))
            .help(
                "name all labels that the model was trained with, in their order, or leave \
                    --keep-labels out",
            ));
    }
    match labels.iter().position(|&label| label as usize >= classes) {
        None => Ok(()),
        Some(row) => Err(Error::new("a label is none of the model's classes")
            .expected(format_args!("0 to {}", classes - 1))
            .got(format_args!("{} in row {row} (counted from 0)", labels[row]))
            .help("pass the --keep-labels of the training, in the same order")),
    }
}

fn is_class(label: f32) -> bool {
    label >= 0.0 && label < MOST as f32 && label.fract() == 0.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_are_classes_or_are_named() {
        assert_eq!(labels(vec![0.0, 2.0], None).unwrap(), [0.0, 2.0]);
        assert_eq!(labels(vec![7.0, -1.0, 7.0], Some(&[-1.0, 7.0])).unwrap(), [1.0, 0.0, 1.0]);
        for wrong in [-1.0, 0.5, f32::NAN, f32::INFINITY, 65536.0] {
            let error = labels(vec![0.0, wrong], None).unwrap_err().to_string();
            assert!(error.contains("in row 1") && error.contains("whole numbers"), "{error}");
        }
    }

    #[test]
    fn holes_and_single_classes_are_named() {
        assert!(check(&[0.0, 1.0, 2.0], 3).is_ok());
        assert!(
            check(&[0.0, 2.0, 2.0], 3).unwrap_err().to_string().contains("no row with label 1")
        );
        let one = check_several(&[2.0, 2.0], "several").unwrap_err().to_string();
        assert!(one.contains("2 in all 2 rows"), "{one}");
        assert!(check_several(&[2.0, 0.0], "several").is_ok());
        assert!(check_known(&[0.0, 2.0], None, 3).is_ok());
        assert!(check_known(&[0.0, 3.0], None, 3).unwrap_err().to_string().contains("3 in row 1"));
        let keep = Some(&[7.0, 8.0, 9.0, 4.0][..]);
        assert!(
            check_known(&[0.0, 1.0], keep, 3).unwrap_err().to_string().contains("at most 3 labels")
        );
    }
}
