//! Models as files, and masks: prediction, scores, quantisation, inspection, comparison with a device, and with another model.

mod batch;
pub(crate) mod certify;
pub(crate) mod compare;
pub mod cost;
pub(crate) mod deployed;
pub(crate) mod file;
pub(crate) mod labelled;
pub(crate) mod mask;
pub(crate) mod measures;
pub(crate) mod names;
pub(crate) mod predict;
pub(crate) mod quantise;
pub(crate) mod rows;
pub(crate) mod score;
pub(crate) mod target;
pub(crate) mod weights;
pub(crate) mod windows;

pub use certify::{Boxes, Certificate, CertifyOptions, FreshRows, RowCertificate, certify};
pub use compare::{ComparedLayer, Comparison, Difference, TraceLog, TracedRow};
pub use deployed::{Limit, Limited, Needs, TargetCost, WayNeeds};
pub use file::{IntegerScales, LayerCost, ModelCost, ModelFile};
pub(crate) use mask::MaskLayer;
pub use mask::{LayerName, Mask, MaskedLayer};
pub use measures::{Calibration, CalibrationBin, ClassScore, Measures};
pub use predict::score_model;
pub(crate) use predict::score_rows;
pub use quantise::{
    EpochProgress, Granularity, QuantiseOptions, QuantiseOutcome, QuantiseReport, QuantisedLayer,
    TuneOptions, TuneReport, quantise, quantise_until,
};
pub use score::{MAX_PSNR_DB, Score};
pub use target::{DEVICES, Device, Target};
pub use weights::WeightStats;
pub use windows::Encodings;
