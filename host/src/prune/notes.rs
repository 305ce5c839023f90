//! What there is to say of a result.

use super::report::{PruneReport, Quality};
use crate::data::{Problem, Task};

/// What a result is held against.
pub(super) struct Asked<'a> {
    /// Neurons of each hidden layer, where they were given.
    pub(super) hidden: Option<&'a [usize]>,
    /// Neurons that were left of them before weights were cut.
    pub(super) grouped: &'a [usize],
    /// Inputs, where they were given.
    pub(super) inputs: Option<usize>,
    /// Rows that neurons were fitted to.
    pub(super) rows: Option<usize>,
    /// Whether the model has a path from an input to an output.
    pub(super) has_path: bool,
    /// How good one prediction for all rows is.
    pub(super) constant: Option<Quality>,
    /// Whether networks to compare with were asked for.
    pub(super) is_compared: bool,
}

impl Quality {
    /// The quality of the best prediction that is the same for every row of these: the most
    /// frequent class, or the mean of each output.
    pub(super) fn of_constant(rows: &Problem) -> Self {
        let labels = &rows.labels;
        if rows.task == Task::Regression {
            let outputs = rows.outputs().max(1);
            let loss = |k: usize| {
                let own = || labels.iter().skip(k).step_by(outputs).map(|&y| f64::from(y));
                let count = own().count().max(1) as f64;
                let mean = own().sum::<f64>() / count;
                own().map(|y| (y - mean).powi(2)).sum::<f64>() / count
            };
            let loss = (0..outputs).map(loss).sum::<f64>() / outputs as f64;
            return Self { loss: Some(loss), ..Self::default() };
        }
        let mut counts = std::collections::BTreeMap::new();
        labels.iter().for_each(|&y| *counts.entry(y as u64).or_insert(0_usize) += 1);
        let most = counts.into_values().max().unwrap_or(0);
        Self { accuracy: Some(most as f64 / labels.len().max(1) as f64), ..Self::default() }
    }
}

/// What there is to say of a result.
pub(super) fn notes(report: &PruneReport, asked: &Asked<'_>) -> Vec<String> {
    let mut notes = Vec::new();
    let own = Quality { loss: report.loss, accuracy: report.accuracy, psnr_db: report.psnr_db };
    if report.samples == 0 {
        notes.push("pruned only: fine-tuning takes --data and --labels".to_owned());
    }
    notes.extend(size(report, asked));
    notes.extend(quality(report, asked, &own));
    if asked.is_compared && report.epochs > 0 && report.structured.is_none() {
        notes.push(
            "no networks to compare with: no neuron or input was cut, so that the model is \
             `unstructured` itself"
                .to_owned(),
        );
    }
    let obvious = [
        (
            &report.scratch_pruned,
            "a network of the same widths, trained from nothing and pruned to the same nonzeros",
        ),
        (&report.unstructured, "pruning by magnitude alone, without cutting neurons,"),
    ];
    let scratch = "a dense network of the same widths, trained from nothing";
    let scratch = report
        .scratch
        .as_ref()
        .filter(|scratch| scratch.nnz <= report.nnz)
        .map(|_| (&report.scratch, scratch));
    for (compared, what) in scratch.into_iter().chain(obvious) {
        if compared.as_ref().is_some_and(|compared| own.is_below(&compared.quality)) {
            notes.push(format!("{what}, is better on these rows"));
        }
    }
    notes
}

/// Numbers as the flag takes them.
fn counts(widths: &[usize]) -> String {
    widths.iter().map(ToString::to_string).collect::<Vec<_>>().join(",")
}

/// Of neurons that are not there.
fn size(report: &PruneReport, asked: &Asked<'_>) -> Vec<String> {
    let mut notes = Vec::new();
    if !asked.has_path {
        notes.push(
            "nothing connects an input with an output: the model gives the same for every row"
                .to_owned(),
        );
    }
    let own = &report.widths[1..report.widths.len() - 1];
    if let Some(hidden) = asked.hidden.filter(|hidden| *hidden != own) {
        let [is_unconnected, is_cut] = [asked.grouped != hidden, asked.grouped != own];
        let cut = || format!("the {} nonzeros of --nnz leave no path through ", report.nnz);
        let unconnected = "lie on no path from an input to an output of the network";
        let why = match (is_unconnected, is_cut) {
            (true, true) => {
                let grouped = counts(asked.grouped);
                format!("those beyond {grouped} {unconnected}, and {}the rest", cut())
            }
            (false, true) => format!("{}the others", cut()),
            _ => format!("the others {unconnected}"),
        };
        let (hidden, are) = (counts(hidden), if own == [1] { "neuron is" } else { "neurons are" });
        notes.push(format!("{} {are} left of --neurons {hidden}: {why}", counts(own)));
    }
    if let Some(inputs) = asked.inputs.filter(|inputs| report.inputs_read < *inputs) {
        let are = if report.inputs_read == 1 { "input is" } else { "inputs are" };
        notes.push(format!(
            "{} {are} read of --inputs {inputs}: no weight is left of the others",
            report.inputs_read
        ));
    }
    let most = asked.hidden.and_then(|hidden| hidden.iter().max());
    if let Some((rows, most)) = asked.rows.zip(most).filter(|(rows, most)| rows < most) {
        notes.push(format!(
            "{rows} rows do not determine the weights of {most} neurons: greedy takes more rows \
             than neurons that stay"
        ));
    }
    notes
}

/// Of a model that is worse than it could be without its training.
fn quality(report: &PruneReport, asked: &Asked<'_>, own: &Quality) -> Vec<String> {
    let mut notes = Vec::new();
    let pruned = Quality {
        loss: report.loss_pruned,
        accuracy: report.accuracy_pruned,
        psnr_db: report.psnr_db_pruned,
    };
    if report.epochs > 0 && own.is_below(&pruned) {
        notes.push(
            "fine-tuning made it worse than the network pruned at once: lower --rate, or pass \
             --epochs 0"
                .to_owned(),
        );
    }
    if asked.constant.is_some_and(|constant| own.is_below(&constant)) {
        let constant = if own.accuracy.is_some() { "the most frequent class" } else { "the mean" };
        notes.push(format!("it is worse than {constant} as the prediction for every row"));
    }
    notes
}
