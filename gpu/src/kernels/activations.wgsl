// Activations `gate_i (w_i · x)` of rows, one neuron after the other.
//
// grid          (rows / 256, neurons); a thread takes four rows of one neuron
// dims.quads    rows of the chunk / 4
// dims.words    rows of the chunk / 32
// dims.row      first row of the chunk
// dims.rows     rows
// dims.out      where its activation stands
// dims.batch    n, rows of the batch
// out           neurons × n
struct Dims { quads: u32, words: u32, row: u32, rows: u32, out: u32, batch: u32, pad0: u32, pad1: u32 }
@group(0) @binding(0) var<uniform> dims: Dims;
@group(0) @binding(6) var<storage, read_write> out: array<f32>;

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    let quad = dims.row / 4u + id.x;
    if quad * 4u >= dims.row + dims.rows {
        return;
    }
    let sum = activation(blocks[id.y], quad);
    for (var t = 0u; t < 4u; t++) {
        let row = quad * 4u + t;
        if row >= dims.row && row < dims.row + dims.rows {
            out[id.y * dims.batch + dims.out + row - dims.row] = sum[t];
        }
    }
}
