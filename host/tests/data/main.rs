//! Data files and generators: reading, selecting, writing.

mod csv;
mod digits;
mod files;
mod formats;
mod select;
mod write;
