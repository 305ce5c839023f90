// Outputs `sum_i gate_i (w_i · x) wt_i` of rows, c numbers a row.
//
// grid          (rows / 256); a thread takes four rows and all neurons
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
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    let quad = dims.row / 4u + id.x;
    if quad * 4u >= dims.row + dims.rows {
        return;
    }
    for (var b = 0u; b < dims.blocks; b++) {
        let a = activation(blocks[b], quad);
        let place = places[b];
        for (var t = 0u; t < 4u; t++) {
            let row = quad * 4u + t;
            if a[t] == 0.0 || row < dims.row || row >= dims.row + dims.rows {
                continue;
            }
            let at = (dims.out + row - dims.row) * dims.width;
            for (var e = place.x; e < place.x + place.y; e++) {
                let weight = weights[e];
                out[at + weight.x] += bitcast<f32>(weight.y) * a[t];
            }
        }
    }
}
