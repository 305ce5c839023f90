// Outputs `sum_i gate_i (w_i · x)` of rows.
//
// SHARES        threads that share the neurons of four rows; divides 256
//
// grid          (rows SHARES / 1024); a thread takes four rows and every SHARES-th neuron
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

var<workgroup> parts: array<vec4<f32>, 256>;

@compute @workgroup_size(256)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) thread: u32) {
    let quads = 256u / SHARES;
    let own = group.x * quads + thread % quads;
    let quad = own_quad(own);
    var part = vec4<f32>();
    for (var b = thread / quads; b < dims.blocks; b += SHARES) {
        part += activation(blocks[b], quad);
    }
    if SHARES > 1u {
        parts[thread] = part;
        workgroupBarrier();
        if thread >= quads {
            return;
        }
        part = vec4<f32>();
        for (var share = 0u; share < SHARES; share++) {
            part += parts[share * quads + thread];
        }
    }
    for (var t = 0u; t < 4u; t++) {
        if is_own(own, t) {
            let at = dims.out + quad * 4u + t - dims.row;
            out[at] = select(part[t], out[at] + part[t], dims.add == 1u);
        }
    }
}
