// Reads a buffer once: the bandwidth of a device's memory.
//
// grid          (groups); 256 threads each
// dims.numbers  numbers of the data / 4
// data          what is read
// out           a number for each thread, so that nothing is left out
struct Dims { numbers: u32, pad0: u32, pad1: u32, pad2: u32 }
@group(0) @binding(0) var<uniform> dims: Dims;
@group(0) @binding(1) var<storage, read> data: array<vec4<f32>>;
@group(0) @binding(2) var<storage, read_write> out: array<f32>;

@compute @workgroup_size(256)
fn main(@builtin(global_invocation_id) id: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
    var sum = vec4<f32>();
    for (var i = id.x; i < dims.numbers; i += groups.x * 256u) {
        sum += data[i];
    }
    out[id.x] = sum.x + sum.y + sum.z + sum.w;
}
