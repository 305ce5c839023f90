// Outputs `sum_i gate_i (w_i · x)` of rows.
//
// grid          (rows / 256); a thread takes four rows and all neurons
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

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    let quad = dims.row / 4u + id.x;
    if quad * 4u >= dims.row + dims.rows {
        return;
    }
    var sum = vec4<f32>();
    for (var b = 0u; b < dims.blocks; b++) {
        sum += activation(blocks[b], quad);
    }
    for (var t = 0u; t < 4u; t++) {
        let row = quad * 4u + t;
        if row >= dims.row && row < dims.row + dims.rows {
            let at = dims.out + row - dims.row;
            out[at] = select(sum[t], out[at] + sum[t], dims.add == 1u);
        }
    }
}
