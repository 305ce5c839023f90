//! The sensing operator on a GPU: the plan for an implementation of
//! [`tamis::operator::sensing::Sensing`] on wgpu.
//!
//! **This crate holds a plan and no code yet.** The trait, its provided bodies and the conformance
//! suite were shaped with this page at hand; until its own tests have passed on a device, nothing
//! here is claimed to work. Figures below are counted from the algorithm, not measured.
//!
//! # What stays, what travels
//!
//! A step of the trainer reads the data many times and moves little else, so the data never leaves
//! the device:
//!
//! | what | size | where |
//! |---|---|---|
//! | X, in tiles of rows, bytes kept as bytes | n·d floats, or n·d bytes | device, uploaded once |
//! | held gates, one bit per row and neuron of the support | n·k bits, k ≤ min(m, s) | device |
//! | partial sums of the reductions | groups × (p·d or s) floats | device |
//! | sparse weights: neuron offsets, inputs, values | about 8 s bytes | up, with each set of weights |
//! | random generators of a panel | p·d floats | up, in the random phase only |
//! | residual, or the outputs it is made from | n floats | up for a gradient, down after a forward |
//! | a gradient panel | p·d floats | down, into the caller's buffer |
//! | restricted vectors | s floats | up and down with each `normal_at` |
//!
//! At n = 50 000, d = 100, m = 100, s = 500 that is 20 MB of X resident; per step 0.2 MB down for
//! the outputs, 0.2 MB up for the residual and 40 kB down for the gradient; and 2 kB each way per
//! refinement. Top-s, step sizes and the schedule stay in [`tamis::learn::iht`] on the host,
//! unchanged: the optimiser does not know where its operator runs. The caller's scratch is not
//! needed, so [`scratch`](tamis::operator::sensing::Sensing::scratch) will be 0, and
//! [`panel`](tamis::operator::sensing::Sensing::panel) will be m as long as m·d floats fit beside
//! X.
//!
//! # How the calls become compute passes
//!
//! One workgroup takes one tile of rows, one invocation one row of it, unless said otherwise.
//! `select` only sets the range of rows; the first and the last tile are masked, so batches need
//! not be whole tiles.
//!
//! * `hold`: one pass. Each invocation computes `sign · w_i · x` for the neurons of the support,
//!   entry by entry in the order of the weights, and packs the outcomes into words of 32 rows by a
//!   ballot in workgroup memory. With random generators the pass is a product of a tile with the
//!   generators of a panel. The bits are valid while the gates that it returns are used, as on the
//!   host.
//! * `forward`: one pass. Each invocation adds `gate_i(x) (w_i · x)` over the neurons in rising
//!   order, with held bits if they fit these gates and with computed ones otherwise. Nothing is
//!   reduced across rows; n floats come down.
//! * `gradient`: two passes. The first is the product `X^T [gate_1 ∘ r, …, gate_p ∘ r]` of each
//!   group of tiles, the gated residual built in workgroup memory and never in a buffer; neurons
//!   that are closed on every row are left out, as the host does. The second adds the groups'
//!   partial panels in a fixed order.
//! * `normal_at`: two passes. In the first, each invocation computes `a = A_S p` of its row into
//!   workgroup memory; behind a barrier it changes sides and takes entries of the support, for each
//!   of which it sums `a · gate_i(x) x_j` over the rows of the tile, in their order. So X is read
//!   from memory once. The second pass adds the groups. `gradient_at` is the same with `a` given.
//! * `column_norms`: as `gradient`, with squares and without a residual; used by the `theory` step
//!   only.
//! * `apply` and `adjoint`, the two required products, are the bulk passes for one neuron, since
//!   they *add* to the caller's output and exist for tests and provided bodies rather than for
//!   speed.
//!
//! A call records its passes, submits them, and waits for what comes down. Losing the device and
//! running out of its memory are the errors of the data source ([`tamis::Error::Source`]); wrong
//! lengths are refused before anything is recorded. A binding is limited, to 128 MiB by default, so
//! X is a list of buffers of whole tiles.
//!
//! # The same result every time
//!
//! On one device and driver, a run must give the same bits each time it is started:
//!
//! * No floating-point atomics. Every sum across tiles goes through partial sums of a fixed number
//!   of groups, and those are added in a fixed order; which workgroup ran first cannot be seen.
//! * The division into tiles and groups depends on n and d, not on the device's limits or
//!   occupancy.
//! * No subgroup arithmetic, whose width differs from device to device.
//! * Everything random is drawn by [`tamis::base::rng`] on the host and uploaded.
//!
//! Between devices, and against the host, bits will differ: shaders may fuse a product with the sum
//! it goes to, and the language does not let a program forbid it. For products that is a matter of
//! tolerance. For gates it is not: a row whose `w_i · x` is within rounding of zero may be open on
//! one machine and closed on the other, and then a whole row enters the gradient or does not. How
//! such rows are to be treated is the open question of this plan. The choices are to compute the
//! gates on the host and to upload the bits, which costs n·k bits a step and makes them exact, or
//! to accept the flips and to leave the rows within rounding of zero out of the comparison.
//!
//! # What the conformance suite will check
//!
//! The suite of `tamis-tests` is generic over operators and runs as it is. With the reference
//! operator on the same data as oracle, agreement `Close`, it holds this operator to the adjoint
//! identity, to every product, to `hold` followed by the products that it announces, to whole steps
//! and their supports, to planted recovery, to the lengths that must be refused, and to edge
//! shapes: one row, neurons without weights, panels that do not divide m, batches that cut tiles.
//! To be added here: the same call twice gives the same bits; the result does not depend on the
//! size of a binding; bytes and the floats that they stand for give the same bits; a lost device is
//! an error and no hang. `cargo ci gpu` will run all of this on a software Vulkan driver, so that
//! no GPU is needed to check it.
//!
//! # Why there is no code yet
//!
//! The operator that this one has to agree with, and the calls that are worth a kernel, were still
//! moving: `hold` and the fused `normal_at` came out of measuring the host's. A device also earns
//! its latency only where one read of X takes longer than a submission. The GPU comes with the
//! workloads that need it: deep and dense networks, large data, and sweeps of many runs over the
//! same X.
