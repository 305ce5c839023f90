//! Tamis on a host: data files in and out, the fast CPU operator, training runs, experiments,
//! pictures and the command line.
//!
//! Algorithms live in the core crate [`tamis`]; this crate brings them data, speed and a user
//! interface. A folder is a room, and a file may use files of rooms before its own:
//! `base → data → operator → model → train → convert → mask → prune → lab → cli`.
//!
//! ```
//! use tamis_host::{Budget, ModelFile, Table};
//! # let folder = tempfile::tempdir().unwrap();
//! # std::env::set_current_dir(folder.path()).unwrap();
//! # let noise = |k: usize| ((k * 7919 + k * k % 2531) % 1009) as f32 / 500.0 - 1.0;
//! # let row = |k: usize| (0..6).map(|j| noise(6 * k + j)).collect::<Vec<_>>();
//! # let line = |s: Vec<f32>| {
//! #     let label = (1.5 * s[3] - 0.8 * s[4]).max(0.0) - (0.6 * s[0] + 2.0 * s[2]).max(0.0);
//! #     format!("{},{},{},{},{},{},{label}\n", s[0], s[1], s[2], s[3], s[4], s[5])
//! # };
//! # let rows: String = (0..600).map(|k| line(row(k))).collect();
//! # std::fs::write("sensors.csv", format!("a,b,c,d,e,f,label\n{rows}")).unwrap();
//!
//! let (train, test) = Table::read("sensors.csv")?.target("label")?.split(0.8, 1)?;
//! let model = tamis_host::train(&train, Budget::nnz(4))?;
//! println!("{}", model.score(&test)?);
//! model.save("sensors.tamis")?;
//!
//! let model = ModelFile::load("sensors.tamis")?;
//! assert!(model.score_on(&test)?.loss < 1e-3);
//! # Ok::<(), tamis_host::Error>(())
//! ```
//!
//! [`Options`] say more than a [`Budget`]: hidden layers, recipe, seed, memory, limits,
//! checkpoints. [`train::train_with`] has an observer, and [`train::train_path`] trains several
//! sizes.

pub mod base;
pub mod cli;
pub mod convert;
pub mod data;
pub mod lab;
pub mod mask;
pub mod model;
pub mod operator;
pub mod prune;
pub mod train;

pub use base::error::{Error, Result};
pub use data::{Problem, Table};
pub use model::ModelFile;
pub use train::{Budget, Options, Recipe, Trained, train};

/// The program of the page on training compiles.
#[cfg(doctest)]
#[doc = include_str!("../../docs/train.md")]
struct TrainPage;
