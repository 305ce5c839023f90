// Adds what groups have, in an order that their number says: `out[e] = sum_g sums[g][e]`.
//
// SHARES        threads that share the groups of a number; divides 256
//
// grid          (numbers SHARES / 256); a thread takes every SHARES-th group
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
    let numbers = 256u / SHARES;
    let at = (group.y * groups.x + group.x) * numbers + thread % numbers;
    let is_own = at < dims.numbers;
    var part = 0.0;
    if is_own {
        for (var g = thread / numbers; g < dims.groups; g += SHARES) {
            part += sums[g * dims.numbers + at];
        }
    }
    if SHARES > 1u {
        parts[thread] = part;
        workgroupBarrier();
        if thread >= numbers {
            return;
        }
        part = 0.0;
        for (var share = 0u; share < SHARES; share++) {
            part += parts[share * numbers + thread];
        }
    }
    if is_own {
        out[at] = part;
    }
}
