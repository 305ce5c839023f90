//! Labels as stacks are trained on them, in the memory of the numbers that they are.

use tamis::learn::loss::Labels;

use crate::data::Task;

/// Labels of a problem: numbers as they are, classes in 2 bytes each.
#[derive(Debug)]
pub(crate) enum HeldLabels {
    Values(Vec<f32>),
    /// The classes of so many rows, at the front of the memory of the numbers that they were.
    Classes {
        memory: Vec<f32>,
        rows: usize,
    },
}

impl HeldLabels {
    /// Classes give half of their memory back where there are `spare` bytes for a copy of the other half, which that takes.
    pub(crate) fn new(labels: Vec<f32>, task: Task, spare: usize) -> Self {
        if task == Task::Regression {
            return Self::Values(labels);
        }
        let (rows, mut memory) = (labels.len(), labels);
        let halves: &mut [u16] = bytemuck::cast_slice_mut(&mut memory);
        for at in 0..rows {
            let label: f32 = bytemuck::cast([halves[2 * at], halves[2 * at + 1]]);
            halves[at] = label as u16;
        }
        if rows * size_of::<u16>() <= spare {
            memory.truncate(rows.div_ceil(2));
            memory.shrink_to_fit();
        }
        Self::Classes { memory, rows }
    }

    /// As stacks of so many outputs are trained on them.
    pub(crate) fn labels(&self, outputs: usize) -> Labels<'_> {
        match self {
            Self::Values(values) => Labels::values(values),
            Self::Classes { memory, rows } => {
                Labels::classes(&bytemuck::cast_slice(memory)[..*rows], outputs)
            }
        }
    }

    /// The numbers again.
    pub(crate) fn into_numbers(self) -> Vec<f32> {
        match self {
            Self::Values(values) => values,
            Self::Classes { mut memory, rows } => {
                memory.reserve_exact(rows - memory.len());
                memory.resize(rows, 0.0);
                let halves: &mut [u16] = bytemuck::cast_slice_mut(&mut memory);
                for at in (0..rows).rev() {
                    let label: [u16; 2] = bytemuck::cast(f32::from(halves[at]));
                    halves[2 * at..][..2].copy_from_slice(&label);
                }
                memory
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_lie_where_the_labels_lay_and_come_back() {
        for labels in [vec![], vec![3.0], vec![0.0, 65535.0, 2.0, 2.0, 511.0]] {
            let classes: Vec<u16> = labels.iter().map(|&label| label as u16).collect();
            for spare in [0, 100] {
                let held = HeldLabels::new(labels.clone(), Task::Multiclass, spare);
                let Labels::Classes(own) = held.labels(70_000) else { unreachable!() };
                assert_eq!(own.labels, &classes);
                assert_eq!(held.into_numbers(), labels);
            }
        }
    }
}
