//! Iterative magnitude pruning (IMP): train the dense network, drop the smallest of its weights, set the others back to
//! where they started, train again, until so many are left.
//!
//! A *level* is one training; between two levels lies a round of pruning. The last level trains exactly s weights, and what
//! it gives is the result. Every weight of every layer competes by its magnitude, on inputs in their scaled units.

use serde::{Deserialize, Serialize};
use tamis::rng::{Permutation, stream};
use tamis::top::Top;

use super::keep::{Keep, Kept, Saved};
use super::optimiser::{Optimiser, Rates, State};
use super::pass::{Batch, Engine, Goal, Measure, Set};
use super::shape::Shape;
use crate::data::{Matrix, Values};
use crate::operator::Stop;
use crate::{Error, Result};

/// Stream of the orders of the rows, one per epoch of each level.
const ORDER: u64 = stream::USER + (0xdf << 32);

/// How to train and prune.
#[derive(Debug, Clone, PartialEq)]
pub struct ImpOptions {
    /// The dense network.
    pub shape: Shape,
    /// What is learnt.
    pub goal: Goal,
    /// Weights that are left in the end, s, over all layers.
    pub nnz: usize,
    /// Epochs of each level.
    pub epochs: u32,
    /// Rows of a batch, in an order that is drawn for every epoch; 0 for all rows at once, in their order.
    pub batch: usize,
    /// How a gradient becomes a step.
    pub optimiser: Optimiser,
    /// Step sizes and weight decay.
    pub rates: Rates,
    /// Part of the weights that a round drops, rounded down, but at least one weight; 1 drops all but s at once.
    pub part: f64,
    /// Epoch of the first level whose start the weights are set back to; later levels train from there on. 0 is the
    /// initial weights.
    pub rewind: u32,
    /// Factor of the inputs, a power of two so that it can be folded into the first layer without rounding.
    pub input_scale: f32,
    /// Seed of initial weights and orders.
    pub seed: u64,
}

impl ImpOptions {
    /// The published recipe of pruning, 10 % a round back to the initial weights, with Adam at 0.001 on all rows at once.
    #[must_use]
    pub fn new(shape: Shape, goal: Goal, nnz: usize) -> Self {
        Self {
            shape,
            goal,
            nnz,
            epochs: 15,
            batch: 0,
            optimiser: Optimiser::Adam,
            rates: Rates::constant(0.001),
            part: 0.1,
            rewind: 0,
            input_scale: 1.0,
            seed: 0,
        }
    }

    /// Weights of every level, from all to s.
    #[must_use]
    pub fn counts(&self) -> Vec<usize> {
        let mut counts = vec![self.shape.weights()];
        while let Some(&count) = counts.last()
            && count > self.nnz
        {
            let drop = ((count as f64 * self.part) as usize).max(1);
            counts.push(count.saturating_sub(drop).max(self.nnz));
        }
        counts
    }

    /// Bytes of a usual dense implementation of this training: weights, their gradient and moments, and the activations of
    /// all layers for a batch of `rows` at most, in 32-bit floats.
    #[must_use]
    pub fn dense_bytes(&self, rows: usize) -> u64 {
        let weights = self.shape.weights() as u64 * (2 + self.optimiser.moments() as u64);
        let acts = self.shape.hidden().iter().sum::<usize>() + self.shape.outputs();
        4 * (weights + self.rows(rows) as u64 * acts as u64)
    }

    /// Bytes that live from step to step: weights, those to go back to, those of the last level, moments, and a byte of the
    /// mask for each.
    #[must_use]
    pub fn state_bytes(&self) -> u64 {
        self.shape.weights() as u64 * (4 * (3 + self.optimiser.moments() as u64) + 1)
    }

    /// Bytes of all else that a run on these rows allocates itself: gradients and activations of each group, and its rows
    /// where they are not used as they lie.
    #[must_use]
    pub fn workspace_bytes(&self, data: &Matrix) -> u64 {
        let batch = self.rows(data.rows);
        let floats = matches!(data.values, Values::F32(_));
        let gather = !floats || batch < data.rows || self.input_scale != 1.0;
        Engine::<f32>::bytes(&self.shape, self.goal, batch, gather)
    }

    /// Rows of a batch of a set.
    fn rows(&self, rows: usize) -> usize {
        if self.batch == 0 { rows } else { self.batch.min(rows) }
    }

    /// Checks the settings, as flags of the command line.
    ///
    /// # Errors
    /// One is out of bounds.
    pub fn check(&self) -> Result<()> {
        self.optimiser.check()?;
        self.rates.check()?;
        let all = self.shape.weights();
        if !(1..=all).contains(&self.nnz) {
            return Err(Error::new("the number of nonzeros is out of bounds")
                .expected(format_args!("--nnz 1 to {all}, the weights of the dense network"))
                .got(self.nnz)
                .help("choose a part of all weights, such as a tenth"));
        }
        if !(self.part > 0.0 && self.part <= 1.0) {
            return Err(Error::new("the part that a round prunes is out of bounds")
                .expected("--prune-part above 0 and at most 1")
                .got(self.part)
                .help("leave --prune-part out for 0.1, or pass --one-shot to prune once"));
        }
        if self.rewind >= self.epochs {
            return Err(Error::new("the epoch to go back to leaves nothing to train")
                .expected(format_args!("--rewind 0 to {}, less than --epochs", self.epochs.saturating_sub(1)))
                .got(self.rewind)
                .help("raise --epochs, or leave --rewind out for the initial weights"));
        }
        Ok(())
    }
}

/// One level of a run.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Level {
    /// Weights that it trained.
    pub nnz: usize,
    /// Steps of the optimiser up to its end, those of the levels before included.
    pub steps: u64,
    /// How good it is on the rows trained on.
    pub train: Measure,
    /// On the other rows, where there are some.
    pub test: Option<Measure>,
}

/// Where a run stands after an epoch.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Progress {
    /// The level, counted from 0, of `levels`.
    pub level: usize,
    /// Levels of the whole run.
    pub levels: usize,
    /// Weights that the level trains.
    pub nnz: usize,
    /// Epochs done of all levels.
    pub epoch: u64,
    /// Epochs of all levels.
    pub epochs: u64,
    /// Mean loss of the steps of the epoch, each before it was taken.
    pub loss: f64,
}

/// A finished run.
#[derive(Debug, Clone, PartialEq)]
pub struct Imp {
    /// Weights of all layers, for scaled inputs; 0 where they are pruned.
    pub weights: Vec<f32>,
    /// Which are left: exactly s.
    pub mask: Vec<bool>,
    /// The levels that were trained to their end.
    pub levels: Vec<Level>,
    /// Steps of the optimiser.
    pub steps: u64,
    /// Whether the run was ended early: then the weights are those of the last level that was trained to its end, or of
    /// the last step where there is none, and all but the s largest are dropped.
    pub stopped: bool,
}

/// Trains a dense network and prunes it to s weights.
///
/// `observe` is called after every epoch and ends the run by returning `false`; `stop` ends it within a step, in the time of
/// a tile of rows, and what that step did is dropped. With `keep` every level is saved when it is done, and a run that
/// was ended can go on from there to the same bits. Runs on the current rayon pool, whose size changes no bit.
///
/// # Errors
/// A setting out of bounds, rows or labels of other lengths, a run that diverges, a folder that holds another run or cannot
/// be written; or the run was ended before its first step ([`Error::is_interrupted`]).
///
/// ```
/// use tamis::{dims::Dims, gates::Signs};
/// use tamis_host::data::planted;
/// use tamis_host::dense::{Goal, Head, ImpOptions, Rates, Set, Shape, imp};
/// use tamis_host::operator::Stop;
///
/// let planted = planted::network(Dims::new(600, 8, 2, 4), Signs::Positive, 1)?;
/// let set = Set { data: &planted.data, labels: &planted.labels };
/// let shape = Shape::new(8, &[4], 1, Head::Weights)?;
/// let usual = ImpOptions::new(shape, Goal::Regression, 10);
/// let options = ImpOptions { batch: 50, rates: Rates::constant(0.01), part: 0.2, ..usual };
/// let pruned = imp(set, None, &options, None, &Stop::new(), |_| true)?;
/// assert_eq!(pruned.mask.iter().filter(|&&kept| kept).count(), 10);
/// assert_eq!(pruned.levels.last().map(|level| level.nnz), Some(10));
/// # Ok::<(), tamis_host::Error>(())
/// ```
pub fn imp(
    train: Set<'_>,
    test: Option<Set<'_>>,
    options: &ImpOptions,
    keep: Option<&Keep>,
    stop: &Stop,
    observe: impl FnMut(&Progress) -> bool,
) -> Result<Imp> {
    options.check()?;
    check_set(train, options)?;
    test.map_or(Ok(()), |test| check_set(test, options))?;
    let kept = keep.map(|keep| Kept::open(keep, &train, test.as_ref(), options)).transpose()?;
    let mut run = Run::new(train, test, options, stop);
    if let Some(saved) = kept.as_ref().and_then(|(_, saved)| saved.as_ref()) {
        run.resume(saved);
    }
    run.run(kept.as_ref().map(|(kept, _)| kept), observe)
}

fn check_set(set: Set<'_>, options: &ImpOptions) -> Result<()> {
    let (shape, rows) = (&options.shape, set.data.rows);
    let width = if options.goal == Goal::Classes { 1 } else { shape.outputs() };
    let wrong = |what: &str, expected: usize, got: usize| {
        let error = Error::new(format!("the {what} do not fit the network")).expected(expected).got(got);
        Err(error.help("pass samples and labels such as the network was made for"))
    };
    if rows == 0 || set.data.cols != shape.inputs() {
        return wrong("columns of the samples", shape.inputs(), set.data.cols);
    }
    if set.labels.len() != rows * width {
        return wrong("labels", rows * width, set.labels.len());
    }
    if options.goal == Goal::Classes
        && let Some(label) = set.labels.iter().find(|&&label| {
            !(label >= 0.0 && label.fract() == 0.0 && label < shape.outputs().min(1 << 16) as f32)
        })
    {
        return Err(Error::new("a label is none of the network's classes")
            .expected(format_args!("whole numbers from 0 to {}", shape.outputs() - 1))
            .got(label)
            .help("pass labels of the classes that the network was made for"));
    }
    Ok(())
}

/// A run on its way.
struct Run<'a> {
    train: Set<'a>,
    test: Option<Set<'a>>,
    options: &'a ImpOptions,
    counts: Vec<usize>,
    engine: Engine<f32>,
    state: State,
    weights: Vec<f32>,
    /// What surviving weights are set back to.
    origin: Vec<f32>,
    /// What the last level ended with.
    trained: Vec<f32>,
    mask: Vec<bool>,
    levels: Vec<Level>,
    steps: u64,
}

impl<'a> Run<'a> {
    fn new(train: Set<'a>, test: Option<Set<'a>>, options: &'a ImpOptions, stop: &'a Stop) -> Self {
        let weights = options.shape.initial(options.seed);
        let batch = options.rows(train.data.rows);
        Self {
            train,
            test,
            options,
            counts: options.counts(),
            engine: Engine::new(&options.shape, options.goal, batch, stop),
            state: State::new(options.optimiser, weights.len()),
            origin: weights.clone(),
            trained: weights.clone(),
            mask: vec![true; weights.len()],
            weights,
            levels: Vec::new(),
            steps: 0,
        }
    }

    /// Goes to where the saved run stood after its last level.
    fn resume(&mut self, saved: &Saved) {
        self.weights.clone_from(&saved.weights);
        self.trained.clone_from(&saved.weights);
        self.origin.clone_from(&saved.origin);
        self.mask.clone_from(&saved.mask);
        self.levels.clone_from(&saved.levels);
        self.steps = saved.levels.last().map_or(0, |level| level.steps);
    }

    fn run(mut self, kept: Option<&Kept>, mut observe: impl FnMut(&Progress) -> bool) -> Result<Imp> {
        while self.levels.len() < self.counts.len() {
            if !self.levels.is_empty() {
                self.prune(self.counts[self.levels.len()])?;
                self.rewind();
            }
            match self.level(&mut observe) {
                Err(error) if error.is_interrupted() && self.steps > 0 => {
                    if !self.levels.is_empty() {
                        self.weights.copy_from_slice(&self.trained);
                    }
                    self.prune(self.options.nnz)?;
                    return Ok(self.finish(true));
                }
                done => done?,
            }
            if let Some(kept) = kept {
                kept.save(&self.weights, &self.origin, &self.mask, &self.levels)?;
            }
        }
        Ok(self.finish(false))
    }

    fn finish(self, stopped: bool) -> Imp {
        let Self { weights, mask, levels, steps, .. } = self;
        Imp { weights, mask, levels, steps, stopped }
    }

    /// Trains the weights of the mask and measures what became of them.
    fn level(&mut self, observe: &mut impl FnMut(&Progress) -> bool) -> Result<()> {
        let (level, options) = (self.levels.len(), self.options);
        let first = if level == 0 { 0 } else { options.rewind };
        self.state.reset();
        for epoch in first..options.epochs {
            if level == 0 && epoch == options.rewind {
                self.origin.copy_from_slice(&self.weights);
            }
            let loss = self.epoch(level, epoch)?;
            if !observe(&self.progress(level, epoch, loss)) {
                return Err(Error::interrupted());
            }
        }
        let train = self.measure(self.train)?;
        let test = self.test.map(|test| self.measure(test)).transpose()?;
        self.trained.copy_from_slice(&self.weights);
        self.levels.push(Level { nnz: self.counts[level], steps: self.steps, train, test });
        Ok(())
    }

    /// One pass over all batches; the mean loss.
    fn epoch(&mut self, level: usize, epoch: u32) -> Result<f64> {
        let (options, n) = (self.options, self.train.data.rows);
        let size = options.rows(n);
        let number = level as u64 * u64::from(options.epochs) + u64::from(epoch);
        let order = (size < n).then(|| Permutation::new(options.seed, ORDER + number, n));
        let mut sum = 0.0;
        for start in (0..n).step_by(size) {
            let rows = start..(start + size).min(n);
            let share = rows.len() as f64 / n as f64;
            let batch = Batch { set: self.train, rows, order, scale: options.input_scale };
            let loss = self.engine.descend(&self.weights, &batch)?;
            if !loss.is_finite() {
                return Err(diverged(loss));
            }
            sum += loss * share;
            let rates = (options.rates.at(epoch), options.rates.decay);
            self.state.step(rates, &mut self.weights, self.engine.gradient(), &self.mask);
            self.steps += 1;
        }
        Ok(sum)
    }

    fn measure(&mut self, set: Set<'_>) -> Result<Measure> {
        let batch = Batch { set, rows: 0..set.data.rows, order: None, scale: self.options.input_scale };
        let measure = self.engine.measure(&self.weights, &batch)?;
        if measure.loss.is_finite() { Ok(measure) } else { Err(diverged(measure.loss)) }
    }

    /// Keeps the `count` largest weights of the mask; of equal ones those of lower index.
    fn prune(&mut self, count: usize) -> Result<()> {
        let (mut index, mut value) = (vec![0; count], vec![0.0; count]);
        let mut top = Top::new(&mut index, &mut value);
        let survivors = || self.mask.iter().enumerate().filter(|&(_, &kept)| kept).map(|(j, _)| j);
        survivors().for_each(|j| top.push(j as u32, self.weights[j]));
        let found = top.finish().ok_or_else(|| diverged(f64::NAN))?;
        let mut mask = vec![false; self.mask.len()];
        index[..found].iter().for_each(|&j| mask[j as usize] = true);
        // Weights that are 0 do not enter the top, and some may be needed.
        let zeros: Vec<usize> = survivors().filter(|&j| !mask[j]).take(count - found).collect();
        zeros.into_iter().for_each(|j| mask[j] = true);
        self.mask = mask;
        let gone = self.weights.iter_mut().zip(&self.mask).filter(|(_, kept)| !**kept);
        gone.for_each(|(w, _)| *w = 0.0);
        Ok(())
    }

    /// Sets the weights of the mask back.
    fn rewind(&mut self) {
        for ((w, origin), kept) in self.weights.iter_mut().zip(&self.origin).zip(&self.mask) {
            *w = if *kept { *origin } else { 0.0 };
        }
    }

    fn progress(&self, level: usize, epoch: u32, loss: f64) -> Progress {
        let (levels, [all, rewind]) =
            (self.counts.len(), [self.options.epochs, self.options.rewind].map(u64::from));
        let before = |level: usize| if level == 0 { 0 } else { all + (level as u64 - 1) * (all - rewind) };
        let own = u64::from(epoch) + 1 - if level == 0 { 0 } else { rewind };
        Progress {
            level,
            levels,
            nnz: self.counts[level],
            epoch: before(level) + own,
            epochs: before(levels),
            loss,
        }
    }
}

fn diverged(loss: f64) -> Error {
    Error::new("training diverged: the loss is no finite number any more")
        .expected("a finite loss")
        .got(loss)
        .help("lower --rate, or scale inputs and labels to about 1")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::planted;
    use crate::dense::Head;
    use std::path::Path;
    use tamis::dims::Dims;
    use tamis::gates::Signs;

    fn planted(rows: usize) -> planted::Planted {
        planted::network(Dims::new(rows, 10, 3, 8), Signs::Positive, 2).unwrap()
    }

    fn options() -> ImpOptions {
        let shape = Shape::new(10, &[6, 4], 1, Head::Weights).unwrap();
        let usual = ImpOptions::new(shape, Goal::Regression, 11);
        ImpOptions { epochs: 4, batch: 64, rewind: 1, rates: Rates::constant(0.01), ..usual }
    }

    fn train(options: &ImpOptions, keep: Option<&Keep>) -> Result<Imp> {
        let planted = planted(300);
        let set = Set { data: &planted.data, labels: &planted.labels };
        imp(set, Some(set), options, keep, &Stop::new(), |_| true)
    }

    fn count(mask: &[bool]) -> usize {
        mask.iter().filter(|&&kept| kept).count()
    }

    #[test]
    fn rounds_drop_their_part_and_end_at_exactly_s() {
        let shape = Shape::new(10, &[10], 1, Head::Weights).unwrap();
        let counts =
            |nnz, part| ImpOptions { part, ..ImpOptions::new(shape.clone(), Goal::Regression, nnz) }.counts();
        assert_eq!(counts(90, 0.1), [110, 99, 90]);
        assert_eq!(counts(95, 0.1), [110, 99, 95]);
        assert_eq!(counts(110, 0.1), [110]);
        assert_eq!(counts(3, 1.0), [110, 3]);
        let last = counts(1, 0.1);
        // Under one weight of ten, one is dropped.
        assert_eq!(last[last.len() - 10..], [10, 9, 8, 7, 6, 5, 4, 3, 2, 1]);
        assert_eq!(counts(106, 0.001), [110, 109, 108, 107, 106]);
    }

    #[test]
    fn the_mask_only_shrinks_and_the_result_has_exactly_s() {
        for (optimiser, part) in
            [(Optimiser::Adam, 0.1), (Optimiser::Sgd { momentum: 0.9 }, 0.2), (Optimiser::Adam, 1.0)]
        {
            let options = ImpOptions { optimiser, part, rates: Rates::constant(0.003), ..options() };
            let folder = tempfile::tempdir().unwrap();
            let keep = Keep { folder: folder.path().into(), resume: false, levels: true };
            let done = train(&options, Some(&keep)).unwrap();
            assert_eq!((count(&done.mask), done.levels.len()), (11, options.counts().len()));
            assert!(done.weights.iter().zip(&done.mask).all(|(&w, &kept)| (w != 0.0) == kept));
            let masks: Vec<Vec<u8>> =
                (0..done.levels.len()).map(|level| level_mask(folder.path(), level)).collect();
            for (level, pair) in masks.windows(2).enumerate() {
                assert!(pair[0].iter().zip(&pair[1]).all(|(before, after)| after <= before));
                assert_eq!(pair[0].iter().filter(|&&kept| kept == 1).count(), done.levels[level].nnz);
            }
            assert!(masks[0].iter().all(|&kept| kept == 1));
            assert_eq!(masks[masks.len() - 1].iter().map(|&kept| kept == 1).collect::<Vec<_>>(), done.mask);
            let rows: Vec<usize> = done.levels.iter().map(|level| level.test.unwrap().rows).collect();
            assert_eq!(rows, vec![300; done.levels.len()]);
        }
    }

    /// The mask of all layers that a file of a level holds.
    fn level_mask(folder: &Path, level: usize) -> Vec<u8> {
        let (mut file, len) = crate::file::open(&folder.join(format!("level-{level:03}.npz"))).unwrap();
        let mut all = Vec::new();
        for (l, width) in [10, 6, 4].into_iter().enumerate() {
            let name = format!("mask{l}");
            let mask = crate::data::npz::read(&mut file, len, Some(&name)).unwrap();
            assert_eq!(mask.cols, width);
            let Values::U8(values) = mask.values else { panic!("a mask is bytes") };
            all.extend(values);
        }
        all
    }

    #[test]
    fn threads_and_the_folder_change_no_bit() {
        let run = |threads, keep: Option<&Keep>| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            pool.install(|| train(&ImpOptions { batch: 0, ..options() }, keep)).unwrap()
        };
        let one = run(1, None);
        let folder = tempfile::tempdir().unwrap();
        let keep = Keep { folder: folder.path().join("new/run"), resume: true, levels: false };
        assert_eq!([run(3, None), run(2, Some(&keep))], [one.clone(), one]);
    }

    #[test]
    fn a_run_goes_on_to_the_same_bits_from_every_level() {
        let options = options();
        let whole = train(&options, None).unwrap();
        let planted = planted(300);
        let set = Set { data: &planted.data, labels: &planted.labels };
        let folder = tempfile::tempdir().unwrap();
        let keep = Keep { folder: folder.path().into(), resume: true, levels: false };
        // Every call does a level and two epochs more, until all are done.
        let (mut calls, mut stopped) = (0, true);
        while stopped {
            let mut first = None;
            let part = imp(set, Some(set), &options, Some(&keep), &Stop::new(), |progress| {
                let first = *first.get_or_insert(progress.level);
                progress.level == first || progress.epoch % 3 != 0
            });
            let part = part.unwrap();
            assert_eq!(count(&part.mask), options.nnz);
            calls += 1;
            stopped = part.stopped;
            if !stopped {
                assert_eq!(part, whole);
            }
        }
        assert!(calls > 5, "{calls}");
        // A finished run is there at once.
        let again =
            imp(set, Some(set), &options, Some(&keep), &Stop::new(), |_| panic!("trained again")).unwrap();
        assert_eq!(again, whole);
    }

    #[test]
    fn other_settings_other_data_and_damaged_files_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        let new = Keep { folder: folder.path().into(), resume: false, levels: false };
        let keep = Keep { resume: true, ..new.clone() };
        let whole = train(&options(), Some(&keep)).unwrap();
        let error = |options: &ImpOptions, keep| train(options, Some(keep)).unwrap_err().to_string();
        assert!(error(&options(), &new).contains("--resume"));
        for (name, other) in [
            ("seed", ImpOptions { seed: 1, ..options() }),
            ("nnz", ImpOptions { nnz: 12, ..options() }),
            ("rates", ImpOptions { rates: Rates::constant(0.1), ..options() }),
            ("hidden", ImpOptions { shape: Shape::new(10, &[4, 6], 1, Head::Weights).unwrap(), ..options() }),
        ] {
            let error = error(&other, &keep);
            assert!(
                error.contains("other settings") && error.contains(&format!("expected: {name}")),
                "{error}"
            );
        }
        let mut planted = planted(300);
        planted.labels[7] += 1.0;
        let set = Set { data: &planted.data, labels: &planted.labels };
        let other = imp(set, None, &options(), Some(&keep), &Stop::new(), |_| true).unwrap_err().to_string();
        assert!(other.contains("expected: data"), "{other}");
        let path = folder.path().join("imp.npz");
        let bytes = std::fs::read(&path).unwrap();
        assert_eq!(train(&options(), Some(&keep)).unwrap(), whole);
        // Every cut and every flip of a byte is refused or changes nothing, and never panics.
        for at in (0..bytes.len()).step_by(37) {
            let mut wrong = bytes.clone();
            wrong[at] ^= 0x10;
            std::fs::write(&path, &wrong).unwrap();
            if let Ok(found) = train(&options(), Some(&keep)) {
                assert_eq!(found, whole, "flip at {at}");
            }
            std::fs::write(&path, &bytes[..at]).unwrap();
            assert!(train(&options(), Some(&keep)).is_err(), "cut at {at}");
        }
    }

    #[test]
    fn an_end_before_the_first_step_has_no_result_and_later_ones_have_s_weights() {
        let planted = planted(300);
        let set = Set { data: &planted.data, labels: &planted.labels };
        let stop = Stop::new();
        stop.ask();
        assert!(imp(set, None, &options(), None, &stop, |_| true).unwrap_err().is_interrupted());
        for epochs in [1, 6] {
            let done = imp(set, None, &options(), None, &Stop::new(), |p| p.epoch < epochs).unwrap();
            assert_eq!((done.stopped, count(&done.mask)), (true, 11));
            assert_eq!(done.levels.len(), usize::from(epochs > 4));
        }
    }

    #[test]
    fn weights_of_zero_survive_where_they_are_needed() {
        let options = ImpOptions {
            epochs: 1,
            rewind: 0,
            rates: Rates { rate: 1e-30, ..Rates::constant(1.0) },
            ..options()
        };
        let data = Matrix::new(4, 10, Values::U8(vec![0; 40])).unwrap();
        let stop = Stop::new();
        let mut run = Run::new(Set { data: &data, labels: &[0.0; 4] }, None, &options, &stop);
        run.weights.fill(0.0);
        run.weights[50] = -1.0;
        run.prune(11).unwrap();
        let kept: Vec<usize> = (0..run.mask.len()).filter(|&j| run.mask[j]).collect();
        assert_eq!(kept, [&(0..10).collect::<Vec<_>>()[..], &[50]].concat());
    }

    #[test]
    fn steps_that_diverge_are_named() {
        let options = ImpOptions {
            optimiser: Optimiser::Sgd { momentum: 0.9 },
            rates: Rates::constant(f32::MAX),
            ..options()
        };
        let error = train(&options, None).unwrap_err().to_string();
        assert!(error.contains("diverged") && error.contains("--rate"), "{error}");
    }

    #[test]
    fn sets_and_settings_out_of_bounds_are_refused() {
        let refused = |options: ImpOptions| train(&options, None).unwrap_err().to_string();
        assert!(refused(ImpOptions { nnz: 0, ..options() }).contains("--nnz 1 to 88"));
        assert!(refused(ImpOptions { nnz: 89, ..options() }).contains("--nnz 1 to 88"));
        assert!(refused(ImpOptions { part: 0.0, ..options() }).contains("--prune-part"));
        assert!(refused(ImpOptions { part: f64::NAN, ..options() }).contains("--prune-part"));
        assert!(refused(ImpOptions { rewind: 4, ..options() }).contains("--rewind 0 to 3"));
        let other = Shape::new(9, &[6], 1, Head::Weights).unwrap();
        assert!(refused(ImpOptions { shape: other, ..options() }).contains("columns"));
        let other = Shape::new(10, &[6], 2, Head::Weights).unwrap();
        assert!(refused(ImpOptions { shape: other.clone(), ..options() }).contains("labels"));
        assert!(refused(ImpOptions { shape: other, goal: Goal::Classes, ..options() }).contains("classes"));
    }
}
