// Adds outer products to a table at some outputs: `out += a vᵀ - b uᵀ`.
//
// grid          (rows / 64)
// dims.rows     rows of the window
// dims.width    c
// dims.weights  outputs of v and u
// dims.second   whether there is a second product
// weights       (output, v, u)
// a, b          rows
// out           rows × c
struct Dims { rows: u32, width: u32, weights: u32, second: u32 }
@group(0) @binding(0) var<uniform> dims: Dims;
@group(0) @binding(1) var<storage, read> weights: array<vec4<u32>>;
@group(0) @binding(2) var<storage, read> a: array<f32>;
@group(0) @binding(3) var<storage, read> b: array<f32>;
@group(0) @binding(4) var<storage, read_write> out: array<f32>;

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
    let row = id.y * groups.x * 64u + id.x;
    if row >= dims.rows {
        return;
    }
    for (var e = 0u; e < dims.weights; e++) {
        let weight = weights[e];
        var sum = a[row] * bitcast<f32>(weight.y);
        if dims.second == 1u {
            sum -= b[row] * bitcast<f32>(weight.z);
        }
        out[row * dims.width + weight.x] += sum;
    }
}
