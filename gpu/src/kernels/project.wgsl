// Products of a table with output weights of neurons, `out[i] = R wt_i`.
//
// grid          (rows / 64, neurons, planes of these)
// dims.rows     rows of the window
// dims.width    c
// dims.stride   numbers of a line of `out`
// dims.first    where the first row stands in it
// places        (first, entries) of the neuron's output weights
// weights       (output, value)
// r             rows × c
// out           neurons × n
struct Dims { rows: u32, width: u32, stride: u32, first: u32 }
@group(0) @binding(0) var<uniform> dims: Dims;
@group(0) @binding(1) var<storage, read> places: array<vec2<u32>>;
@group(0) @binding(2) var<storage, read> weights: array<vec2<u32>>;
@group(0) @binding(3) var<storage, read> r: array<f32>;
@group(0) @binding(4) var<storage, read_write> out: array<f32>;

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
    let row = id.z * groups.x * 64u + id.x;
    if row >= dims.rows {
        return;
    }
    let place = places[id.y];
    var sum = 0.0;
    for (var e = place.x; e < place.x + place.y; e++) {
        let weight = weights[e];
        sum += bitcast<f32>(weight.y) * r[row * dims.width + weight.x];
    }
    out[id.y * dims.stride + dims.first + row] = sum;
}
