// Adds what groups have, in an order that their number says: `out[e] = sum_g sums[g][e]`.
//
// grid          (numbers / 32); eight threads a number, each of which takes every eighth group
// dims.numbers  numbers of a group
// dims.groups   groups
// sums          groups × numbers
// out           numbers
struct Dims { numbers: u32, groups: u32, pad0: u32, pad1: u32 }
@group(0) @binding(0) var<uniform> dims: Dims;
@group(0) @binding(1) var<storage, read> sums: array<f32>;
@group(0) @binding(2) var<storage, read_write> out: array<f32>;

var<workgroup> parts: array<f32, 256>;

@compute @workgroup_size(256)
fn main(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) thread: u32,
) {
    let at = (group.y * groups.x + group.x) * 32u + thread % 32u;
    let is_own = at < dims.numbers;
    var part = 0.0;
    if is_own {
        for (var g = thread / 32u; g < dims.groups; g += 8u) {
            part += sums[g * dims.numbers + at];
        }
    }
    parts[thread] = part;
    workgroupBarrier();
    if thread < 32u && is_own {
        var sum = 0.0;
        for (var eighth = 0u; eighth < 8u; eighth++) {
            sum += parts[eighth * 32u + thread];
        }
        out[at] = sum;
    }
}
