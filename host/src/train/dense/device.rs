//! The seam of dense networks: where they are trained, and where their scores are computed.
//!
//! [`Threads`] does both on the CPU. Another crate may do them elsewhere, and says so once with
//! [`install`]; what is trained, on which rows and in which order stands here and is the same anywhere.

use std::fmt;
use std::sync::{Arc, OnceLock};

use tamis::learn::optimiser::Optimiser;

use super::derivatives::NetOnRows;
use super::optimiser::State;
use super::pass::{Engine, Goal, Measure};
use super::shape::Shape;
use super::training::Epoch;
use crate::data::{Problem, Task};
use crate::operator::Stop;
use crate::{Error, Result};

/// Something that trains dense networks and differentiates them.
pub trait DenseDevice: fmt::Debug + Send + Sync {
    /// What it is called in reports.
    fn name(&self) -> &str;

    /// Memory for a network in training.
    ///
    /// # Errors
    /// There is no room for it.
    fn training(&self, setup: &Setup<'_>) -> Result<Box<dyn DenseTraining>>;

    /// The loss of a network on rows, and what the goal sums over them for each weight. Outputs of several
    /// classes are divided by `temperature` before the softmax.
    ///
    /// # Errors
    /// Labels that are no classes, no room, or a stop.
    fn pass(&self, on: &NetOnRows<'_>, goal: Goal<'_>, temperature: f32) -> Result<Passed>;
}

/// A network in training: what an optimiser remembers, and room for a batch.
pub trait DenseTraining {
    /// Forgets what the optimiser remembers.
    fn restart(&mut self);

    /// Forgets what the optimiser remembers of all weights but those of the mask.
    fn keep(&mut self, mask: &[bool]);

    /// One step for each batch of an epoch, all of which have the same set; the mean loss of the steps, each
    /// before it was taken. A stop is an error, and the weights are those of the last step then.
    ///
    /// # Errors
    /// A loss that is no finite number, labels that are no classes, or a stop.
    fn epoch(&mut self, net: Trained<'_>, of: &Epoch<'_>) -> Result<f64>;

    /// How good the network is on all rows of a set, with this factor of the inputs.
    ///
    /// # Errors
    /// Labels that are no classes, or a stop.
    fn measure(&mut self, weights: &[f32], set: &Problem, scale: f32) -> Result<Measure>;
}

/// A network that is to be trained.
pub struct Setup<'a> {
    /// Its layers.
    pub shape: &'a Shape,
    /// What its loss is: squared error, of several classes cross-entropy.
    pub task: Task,
    /// How a gradient becomes a step.
    pub optimiser: Optimiser,
    /// Rows of a batch, at most.
    pub batch: usize,
    /// Ends an epoch.
    pub stop: &'a Stop,
}

/// The numbers of a network in training.
pub struct Trained<'a> {
    /// Weights of all layers.
    pub weights: &'a mut [f32],
    /// Which of them are trained; the others keep their values.
    pub mask: &'a [bool],
    /// Steps that were taken.
    pub steps: &'a mut u64,
}

/// What a pass over rows gives.
#[derive(Debug, Clone, PartialEq)]
pub struct Passed {
    /// The loss, and the rows whose class is right where it was the goal.
    pub measure: Measure,
    /// What the goal sums, a number for each weight; of the loss none.
    pub sum: Vec<f32>,
}

/// The CPU.
#[derive(Debug, Clone, Copy, Default)]
pub struct Threads;

impl DenseDevice for Threads {
    fn name(&self) -> &str {
        "cpu"
    }

    fn training(&self, setup: &Setup<'_>) -> Result<Box<dyn DenseTraining>> {
        let &Setup { shape, task, optimiser, batch, stop } = setup;
        Ok(Box::new(OnThreads {
            engine: Engine::new(shape, task, batch, stop),
            state: State::new(optimiser, shape.weights()),
        }))
    }

    fn pass(&self, on: &NetOnRows<'_>, goal: Goal<'_>, temperature: f32) -> Result<Passed> {
        let rows = &on.rows;
        let mut engine = Engine::new(on.net.shape, rows.set.task, rows.rows.len(), on.stop);
        engine.temperature = temperature;
        let measure = engine.pass(on.net.weights, rows, goal)?;
        let sum = if matches!(goal, Goal::Loss) { Vec::new() } else { engine.into_sum() };
        Ok(Passed { measure, sum })
    }
}

struct OnThreads {
    engine: Engine,
    state: State,
}

impl DenseTraining for OnThreads {
    fn restart(&mut self) {
        self.state.reset();
    }

    fn keep(&mut self, mask: &[bool]) {
        self.state.keep(mask);
    }

    fn epoch(&mut self, net: Trained<'_>, of: &Epoch<'_>) -> Result<f64> {
        let Trained { weights, mask, steps } = net;
        let mut sum = 0.0;
        for batch in of.batches() {
            let share = batch.rows.len() as f64 / of.rows.len() as f64;
            let loss = self.engine.pass(weights, &batch, Goal::Gradient)?.loss;
            if !loss.is_finite() {
                return Err(diverged(loss));
            }
            sum += loss * share;
            if let Some(penalty) = of.penalty {
                penalty(weights, self.engine.sum_mut());
            }
            self.state.step(of.rate, of.decay, weights, self.engine.sum(), mask);
            *steps += 1;
        }
        Ok(sum)
    }

    fn measure(&mut self, weights: &[f32], set: &Problem, scale: f32) -> Result<Measure> {
        let batch = super::pass::Batch { set, rows: 0..set.data.rows, order: None, scale };
        self.engine.pass(weights, &batch, Goal::Loss)
    }
}

/// The loss is no finite number any more.
#[must_use]
pub fn diverged(loss: f64) -> Error {
    Error::new("training diverged: the loss is no finite number any more")
        .expected("a finite loss")
        .got(loss)
        .help("lower --rate, or scale inputs and labels to about 1")
}

/// Where dense networks are trained; by default on the CPU.
#[derive(Debug, Clone)]
pub struct DensePlace(Arc<dyn DenseDevice>);

impl Default for DensePlace {
    fn default() -> Self {
        Self::new(Threads)
    }
}

/// The same device.
impl PartialEq for DensePlace {
    fn eq(&self, other: &Self) -> bool {
        self.0.name() == other.0.name()
    }
}

impl std::ops::Deref for DensePlace {
    type Target = dyn DenseDevice;

    fn deref(&self) -> &Self::Target {
        &*self.0
    }
}

impl DensePlace {
    /// On a device.
    #[must_use]
    pub fn new(device: impl DenseDevice + 'static) -> Self {
        Self(Arc::new(device))
    }

    /// On the GPU of this name, or of one that contains it; the first one where there is no name.
    ///
    /// # Errors
    /// There is none, or this program trains dense networks on the CPU alone.
    pub fn gpu(name: Option<&str>) -> Result<Self> {
        let Some(open) = OPENER.get() else {
            return Err(Error::new("this program trains dense networks on the CPU alone")
                .expected("the program of gpu/dense")
                .got("that of host")
                .help(
                    "cargo run --release --manifest-path gpu/dense/Cargo.toml --features wgpu -- …, \
                     or leave --device out",
                ));
        };
        open(name)
    }

    /// Whether [`Self::gpu`] has what to open.
    #[must_use]
    pub fn has_gpu() -> bool {
        OPENER.get().is_some()
    }
}

/// Opens a GPU by its name.
type Opener = fn(Option<&str>) -> Result<DensePlace>;

static OPENER: OnceLock<Opener> = OnceLock::new();

/// Says how the GPUs of this program are opened for dense networks, once.
pub fn install(opener: Opener) {
    OPENER.get_or_init(|| opener);
}
