//! An operator on the device that was chosen, and what recipes need of either kind.

use std::convert::Infallible;

use tamis::network::gates::Gates;
use tamis::network::net::{Head, Network};
use tamis::operator::factored::Factored;
use tamis::operator::machine::Machine;
use tamis::operator::sensing::{Done, Rows, Sensing};

use super::{Blocked, Device, HiddenLayers, Layout, Stop};
use crate::data::Matrix;
use crate::{Error, Result};

/// Labels that are classes, as an operator's machine has them.
pub(crate) type ClassesOf<S> = <<S as Sensing>::Machine as Machine>::Classes;

/// An operator that recipes train on.
pub(crate) trait Backend: Factored {
    /// The error of a call: that of the device where it has failed.
    fn failed(&self, error: tamis::Error<Self::Source>) -> Error;

    /// Whether the device has failed.
    fn has_failed(&self) -> bool {
        false
    }

    /// Labels as the operator has them; `memory` is for what stands for them here.
    fn labels<'m>(&mut self, labels: &'m [f32], memory: &'m mut Vec<f32>) -> &'m Rows<Self>;

    /// As [`Self::labels`], of classes.
    fn classes<'m>(&mut self, classes: &'m [u16], memory: &'m mut Vec<f32>) -> &'m ClassesOf<Self>;

    /// Outputs of a network on the batch, in memory of this machine.
    fn outputs(
        &mut self,
        gates: Gates<'_>,
        net: Network<'_>,
        out: &mut [f32],
        scratch: &mut [f32],
    ) -> Done<Self>;
}

impl Backend for Blocked {
    fn failed(&self, error: tamis::Error<Infallible>) -> Error {
        error.into()
    }

    fn labels<'m>(&mut self, labels: &'m [f32], _: &'m mut Vec<f32>) -> &'m [f32] {
        labels
    }

    fn classes<'m>(&mut self, classes: &'m [u16], _: &'m mut Vec<f32>) -> &'m [u16] {
        classes
    }

    fn outputs(
        &mut self,
        gates: Gates<'_>,
        net: Network<'_>,
        out: &mut [f32],
        scratch: &mut [f32],
    ) -> Done<Self> {
        match net.head() {
            Head::Signs(_) => self.forward(gates, net.w(), out),
            Head::Weights(_) => self.net_forward(gates, net, out, scratch),
        }
    }
}

#[cfg(feature = "gpu")]
impl Backend for tamis_gpu::GpuOperator {
    fn failed(&self, error: tamis::Error<tamis_gpu::Error>) -> Error {
        self.failure().cloned().map_or_else(|| of_device(error), Error::from)
    }

    fn has_failed(&self) -> bool {
        self.failure().is_some()
    }

    fn labels<'m>(&mut self, labels: &'m [f32], memory: &'m mut Vec<f32>) -> &'m [u32] {
        memory.resize(labels.len(), 0.0);
        self.machine().upload(labels, memory)
    }

    fn classes<'m>(&mut self, classes: &'m [u16], memory: &'m mut Vec<f32>) -> &'m [u32] {
        memory.resize(classes.len(), 0.0);
        self.machine().upload_classes(classes, memory)
    }

    fn outputs(
        &mut self,
        gates: Gates<'_>,
        net: Network<'_>,
        out: &mut [f32],
        scratch: &mut [f32],
    ) -> Done<Self> {
        let rows = self.machine().rows_in(out);
        self.net_forward(gates, net, rows, scratch)?;
        let numbers = self.machine().download(rows);
        out.copy_from_slice(&numbers);
        Ok(())
    }
}

/// An operator on the CPU, or on a GPU beside the data as they came.
#[allow(clippy::large_enum_variant, reason = "there is one of it a run")]
pub(crate) enum Placed {
    Cpu(Blocked),
    #[cfg(feature = "gpu")]
    Gpu(tamis_gpu::GpuOperator, Matrix),
}

/// Evaluates an expression with the operator, whatever its type.
macro_rules! on_device {
    ($operator:expr, $on:ident => $body:expr) => {
        match $operator {
            $crate::operator::Placed::Cpu($on) => $body,
            #[cfg(feature = "gpu")]
            $crate::operator::Placed::Gpu($on, _) => $body,
        }
    };
}
pub(crate) use on_device;

impl Placed {
    /// Takes data over, as [`Blocked::new`] or [`Blocked::through`] with room for so many outputs.
    pub(crate) fn new(
        device: &Device,
        data: Matrix,
        layers: Option<HiddenLayers>,
        sizes: OperatorSizes,
        layout: Layout,
    ) -> Result<Self> {
        let OperatorSizes { hidden, nnz, outputs } = sizes;
        match device {
            Device::Cpu => {
                let operator = match layers {
                    None => Blocked::new(data, hidden, nnz, layout)?,
                    Some(layers) => Blocked::through(data, layers, hidden, nnz, layout)?,
                };
                let with = |operator: Blocked| operator.with_outputs(outputs);
                Ok(Self::Cpu(if outputs > 0 { with(operator) } else { operator }))
            }
            #[cfg(feature = "gpu")]
            Device::Gpu(gpu) => {
                if layers.is_some() {
                    return Err(one_layer(gpu));
                }
                let values = match &data.values {
                    crate::data::Values::F32(values) => tamis_gpu::Values::F32(values),
                    crate::data::Values::U8(values) => tamis_gpu::Values::U8(values),
                };
                let operator = tamis_gpu::GpuOperator::new(gpu, data.cols, hidden, values)
                    .map_err(of_device)?;
                Ok(Self::Gpu(operator.with_panel(layout.panel), data))
            }
        }
    }

    /// As [`Blocked::heed`].
    pub(crate) fn heed(&mut self, stop: Option<Stop>) {
        match self {
            Self::Cpu(operator) => operator.heed(stop),
            #[cfg(feature = "gpu")]
            Self::Gpu(operator, _) => operator.heed(stop.map(|stop| {
                let asked: Box<dyn Fn() -> bool + Send> = Box::new(move || stop.asked());
                asked
            })),
        }
    }

    /// Gives the data back, as they came.
    pub(crate) fn into_data(self) -> Matrix {
        match self {
            Self::Cpu(operator) => operator.into_data(),
            #[cfg(feature = "gpu")]
            Self::Gpu(_, data) => data,
        }
    }

    /// n.
    pub(crate) fn rows(&self) -> usize {
        on_device!(self, on => on.rows())
    }

    /// Bytes that have moved between this machine's memory and a GPU's; none on the CPU.
    pub(crate) fn transferred_bytes(&self) -> Option<u64> {
        match self {
            Self::Cpu(_) => None,
            #[cfg(feature = "gpu")]
            Self::Gpu(operator, _) => {
                let tamis_gpu::Transfers { data, sent, received } = operator.transfers();
                Some(data + sent + received)
            }
        }
    }
}

/// What an operator is for: neurons, the largest support, and outputs that weights lead to.
#[derive(Debug, Clone, Copy)]
pub(crate) struct OperatorSizes {
    pub(crate) hidden: usize,
    pub(crate) nnz: usize,
    pub(crate) outputs: usize,
}

#[cfg(feature = "gpu")]
fn of_device(error: tamis::Error<tamis_gpu::Error>) -> Error {
    error.narrow().map_or_else(Error::from, Error::from)
}

#[cfg(feature = "gpu")]
fn one_layer(gpu: &tamis_gpu::Gpu) -> Error {
    Error::new("layers behind others are trained on the CPU only")
        .expected("one hidden layer with --device gpu")
        .got(format_args!("several, on {}", gpu.adapter.name))
        .help("use --device cpu")
}
