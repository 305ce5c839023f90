//! A table, for Markdown and for the page.

pub(super) struct Table {
    pub(super) title: String,
    pub(super) note: String,
    pub(super) head: Vec<String>,
    pub(super) rows: Vec<Vec<Item>>,
}

/// A cell of a table: its text, and the text shown to who points at it.
#[derive(Clone, Default)]
pub(super) struct Item {
    pub(super) text: String,
    pub(super) hover: String,
}

impl<T: Into<String>> From<T> for Item {
    fn from(text: T) -> Self {
        Self { text: text.into(), hover: String::new() }
    }
}

impl Table {
    pub(super) fn new(
        title: impl Into<String>,
        note: impl Into<String>,
        head: impl IntoIterator<Item = impl Into<String>>,
        rows: Vec<Vec<Item>>,
    ) -> Self {
        let head = head.into_iter().map(Into::into).collect();
        Self { title: title.into(), note: note.into(), head, rows }
    }

    /// Columns whose cells are words, which begin at the left; numbers end at the right.
    pub(super) fn words(&self) -> Vec<bool> {
        let is_word = |text: &str| {
            !text.starts_with(|c: char| c.is_ascii_digit() || matches!(c, '-' | '−' | '.' | '∞'))
        };
        let column = |at: usize| {
            let texts = self.rows.iter().filter_map(|row| Some(row.get(at)?.text.as_str()));
            let texts: Vec<&str> = texts.filter(|text| !text.is_empty()).collect();
            2 * texts.iter().filter(|text| is_word(text)).count() > texts.len()
        };
        (0..self.head.len()).map(column).collect()
    }

    /// As Markdown after its note, without its title.
    pub(super) fn markdown(&self) -> String {
        let line = |items: Vec<String>| format!("| {} |\n", items.join(" | "));
        let note = plain(&self.note);
        let mut text = if note.is_empty() { note } else { note + "\n\n" };
        text += &line(self.head.iter().map(|head| plain(head)).collect());
        text += &format!("|{}\n", "---|".repeat(self.head.len()));
        for row in &self.rows {
            text += &line(row.iter().map(|item| plain(&item.text)).collect());
        }
        text
    }
}

/// Without what Markdown takes for a column or a tag.
pub(super) fn plain(text: &str) -> String {
    text.replace('\\', "\\\\").replace('|', "\\|").replace('<', "&lt;").replace(['\n', '\r'], " ")
}

pub(super) fn listed<T: ToString>(all: impl IntoIterator<Item = T>) -> String {
    all.into_iter().map(|one| one.to_string()).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The cells of a column stand on one side, whatever their length.
    #[test]
    fn text_columns_are_left_aligned_in_every_row() {
        let row = |texts: [&str; 4]| texts.map(|text| Item::from(text.to_owned())).to_vec();
        let long = "(1, 1), (5, 5), (10, 10) and some more cells";
        let rows = vec![
            row(["better", "19 of 29", "(5, 5)", "1.5"]),
            row(["behind", "", long, "failed"]),
            row(["", "2", "", "0.1 (1 to 2)"]),
        ];
        let table =
            Table { title: String::new(), note: String::new(), head: vec![String::new(); 4], rows };
        assert_eq!(table.words(), [true, false, true, false]);
    }
}
