#![allow(dead_code, missing_docs, unreachable_pub, clippy::all)]
use tamis::quantised::Model;
pub const INPUTS: usize = 300;
pub fn model() -> tamis::Result<Model<'static>> { todo!() }
pub fn predict(_: &Model<'_>, _: &[u8; INPUTS], _: &mut [i32; 3]) -> tamis::Result<()> { todo!() }
pub fn classify(_: &Model<'_>, _: &[u8; INPUTS]) -> tamis::Result<usize> { todo!() }
