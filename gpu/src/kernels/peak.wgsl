// Multiply-adds without memory: what a device computes at the most.
//
// grid          (groups); 256 threads each
// dims.rounds   rounds of 64 multiply-adds a thread
// out           a number for each thread, so that nothing is left out
struct Dims { rounds: u32, pad0: u32, pad1: u32, pad2: u32 }
@group(0) @binding(0) var<uniform> dims: Dims;
@group(0) @binding(1) var<storage, read_write> out: array<f32>;

@compute @workgroup_size(256)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    let b = vec4<f32>(0.999 + f32(id.x) * 1e-9);
    let c = vec4<f32>(1e-3);
    var p = vec4<f32>(f32(id.x));
    var q = p + 1.0;
    var r = p + 2.0;
    var s = p + 3.0;
    for (var round = 0u; round < dims.rounds; round++) {
        p = fma(p, b, c);
        q = fma(q, b, c);
        r = fma(r, b, c);
        s = fma(s, b, c);
        p = fma(p, b, c);
        q = fma(q, b, c);
        r = fma(r, b, c);
        s = fma(s, b, c);
        p = fma(p, b, c);
        q = fma(q, b, c);
        r = fma(r, b, c);
        s = fma(s, b, c);
        p = fma(p, b, c);
        q = fma(q, b, c);
        r = fma(r, b, c);
        s = fma(s, b, c);
    }
    let sum = (p + q) + (r + s);
    out[id.x] = sum.x + sum.y + sum.z + sum.w;
}
