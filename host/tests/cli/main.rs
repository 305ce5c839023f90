//! The command line: runs the binary and looks at what it prints and leaves.

mod basic;
mod common;
mod compare;
mod course;
mod deep;
mod errors;
mod export;
mod files;
mod imp;
mod import;
mod inspect;
mod keep;
mod learn;
mod mnist;
mod must_keep;
mod outputs;
mod path;
mod published;
mod quantise;
mod quantise_tune;
mod run;
mod theory;
mod two_layers;
