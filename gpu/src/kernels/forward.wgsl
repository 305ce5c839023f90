// Outputs `sum_i gate_i (w_i · x)` of rows.
//
// dims.quads    rows of the chunk / 4
// dims.words    rows of the chunk / 32
// dims.blocks   neurons
// dims.add      whether to add to what is there
// dims.row      first row of the chunk
// dims.rows     rows
// dims.out      where its output stands
// out           outputs of the batch, n
struct Dims { quads: u32, words: u32, blocks: u32, add: u32, row: u32, rows: u32, out: u32, pad: u32 }
@group(0) @binding(0) var<uniform> dims: Dims;
@group(0) @binding(6) var<storage, read_write> out: array<f32>;

fn put(own: u32, quad: u32, four: vec4<f32>) {
    for (var t = 0u; t < 4u; t++) {
        if is_own(own, t) {
            let at = dims.out + quad * 4u + t - dims.row;
            out[at] = select(four[t], out[at] + four[t], dims.add == 1u);
        }
    }
}
