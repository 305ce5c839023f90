//! What turns a row of a table into the inputs of a network, and its outputs into names.

use tamis::store::wire;

use crate::Result;

/// The columns of a table that become inputs, the target, and the names of its classes.
///
/// A model file holds them (`docs/format.md`, tag 14), so that a table with columns in another
/// order, with text and missing cells is read as the one that the model was trained on.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Columns {
    /// The columns in the order of the inputs; none where the data are no table.
    pub inputs: Vec<Column>,
    /// The name of the column of labels; empty where it has none.
    pub target: String,
    /// The names of the classes; of a binary task those of 0 and 1. None for regression, and where
    /// labels are but 0, 1, ….
    pub classes: Vec<String>,
}

/// A column of a table, and the inputs that it becomes.
#[derive(Debug, Clone, PartialEq)]
pub struct Column {
    /// Its name; empty where the table has none.
    pub name: String,
    /// How its cells become inputs.
    pub kind: ColumnKind,
}

/// How the cells of a column become inputs.
#[derive(Debug, Clone, PartialEq)]
pub enum ColumnKind {
    /// A number is one input; `fill` stands for a missing one.
    Number {
        /// The mean of the training rows, or 0.
        fill: f32,
    },
    /// Text is one input for each category, which is 1 for its own and else 0.
    Text {
        /// The categories; an empty one is that of missing cells.
        categories: Vec<String>,
        /// Whether there is one more input, for all other categories.
        others: bool,
    },
}

/// How a text in a column of categories is missing, and the category that it is.
pub(super) const NO_TEXT: &str = "";

impl Column {
    /// Inputs of the network that the column becomes.
    #[must_use]
    pub fn width(&self) -> usize {
        match &self.kind {
            ColumnKind::Number { .. } => 1,
            ColumnKind::Text { categories, others } => categories.len() + usize::from(*others),
        }
    }
}

impl Columns {
    /// The name of a class, or its number.
    #[must_use]
    pub fn class(&self, class: usize) -> String {
        self.classes.get(class).cloned().unwrap_or_else(|| class.to_string())
    }

    /// Whether the columns have names, by which those of another table are found.
    #[must_use]
    pub fn are_named(&self) -> bool {
        self.inputs.iter().any(|column| !column.name.is_empty())
    }

    /// Inputs of the network.
    #[must_use]
    pub fn width(&self) -> usize {
        self.inputs.iter().map(Column::width).sum()
    }

    /// The name of an input, such as `age` or `sex=male`; none where its column has no name.
    #[must_use]
    pub fn input_name(&self, input: usize) -> Option<String> {
        let mut first = 0;
        let column = self.inputs.iter().find(|column| {
            first += column.width();
            input < first
        })?;
        if column.name.is_empty() {
            return None;
        }
        let at = input + column.width() - first;
        Some(match &column.kind {
            ColumnKind::Number { .. } => column.name.clone(),
            ColumnKind::Text { categories, .. } => match categories.get(at).map(String::as_str) {
                Some(NO_TEXT) => format!("{}=(missing)", column.name),
                Some(category) => format!("{}={category}", column.name),
                None => format!("{}=(other)", column.name),
            },
        })
    }

    /// Whether there is nothing that the numbers of a row do not say themselves.
    #[must_use]
    pub(crate) fn say_nothing(&self) -> bool {
        let plain = |column: &Column| {
            column.name.is_empty() && column.kind == ColumnKind::Number { fill: 0.0 }
        };
        self.inputs.iter().all(plain) && self.classes.is_empty() && self.target.is_empty()
    }

    /// What a model file says.
    ///
    /// # Errors
    /// The section is damaged.
    pub(crate) fn of(names: wire::Names<'_>) -> Self {
        let texts = |texts: wire::Texts<'_>| texts.map(str::to_owned).collect::<Vec<_>>();
        let column = |column: wire::InputColumn<'_>| Column {
            name: column.name.to_owned(),
            kind: match column.fill {
                Some(fill) => ColumnKind::Number { fill },
                None => {
                    ColumnKind::Text { categories: texts(column.categories), others: column.others }
                }
            },
        };
        Self {
            inputs: names.columns().map(column).collect(),
            target: names.target().to_owned(),
            classes: texts(names.classes()),
        }
    }

    /// The payload of the section of a model file.
    pub(crate) fn payload(&self) -> Result<Vec<u8>> {
        let mut out = Vec::new();
        let word = |out: &mut Vec<u8>, word: usize| out.extend((word as u32).to_le_bytes());
        let text = |out: &mut Vec<u8>, text: &str| {
            word(out, text.len());
            out.extend(text.as_bytes());
            out.resize(out.len().next_multiple_of(4), 0);
        };
        word(&mut out, self.classes.len());
        word(&mut out, self.inputs.len());
        text(&mut out, &self.target);
        self.classes.iter().for_each(|class| text(&mut out, class));
        for column in &self.inputs {
            match &column.kind {
                ColumnKind::Number { fill } => {
                    word(&mut out, 0);
                    text(&mut out, &column.name);
                    out.extend(fill.to_le_bytes());
                }
                ColumnKind::Text { categories, others } => {
                    word(&mut out, if *others { 3 } else { 1 });
                    text(&mut out, &column.name);
                    word(&mut out, categories.len());
                    categories.iter().for_each(|category| text(&mut out, category));
                }
            }
        }
        // Read as any reader will: what it would refuse is not written.
        wire::Names::parse(&out)?;
        Ok(out)
    }
}

/// The most names that a line shows.
const SHOWN: usize = 12;

/// Some texts with commas between them, and how many more there are.
pub(super) fn listed(texts: &[String]) -> String {
    let shown = texts.iter().take(SHOWN).map(|text| text.chars().take(60).collect::<String>());
    let shown = shown.collect::<Vec<_>>().join(", ");
    match texts.len().saturating_sub(SHOWN) {
        0 => shown,
        more => format!("{shown} and {more} more"),
    }
}

/// A name as notes and errors show it.
pub(super) fn shown(name: &str, column: usize) -> String {
    if name.is_empty() { format!("column {}", column + 1) } else { name.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn columns() -> Columns {
        let text = |categories: &[&str], others| ColumnKind::Text {
            categories: categories.iter().map(|&text| text.to_owned()).collect(),
            others,
        };
        let column = |name: &str, kind| Column { name: name.into(), kind };
        Columns {
            inputs: vec![
                column("age", ColumnKind::Number { fill: 38.5 }),
                column("käse", text(&["", "brie"], true)),
                column("sex", text(&["f", "m"], false)),
            ],
            target: "income".into(),
            classes: vec!["<=50K".into(), ">50K".into()],
        }
    }

    #[test]
    fn section_gives_back_what_was_written() {
        for columns in [columns(), Columns::default()] {
            let payload = columns.payload().unwrap();
            assert_eq!(Columns::of(wire::Names::parse(&payload).unwrap()), columns);
            for cut in 0..payload.len() {
                assert!(wire::Names::parse(&payload[..cut]).is_err(), "{cut}");
            }
        }
    }

    #[test]
    fn damaged_sections_are_refused_or_whole() {
        let payload = columns().payload().unwrap();
        let mut refused = 0;
        for at in 0..payload.len() {
            for byte in [0, 0x7f, 0xff] {
                let mut damaged = payload.clone();
                damaged[at] = byte;
                match wire::Names::parse(&damaged) {
                    Ok(names) => assert_eq!(names.columns().count(), 3),
                    Err(_) => refused += 1,
                }
            }
        }
        assert!(refused > payload.len() / 2, "{refused} of {}", 3 * payload.len());
    }

    #[test]
    fn inputs_are_named_by_column_and_category() {
        let columns = columns();
        let names: Vec<_> = (0..7).map(|input| columns.input_name(input)).collect();
        let expected = ["age", "käse=(missing)", "käse=brie", "käse=(other)", "sex=f", "sex=m"];
        assert_eq!(columns.width(), 6);
        assert!(
            names.iter().map(Option::as_deref).eq(expected.map(Some).into_iter().chain([None]))
        );
    }
}
