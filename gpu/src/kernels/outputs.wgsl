// Outputs `sum_i gate_i (w_i · x) wt_i` of rows, c numbers a row.
//
// grid          (rows / 1024); a thread takes 16 rows and all neurons
// dims.quads    rows of the chunk / 4
// dims.words    rows of the chunk / 32
// dims.blocks   neurons
// dims.width    c
// dims.row      first row of the chunk
// dims.rows     rows
// dims.out      where its outputs stand, in rows
// places        (first, entries) of the neuron's output weights
// weights       (output, value)
// out           n × c, to which is added
struct Dims { quads: u32, words: u32, blocks: u32, width: u32, row: u32, rows: u32, out: u32, pad: u32 }
@group(0) @binding(0) var<uniform> dims: Dims;
@group(0) @binding(6) var<storage, read> places: array<vec2<u32>>;
@group(0) @binding(7) var<storage, read> weights: array<vec2<u32>>;
@group(0) @binding(8) var<storage, read_write> out: array<f32>;

@compute @workgroup_size(64)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) thread: u32) {
    let quad = quads_of(group.x, thread, dims.row);
    for (var b = 0u; b < dims.blocks; b++) {
        let a = activation(blocks[b], quad);
        let place = places[b];
        for (var q = 0u; q < 4u; q++) {
            for (var t = 0u; t < 4u; t++) {
                if a[q][t] == 0.0 || !is_own(group.x, thread, q, t) {
                    continue;
                }
                let at = (dims.out + quad[q] * 4u + t - dims.row) * dims.width;
                for (var e = place.x; e < place.x + place.y; e++) {
                    let weight = weights[e];
                    out[at + weight.x] += bitcast<f32>(weight.y) * a[q][t];
                }
            }
        }
    }
}
