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
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) thread: u32) {
    let own = group.x * 64u + thread;
    let quad = own_quad(own);
    let a = activation(blocks[group.y], quad);
    let first = group.y * dims.batch + dims.out;
    for (var t = 0u; t < 4u; t++) {
        if is_own(own, t) {
            out[first + quad * 4u + t - dims.row] = a[t];
        }
    }
}
