// The largest magnitude of a vector, as bits: those of nonnegative floats order as the floats do, and
// what is no finite number is above all others.
//
// grid          (groups); a group takes `dims.group` numbers
// dims.numbers  numbers
// dims.group    numbers of a group
// dims.base     number of the first group
// x             the vector, as bits
// out           groups
struct Dims { numbers: u32, group: u32, base: u32, pad: u32 }
@group(0) @binding(0) var<uniform> dims: Dims;
@group(0) @binding(1) var<storage, read> x: array<u32>;
@group(0) @binding(2) var<storage, read_write> out: array<u32>;

var<workgroup> parts: array<atomic<u32>, 1>;

@compute @workgroup_size(256)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) thread: u32) {
    let first = group.x * dims.group;
    let end = min(first + dims.group, dims.numbers);
    var most = 0u;
    for (var i = first + thread; i < end; i += 256u) {
        most = max(most, x[i] & 0x7fffffffu);
    }
    if thread == 0u {
        atomicStore(&parts[0], 0u);
    }
    workgroupBarrier();
    atomicMax(&parts[0], most);
    workgroupBarrier();
    if thread == 0u {
        out[dims.base + group.x] = atomicLoad(&parts[0]);
    }
}
