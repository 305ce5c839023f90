//! Networks of several hidden layers: each layer by a recipe for one, on what the layers before it
//! give; then all together.

mod attempt;
mod job;
mod layer;

use crate::Result;
use crate::data::Problem;
use crate::train::network::SparseNetwork;
use crate::train::options::{Options, Recipe};
use crate::train::plan;
use crate::train::progress::Observer;
use crate::train::report::{Details, LayersDetails, Neurons, Report};
use crate::train::trained::{Stopwatch, Trained};
use attempt::{Attempt, Run};
use job::DeepJob;

/// Trains a network of several hidden layers, layer by layer, then all together: brought down to s
/// nonzeros where the layers have more, and fitted on those.
///
/// Ended in the last layer or later, or in another attempt than the first, the run gives a model. A
/// layer behind others is trained on what these make of all rows, which is stored; the published
/// method needs not store it, and trains the first layer on the samples themselves, while the other
/// recipes change the rows that they are given, and get copies.
pub(crate) fn train(
    problem: Problem,
    options: &Options,
    recipe: Recipe,
    hidden: &[usize],
    observer: &mut Observer<'_>,
) -> Result<Trained> {
    problem.check()?;
    let name = recipe.name();
    let job = DeepJob::new(&problem, options, recipe, hidden)?;
    let stopwatch = Stopwatch::start(&problem);
    let pool = plan::pool(options.threads)?;
    let mut run = Run::new(&job, &pool);
    let Attempt { model, score, nnz, details, limit, stopped } = run.attempts(problem, observer)?;
    let (attempts, mapped_bytes) = (run.attempts, run.most.mapped);
    let details = LayersDetails { attempts, mapped_bytes, ..details };
    let report = Report {
        outputs: job.outputs.max(1),
        hidden: Neurons::Each(hidden.to_vec()),
        requested_nnz: job.nnz,
        seed: options.seed,
        nnz,
        live: Neurons::Each(details.layers.iter().map(|layer| layer.live).collect()),
        epochs: details.tune_epochs,
        passes: run.passes,
        limit,
        stopped,
        threads: pool.current_num_threads(),
        state_bytes: run.most.state,
        workspace_bytes: run.most.workspace,
        ..stopwatch.report(name, Details::Layers(details)).scored(&score)
    };
    Ok(Trained::new(model.bytes(), SparseNetwork::default(), report))
}
