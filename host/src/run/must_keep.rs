//! Weights that stay whatever their size, by the names that people give them: neuron and input.

use tamis::dims::Dims;

use crate::{Error, Result};

/// The flat indices of weights that are named by neuron and input, both from 0, for networks of so many neurons and inputs: what
/// `must_keep` of the core's settings takes. They may come in any order.
///
/// The run keeps the numbers of its neurons; a model numbers those that have weights, in the same order.
///
/// # Errors
/// A neuron or an input that there is not, or a weight that is named twice.
///
/// ```
/// use tamis::{dims::Dims, gates::Signs};
/// use tamis_host::{data::planted, operator::Stop, run::{self, Options, Problem, Size, Task}};
///
/// let planted = planted::network(Dims::new(600, 16, 1, 3), Signs::Positive, 1)?;
/// let unused = (0..16).find(|j| !planted.index.contains(j)).unwrap();
/// let problem = Problem { data: planted.data, labels: planted.labels, task: Task::Regression };
/// // The three weights that made the labels, and one that did not.
/// let keep = run::must_keep(&[(0, unused as usize)], (1, 16))?;
/// let options = Options::new(1, Size::Nonzeros(4)).keeping(&keep);
/// let outcome = run::train(problem, &options, &Stop::new(), |_| true)?;
/// assert!(outcome.index.contains(&unused) && outcome.report.nnz == 4);
/// # Ok::<(), tamis_host::Error>(())
/// ```
pub fn must_keep(named: &[(usize, usize)], (hidden, inputs): (usize, usize)) -> Result<Vec<u32>> {
    let within = |what: &str, bound: usize, at: usize, weight: (usize, usize)| {
        if at < bound {
            return Ok(());
        }
        Err(Error::new(format!("a weight to keep is from {what} that there is not"))
            .expected(format_args!("--must-keep NEURON:INPUT with a neuron below {hidden} and an input below {inputs}"))
            .got(format_args!("{}:{}", weight.0, weight.1))
            .help("neurons are counted from 0 up to --hidden, inputs from 0 in the order of the columns, without the labels"))
    };
    let mut flat = Vec::with_capacity(named.len());
    for &(neuron, input) in named {
        within("a neuron", hidden, neuron, (neuron, input))?;
        within("an input", inputs, input, (neuron, input))?;
        flat.push((neuron * inputs + input) as u32);
    }
    flat.sort_unstable();
    match flat.windows(2).find(|pair| pair[0] == pair[1]) {
        None => Ok(flat),
        Some(pair) => Err(Error::new("a weight to keep is named twice")
            .expected("every weight once in --must-keep")
            .got(format_args!("{} more than once", name(pair[0], inputs)))
            .help("leave the second one out: it would count twice in --nnz")),
    }
}

/// Checks flat indices against the sizes of a run, where `outputs` says whether weights to outputs count in s too.
pub(super) fn check(keep: &[u32], dims: &Dims, outputs: bool) -> Result<()> {
    let most = dims.nnz - usize::from(outputs);
    if keep.len() > most {
        let why = if outputs { ", of which one is left for a weight to an output" } else { "" };
        return Err(Error::new("more weights are to be kept than there may be")
            .expected(format_args!("at most {most} in --must-keep: they count in --nnz {}{why}", dims.nnz))
            .got(keep.len())
            .help("raise --nnz, or name fewer weights"));
    }
    let all = dims.hidden * dims.inputs;
    if let Some(&last) = keep.iter().find(|&&j| j as usize >= all) {
        return Err(Error::new("a weight to keep is out of bounds")
            .expected(format_args!(
                "flat indices below {all} ({} hidden × {} inputs)",
                dims.hidden, dims.inputs
            ))
            .got(last)
            .help("call must_keep, which makes them of neurons and inputs"));
    }
    match keep.windows(2).find(|pair| pair[0] >= pair[1]) {
        None => Ok(()),
        Some(pair) => Err(Error::new("the weights to keep are not in order")
            .expected("flat indices that rise")
            .got(format_args!("{} before {}", pair[0], pair[1]))
            .help("call must_keep, which sorts them")),
    }
}

/// A weight as it is named on the command line.
fn name(flat: u32, inputs: usize) -> String {
    format!("{}:{}", flat as usize / inputs, flat as usize % inputs)
}
