//! What `tamis train` says of a run to people.

use super::super::console::{bytes, count, decibel, facts, percent, psnr_fact};
use super::super::saved::{Object, limit_fact, peak_fact};
use super::data::Fit;
use crate::data::Task;
use crate::lab::plot::sparkline;
use crate::model::Score;
use crate::train::{
    AnnealDetails, Choice, Details, DynamicDetails, ImpDetails, LayersDetails, MaskedDetails,
    Neurons, PinnedWeight, Report, Scale, SearchDetails, Tried,
};

type Fact = (&'static str, String);

/// A block of facts; `losses` are those of the steps, as bars, `baselines` what obvious models do.
pub(super) fn summary(
    object: &Object<'_, Report>,
    losses: &str,
    fit: Option<Fit>,
    baselines: String,
) -> String {
    let r = object.report;
    let mut rows = vec![nonzeros(r)];
    // A linear model has none.
    rows.extend((!r.hidden.layers().is_empty()).then(|| neurons(r)));
    rows.push(loss(r, losses));
    if let Details::Layers(layers) = &r.details {
        rows.extend(together(r, layers));
    }
    // Log-odds have none.
    let has_psnr = r.task == Task::Regression || r.task == Task::Binary && r.psnr_db.is_some();
    if let Some(Fit { r2, rmse, .. }) = fit {
        let r2 = r2.map_or("none (all labels are the same)".into(), |r2| format!("{r2:.4}"));
        rows.push(("R2", format!("{r2} of the training rows, root mean square error {rmse:.4e}")));
    } else if has_psnr && r.anneal().is_none() {
        rows.push(psnr_fact(r.psnr_db, r.zero_psnr_db));
    }
    rows.extend(pinned(&r.pinned));
    if r.scale != Scale::None {
        let text =
            format!("{}, folded into weights and {} biases", r.scale.name(), count(r.biases));
        rows.push(("scale", text));
    }
    rows.extend(r.accuracy.map(|part| accuracy_fact(part, r.class_from)));
    match &r.details {
        Details::Lm(search) => {
            rows.extend(search_split(search));
            rows.push(search_fact(search));
        }
        Details::Anneal(anneal) => rows.extend(anneal_split(anneal)),
        Details::Imp(imp) => rows.extend(test_fact(r, imp)),
        Details::Masked(masked) => rows.extend(masked_facts(masked)),
        Details::Dynamic(dynamic) => {
            rows.extend(dynamic_split(dynamic, r.trials));
            rows.extend(tested(dynamic.test_accuracy, dynamic.test_loss));
        }
        Details::Paper(_) | Details::Outputs(_) | Details::Layers(_) => {}
    }
    rows.push(("beside it", baselines));
    rows.extend(r.choice.as_ref().map(choice));
    rows.extend([time(r), memory(r)]);
    facts(&object.title(r.stopped), &rows)
}

/// What the network was chosen among.
fn choice(of: &Choice) -> Fact {
    let name = |tried: &Tried| match (tried.hidden, tried.recipe) {
        (0, _) => "linear".to_owned(),
        (hidden, "lm") => format!("lm with {} neurons", count(hidden)),
        (hidden, _) => format!("{} neurons", count(hidden)),
    };
    let score = |tried: &Tried| match tried.accuracy {
        Some(share) => percent(share),
        None => format!("error {:.4e}", tried.loss.sqrt()),
    };
    let mut text = format!("by {}-fold cross-validation", of.folds);
    if let Some(chosen) = of.tried.get(of.chosen) {
        text += &format!(": {}", name(chosen));
        if let Some(decay) = chosen.weight_decay {
            text += &format!(", weight decay {decay}");
        }
        text += &format!(", {}", score(chosen));
        // The best of each other kind.
        let mut kinds = vec![name(chosen)];
        for tried in &of.tried {
            if !kinds.contains(&name(tried)) {
                kinds.push(name(tried));
                let same = of.tried.iter().filter(|of| name(of) == name(tried));
                let best = same.max_by(|a, b| {
                    let worth = |of: &Tried| of.accuracy.unwrap_or(-of.loss);
                    worth(a).total_cmp(&worth(b))
                });
                text += &format!("; {} {}", name(tried), best.map(score).unwrap_or_default());
            }
        }
    }
    ("chosen", text)
}

fn joined(values: impl Iterator<Item = String>) -> String {
    values.collect::<Vec<_>>().join(", ")
}

fn nonzeros(r: &Report) -> Fact {
    let (nnz, requested) = (count(r.nnz), count(r.requested_nnz));
    let share = |all: usize| percent(r.nnz as f64 / all as f64);
    let (hidden, inputs) = (r.hidden.first(), count(r.inputs));
    let text = match &r.details {
        Details::Layers(layers) => {
            let layers = joined(layers.layers.iter().map(|layer| count(layer.nnz)));
            format!("{nnz} of {requested} requested; hidden layers {layers}")
        }
        Details::Imp(imp) => {
            format!("{nnz} ({} of {} weights)", share(imp.dense_nnz), count(imp.dense_nnz))
        }
        Details::Masked(masked) => masked_nonzeros(masked, r.biases),
        Details::Dynamic(dynamic) => format!(
            "{nnz} of {requested} requested ({} of {} weights), from {} at the start",
            share(dynamic.dense_nnz),
            count(dynamic.dense_nnz),
            count(dynamic.start_nnz)
        ),
        details => {
            let (second, start) = match details {
                Details::Lm(search) => (search.second_hidden, None),
                Details::Anneal(anneal) => (None, Some(anneal.start_nnz)),
                _ => (None, None),
            };
            // One output of signs has no weight.
            let (width, shape) = match second.unwrap_or(r.outputs) {
                1 if second.is_none() && start.is_none() => (r.inputs, inputs),
                outputs => (r.inputs + outputs, format!("({inputs} + {})", count(outputs))),
            };
            let start = start.map(|start| format!(", from {} at the start", count(start)));
            let (share, m, start) =
                (share(hidden * width), count(hidden), start.unwrap_or_default());
            format!("{nnz} of {requested} requested ({share} of {m} × {shape} weights){start}")
        }
    };
    ("nonzeros", text)
}

fn masked_nonzeros(masked: &MaskedDetails, biases: usize) -> String {
    let share = percent(masked.kept as f64 / masked.dense_nnz.max(1) as f64);
    let mut text =
        format!("{} ({share} of {} weights)", count(masked.kept), count(masked.dense_nnz));
    if biases > 0 {
        text += &format!(", {} biases", count(biases));
    }
    text
}

fn masked_facts(masked: &MaskedDetails) -> Vec<Fact> {
    let mut facts: Vec<Fact> = tested(masked.test_accuracy, masked.test_loss).into_iter().collect();
    if masked.dead_weights > 0 {
        let dead = count(masked.dead_weights);
        facts.push(("warning", format!("{dead} weights lie on no path from input to output")));
    }
    facts
}

/// How good it is on the test rows, where there are some.
fn tested(accuracy: Option<f64>, loss: Option<f64>) -> Option<Fact> {
    let accuracy = accuracy.map(|accuracy| ("test accuracy", percent(accuracy)));
    accuracy.or_else(|| loss.map(|loss| ("test loss", format!("{loss:.4e}"))))
}

/// How many neurons of each layer have weights.
pub(super) fn live(live: &Neurons, hidden: &Neurons) -> String {
    let layers = live.layers().iter().zip(hidden.layers());
    joined(layers.map(|(live, all)| format!("{live} of {all}")))
}

fn neurons(r: &Report) -> Fact {
    let of = live(&r.live, &r.hidden);
    let text = match &r.details {
        Details::Imp(_) | Details::Masked(_) => format!("{of} count"),
        Details::Lm(SearchDetails { second_hidden: Some(m), second_live: Some(live), .. }) => {
            format!("{of}, and {live} of {m} have weights")
        }
        _ => format!("{of} have weights"),
    };
    ("neurons", text)
}

const fn loss_name(r: &Report) -> &'static str {
    match (r.task, &r.details) {
        (Task::Multiclass, _)
        | (Task::Binary, Details::Masked(_) | Details::Dynamic(_))
        | (_, Details::Anneal(_)) => "mean cross-entropy",
        _ => "mean squared error",
    }
}

fn loss(r: &Report, losses: &str) -> Fact {
    let name = loss_name(r);
    let text = match &r.details {
        Details::Anneal(_) => format!("{:.4} {name}  {losses}", r.loss),
        Details::Imp(imp) => {
            let levels: Vec<f32> =
                imp.levels.iter().map(|level| level.loss.log10() as f32).collect();
            format!("{:.4e} {name}; trained level by level {}", r.loss, sparkline(&levels))
        }
        Details::Layers(_) => format!("{:.4e} {name}", r.loss),
        _ => format!("{:.4e} {name}  {losses}", r.loss),
    };
    ("loss", text)
}

fn together(r: &Report, layers: &LayersDetails) -> Option<Fact> {
    let mut text = format!("{:.4e} before", layers.untuned_loss?);
    if layers.grown_nnz > r.nnz {
        text += &format!(" with {} weights", count(layers.grown_nnz));
    }
    text += &format!(", {} epochs", layers.tune_epochs);
    if layers.attempts > 1 {
        text += &format!("; the best of {} networks", layers.attempts);
    }
    Some(("together", text))
}

/// The pinned weights, if there were such: some of them by name.
fn pinned(pinned: &[PinnedWeight]) -> Option<Fact> {
    const SHOWN: usize = 6;
    let name = |weight: &PinnedWeight| {
        format!("{}:{} = {:.4e}", weight.neuron, weight.input, weight.value)
    };
    let names = joined(pinned.iter().take(SHOWN).map(name));
    let more = pinned.len().checked_sub(SHOWN).filter(|more| *more > 0);
    let more = more.map(|more| format!(", and {} more, which --json lists", count(more)));
    (!names.is_empty()).then(|| ("pinned", names + &more.unwrap_or_default()))
}

/// The share of rows that are right, and from where on class 1 is where that is no fixed number.
fn accuracy_fact(part: f64, class_from: Option<f32>) -> Fact {
    let own = class_from.filter(|from| ![0.0, Score::THRESHOLD].contains(from));
    let own = own.map(|from| format!(", class 1 from {from:.4} on")).unwrap_or_default();
    ("accuracy", format!("{} of the training rows{own}", percent(part)))
}

fn search_split(search: &SearchDetails) -> Option<Fact> {
    let loss = search.validation_loss?;
    let rows = count(search.validation_samples);
    let psnr = decibel(search.validation_psnr_db);
    let right = search.validation_accuracy.map(|share| format!(", accuracy {}", percent(share)));
    let right = right.unwrap_or_default();
    Some(("validation", format!("{rows} rows: {loss:.4e} mean squared error, {psnr}{right}")))
}

fn anneal_split(anneal: &AnnealDetails) -> Option<Fact> {
    let AnnealDetails { validation_samples, validation_loss, validation_accuracy, .. } = *anneal;
    Some(("validation", split(validation_samples, validation_loss?, validation_accuracy)))
}

fn dynamic_split(dynamic: &DynamicDetails, trials: u32) -> Option<Fact> {
    let DynamicDetails { validation_samples, validation_loss, validation_accuracy, .. } = *dynamic;
    let mut text = split(validation_samples, validation_loss?, validation_accuracy);
    if dynamic.early {
        text += "; early stopping";
    }
    if trials > 1 {
        text += &format!("; the best of {trials} starts");
    }
    Some(("validation", text))
}

/// A loss on the rows of a validation split, with the share of them that is right where they have classes.
fn split(rows: usize, loss: f64, accuracy: Option<f64>) -> String {
    let rows = count(rows);
    match accuracy {
        Some(right) => format!("{} of {rows} rows, cross-entropy {loss:.4}", percent(right)),
        None => format!("{rows} rows: {loss:.4e} mean squared error"),
    }
}

fn search_fact(search: &SearchDetails) -> Fact {
    let ended = match (search.exact, search.early) {
        (true, _) => "exact",
        (false, true) => "early stopping on the validation split",
        (false, false) => "not exact",
    };
    let SearchDetails { moves, tried, kicks, turns, signs, search_rows, .. } = search;
    let turns = match turns {
        0 => String::new(),
        turns => format!(", {turns} alternations with published steps"),
    };
    let moves = format!("{moves} of {tried} moves taken, {kicks} perturbations{turns}");
    ("search", format!("{ended}; {moves}, signs {signs}, {search_rows} rows first"))
}

fn test_fact(r: &Report, imp: &ImpDetails) -> Option<Fact> {
    let level = imp.levels.last().filter(|_| !r.stopped)?;
    let loss = level.test_loss?;
    let psnr = level.test_psnr_db.map(|db| format!(", {}", decibel(Some(db)))).unwrap_or_default();
    let accuracy =
        level.test_accuracy.map(|share| format!(", {} right", percent(share))).unwrap_or_default();
    Some(("test", format!("{loss:.4e} {}{psnr}{accuracy}", loss_name(r))))
}

fn time(r: &Report) -> Fact {
    let resumed = match r.resumed_steps {
        0 => String::new(),
        steps => format!(", resumed from step {}", count(steps)),
    };
    let Report { seconds, passes, epochs, threads, recipe, steps, .. } = r;
    let ended = format!("{threads} threads{}{resumed}", limit_fact(r.limit));
    let done = match &r.details {
        Details::Imp(ImpDetails { rounds, .. }) => {
            let steps = count(*steps);
            format!("{rounds} rounds of pruning, {epochs} epochs each training, {steps} steps")
        }
        Details::Layers(_) => format!("recipe {recipe} layer by layer, {passes:.0} passes"),
        Details::Anneal(_) => format!("{epochs} epochs, {steps} steps, {passes:.0} passes"),
        Details::Lm(_) => format!("{epochs} steps, {passes:.0} passes"),
        _ => format!("{epochs} epochs, {passes:.0} passes"),
    };
    ("time", format!("{seconds:.3} s, {done}, {ended}"))
}

fn memory(r: &Report) -> Fact {
    let (data, peak) = (bytes(r.data_bytes), peak_fact(r.peak_rss_bytes));
    let (state, workspace) = (bytes(r.state_bytes), bytes(r.workspace_bytes));
    let training = match &r.details {
        Details::Imp(imp) => {
            let (dense, here) = (bytes(imp.dense_bytes), bytes(r.total_bytes()));
            format!(", dense training {dense} (here {here} with tiles)")
        }
        Details::Layers(LayersDetails { mapped_bytes, .. }) => {
            let mapped = bytes(*mapped_bytes);
            format!(" and {mapped} between layers, state {state}, workspace {workspace}")
        }
        _ => format!(", state {state}, workspace {workspace}"),
    };
    ("memory", format!("data {data}{training}{peak}"))
}
