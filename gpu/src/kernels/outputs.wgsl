// Products of activations with output weights, `out[k] += sum_i a_i wt_ik`, c numbers a row.
//
// grid          (rows / 64, outputs, planes of these)
// dims.rows     rows of the window
// dims.width    c
// dims.stride   numbers of a line of `a`
// dims.first    where the first row stands in it
// places        (first, entries) of the weights of each output
// weights       (which activations, value)
// a             neurons × n
// out           rows × c
struct Dims { rows: u32, width: u32, stride: u32, first: u32 }
@group(0) @binding(0) var<uniform> dims: Dims;
@group(0) @binding(1) var<storage, read> places: array<vec2<u32>>;
@group(0) @binding(2) var<storage, read> weights: array<vec2<u32>>;
@group(0) @binding(3) var<storage, read> a: array<f32>;
@group(0) @binding(4) var<storage, read_write> out: array<f32>;

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
    let row = id.z * groups.x * 64u + id.x;
    let place = places[id.y];
    if row >= dims.rows || place.y == 0u {
        return;
    }
    let at = row * dims.width + id.y;
    var sum = out[at];
    for (var e = place.x; e < place.x + place.y; e++) {
        let weight = weights[e];
        sum += bitcast<f32>(weight.y) * a[weight.x * dims.stride + dims.first + row];
    }
    out[at] = sum;
}
