//! The search for each kind of head.

use super::checkpoint::Checkpoint;
use super::goal::{Goal, OneOutput, SeveralOutputs, TwoLayers};
use super::params::Params;
use super::progress::{Progress, Trained};
use super::run;
use crate::base::error::Result;
use crate::learn::start::Start;
use crate::operator::factored::Factored;
use crate::operator::sensing::{Rows, Sensing};

/// What differs between heads: [`OneOutput`], [`SeveralOutputs`] and [`TwoLayers`], which are all
/// that there are.
pub trait Method<S: Sensing>: Copy {
    /// The search.
    #[doc(hidden)]
    fn search<'a>(
        goal: Goal<Self>,
        sensing: &mut S,
        labels: &Rows<S>,
        start: Start<'_, Checkpoint<'_>>,
        params: &Params,
        memory: &'a mut [u32],
        observe: impl FnMut(&Progress<'_>) -> bool,
    ) -> Result<Trained<'a>, S::Source>;
}

impl<S: Sensing> Method<S> for OneOutput {
    fn search<'a>(
        goal: Goal<Self>,
        sensing: &mut S,
        labels: &Rows<S>,
        start: Start<'_, Checkpoint<'_>>,
        params: &Params,
        memory: &'a mut [u32],
        observe: impl FnMut(&Progress<'_>) -> bool,
    ) -> Result<Trained<'a>, S::Source> {
        run::single(sensing, labels, goal.dims, start, params, memory, observe)
    }
}

impl<S: Factored> Method<S> for SeveralOutputs {
    fn search<'a>(
        goal: Goal<Self>,
        sensing: &mut S,
        labels: &Rows<S>,
        start: Start<'_, Checkpoint<'_>>,
        params: &Params,
        memory: &'a mut [u32],
        observe: impl FnMut(&Progress<'_>) -> bool,
    ) -> Result<Trained<'a>, S::Source> {
        let goal = Goal { dims: goal.dims, head: None };
        run::net(sensing, labels, goal, start, params, memory, observe)
    }
}

impl<S: Factored> Method<S> for TwoLayers {
    fn search<'a>(
        goal: Goal<Self>,
        sensing: &mut S,
        labels: &Rows<S>,
        start: Start<'_, Checkpoint<'_>>,
        params: &Params,
        memory: &'a mut [u32],
        observe: impl FnMut(&Progress<'_>) -> bool,
    ) -> Result<Trained<'a>, S::Source> {
        let goal = Goal { dims: goal.dims, head: Some(goal.head.second) };
        run::net(sensing, labels, goal, start, params, memory, observe)
    }
}
