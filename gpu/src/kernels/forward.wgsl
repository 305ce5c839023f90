// Outputs `sum_i gate_i (w_i · x)` of rows.
//
// grid          (rows / 1024); a thread takes 16 rows and all neurons
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
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) thread: u32) {
    let quad = quads_of(group.x, thread, dims.row);
    var sum: array<vec4<f32>, 4>;
    for (var b = 0u; b < dims.blocks; b++) {
        let a = activation(blocks[b], quad);
        sum[0] += a[0];
        sum[1] += a[1];
        sum[2] += a[2];
        sum[3] += a[3];
    }
    for (var q = 0u; q < 4u; q++) {
        for (var t = 0u; t < 4u; t++) {
            if is_own(group.x, thread, q, t) {
                let at = dims.out + quad[q] * 4u + t - dims.row;
                out[at] = select(sum[q][t], out[at] + sum[q][t], dims.add == 1u);
            }
        }
    }
}
