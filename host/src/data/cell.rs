//! What one cell of a table is: a number, a mark of a missing value, or text.

/// Whether a cell marks a missing value.
pub(super) fn is_missing(cell: &str) -> bool {
    let marks = ["", "-", "?", "na", "n/a", "#n/a", "nan", "null", "none", "<na>"];
    let cell = cell.trim();
    marks.iter().any(|mark| cell.eq_ignore_ascii_case(mark))
}

/// The number that a cell is, if it is one: a comma may be its decimal point where none separates.
pub(super) fn number(cell: &str, decimal_comma: bool) -> Option<f32> {
    let cell = cell.trim();
    if decimal_comma && cell.contains(',') {
        return cell.replacen(',', ".", 1).parse().ok();
    }
    cell.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_of_missing_values_are_known() {
        for cell in ["", " ", "NA", "NaN", "null", "?", " n/a "] {
            assert!(is_missing(cell), "{cell:?}");
        }
        assert!(!is_missing("0") && !is_missing("nano") && !is_missing("--"));
    }
}
