// Adds what groups have, in their order: `out[e] = sum_g sums[g][e]`.
//
// grid          (numbers / 64)
// dims.numbers  numbers of a group
// dims.groups   groups
// sums          groups × numbers
// out           numbers
struct Dims { numbers: u32, groups: u32, pad0: u32, pad1: u32 }
@group(0) @binding(0) var<uniform> dims: Dims;
@group(0) @binding(1) var<storage, read> sums: array<f32>;
@group(0) @binding(2) var<storage, read_write> out: array<f32>;

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
    let at = id.y * groups.x * 64u + id.x;
    if at >= dims.numbers {
        return;
    }
    var sum = 0.0;
    for (var g = 0u; g < dims.groups; g++) {
        sum += sums[g * dims.numbers + at];
    }
    out[at] = sum;
}
