//! What cannot be done, refused before any work.

use tamis::infer::model::{MAX_INPUTS, MAX_LAYERS};

use super::network::Mlp;
use super::options::{Neurons, PruneOptions, Structured};
use super::source::PruneRows;
use crate::base::check_setting;
use crate::{Error, Result};

/// Epochs of a training at the most: each has up to eight rounds of pruning, which are reported.
const MOST_EPOCHS: u32 = 100_000;

/// Checks what is asked for against the network; `hidden` are the neurons that stay.
pub(super) fn check(
    mlp: &Mlp,
    hidden: &[usize],
    structured: Structured,
    rows: &PruneRows,
    options: &PruneOptions,
) -> Result<()> {
    check_any(mlp, hidden, options)?;
    check_inputs(mlp, options)?;
    check_method(structured, rows)?;
    let PruneOptions { rate, batch, lasso, .. } = options;
    let help = "leave --rate out for the default";
    check_setting(rate.is_finite() && *rate > 0.0, "--rate above 0", rate, help)?;
    for (epochs, flag) in [(options.epochs, "--epochs"), (options.lasso_epochs, "--lasso-epochs")] {
        let epochs = epochs.unwrap_or(0);
        if epochs > MOST_EPOCHS {
            return Err(Error::usage("a setting is out of bounds")
                .expected(format_args!("{flag} 0 to {MOST_EPOCHS}"))
                .got(epochs)
                .help(format!("leave {flag} out for the default")));
        }
    }
    check_setting(*batch > 0, "--batch 1 or more", batch, "leave --batch out for the default")?;
    let holds = lasso.lambda.is_finite() && lasso.lambda > 0.0;
    let help = "leave --lambda out for the default";
    check_setting(holds, "--lambda above 0", lasso.lambda, help)?;
    let holds = lasso.beta.is_finite() && lasso.beta > 0.0;
    check_setting(holds, "--beta above 0", lasso.beta, "leave --beta out for the default")
}

/// Checks the hidden layers of a dense network.
pub(super) fn check_dense(hidden: &[usize]) -> Result<()> {
    let holds = (1..MAX_LAYERS).contains(&hidden.len())
        && hidden.iter().all(|width| (1..MAX_INPUTS).contains(width));
    let most = MAX_LAYERS - 1;
    let expected =
        format!("--hidden with 1 to {most} numbers from 1 to {}, such as 300,100", MAX_INPUTS - 1);
    let got = hidden.iter().map(ToString::to_string).collect::<Vec<_>>().join(",");
    let help = "pass the widths of the dense network that is trained first";
    check_setting(holds, expected, if got.is_empty() { "none".into() } else { got }, help)
}

/// Checks numbers of neurons against the hidden layers.
pub(super) fn check_widths(own: &[usize], asked: &[usize]) -> Result<()> {
    let fits =
        own.len() == asked.len() && own.iter().zip(asked).all(|(own, n)| (1..=*own).contains(n));
    if fits && !own.is_empty() {
        return Ok(());
    }
    let most: Vec<_> = own.iter().map(ToString::to_string).collect();
    let layers = own.len();
    let s = if layers == 1 { "" } else { "s" };
    Err(Error::new("the numbers of neurons do not fit the network")
        .expected(match layers {
            0 => "no --neurons: the network has no hidden layer".to_owned(),
            _ => format!("{layers} number{s}, each from 1 and at most {}", most.join(", ")),
        })
        .got(format_args!(
            "--neurons {}",
            asked.iter().map(ToString::to_string).collect::<Vec<_>>().join(",")
        ))
        .help("pass one number for each hidden layer, such as --neurons 20,12 for two"))
}

fn check_any(mlp: &Mlp, hidden: &[usize], options: &PruneOptions) -> Result<()> {
    let is_given = matches!(options.neurons, Neurons::Each(_)) && hidden != mlp.hidden();
    let has_inputs = options.inputs.is_some_and(|inputs| inputs != mlp.layers[0].inputs);
    if is_given || has_inputs || options.nnz.is_some() {
        return Ok(());
    }
    let widths: Vec<_> = mlp.widths().iter().map(ToString::to_string).collect();
    Err(Error::usage("there is nothing to prune")
        .expected("fewer --neurons or --inputs than the network has, or --nnz")
        .got(format_args!("a network of widths {}", widths.join(", ")))
        .help("pass --neurons 20,12, --inputs 100 or --nnz 1000"))
}

fn check_inputs(mlp: &Mlp, options: &PruneOptions) -> Result<()> {
    let Some(inputs) = options.inputs else { return Ok(()) };
    let most = mlp.layers[0].inputs;
    let expected = format!("--inputs 1 to {most}, the inputs of the network");
    check_setting((1..=most).contains(&inputs), expected, inputs, "choose how many inputs are read")
}

/// The most nonzeros of a network whose weights are trained, once its groups are cut.
pub(super) fn most_trained(mlp: &Mlp, hidden: &[usize], options: &PruneOptions) -> usize {
    let inputs = options.inputs.unwrap_or(mlp.layers[0].inputs);
    let layers = mlp.layers.len();
    let outputs = mlp.layers[layers - 1].outputs;
    let widths = [&[inputs], hidden, &[outputs]].concat();
    let counted = mlp.counted();
    let biases = |l: usize| if counted[l].bias.is_empty() { 0 } else { widths[l + 1] };
    let dense = (0..counted.len()).map(|l| widths[l] * widths[l + 1] + biases(l));
    dense.sum::<usize>().min(mlp.nnz())
}

/// The nonzeros on paths of a network whose groups are cut: the most where nothing is trained.
///
/// # Errors
/// There are none.
pub(super) fn most_untrained(mlp: &Mlp) -> Result<usize> {
    let most = mlp.nnz() - mlp.dead_weights();
    if mlp.has_path() {
        return Ok(most);
    }
    Err(Error::new("nothing of the network connects an input with an output")
        .expected("a path from an input to an output")
        .got("none in what is left of the network")
        .help("keep more neurons or inputs, or choose them by another --structured"))
}

/// Checks the nonzeros asked for against the most that there can be.
pub(super) fn check_nnz(
    mlp: &Mlp,
    hidden: &[usize],
    nnz: usize,
    most: usize,
    options: &PruneOptions,
) -> Result<()> {
    let counted = mlp.counted();
    // Where inputs are centred each neuron that reads some has a bias.
    let biases = |neurons: usize| if mlp.is_centred { neurons } else { 0 };
    let (least, why) = match options.neurons {
        Neurons::Each(_) => {
            let first = biases(hidden.first().copied().unwrap_or(1));
            (hidden.iter().sum::<usize>().max(counted.len()) + first, "a weight a neuron")
        }
        _ => (counted.len() + biases(1), "a path from an input to an output"),
    };
    if (least..=most).contains(&nnz) {
        return Ok(());
    }
    let range = match (least, most) {
        (least, most) if least <= most => format!("--nnz {least} to {most}"),
        _ => format!("fewer --neurons, since {most} nonzeros are left on paths"),
    };
    Err(Error::new("the network cannot have as many nonzeros as asked for")
        .expected(format_args!("{range}: {why} at least, and at most what its neurons have"))
        .got(nnz)
        .help("choose another --nnz, or other --neurons or --inputs"))
}

fn check_method(structured: Structured, rows: &PruneRows) -> Result<()> {
    let (expected, got) = match (structured, rows) {
        (Structured::Lasso, PruneRows::None) => ("--data and --labels", "no rows"),
        (Structured::Lasso, PruneRows::Samples(_)) => ("--labels", "rows without labels"),
        (Structured::Greedy, PruneRows::None) => ("--data", "no rows"),
        _ => return Ok(()),
    };
    Err(Error::new("the method chooses neurons on rows")
        .mismatch(expected, got)
        .help("pass them, or choose --structured norm, which needs none"))
}

/// Rows that were checked to be there are not.
pub(super) fn no_rows() -> Error {
    Error::new("there are no rows to train on").help("pass --data and --labels")
}
