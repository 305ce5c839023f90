// Numbers of a vector one by one, as the machine's operations say.
//
// grid          (numbers / 64)
// dims.numbers  numbers of `out`, or of a window of it
// dims.kind     which operation
// dims.first    where x begins
// dims.a, b, c  its numbers
// x, y          vectors that are read
// out           the vector that is written
struct Dims { numbers: u32, kind: u32, first: u32, pad: u32, a: f32, b: f32, c: f32, pad1: u32 }
@group(0) @binding(0) var<uniform> dims: Dims;
@group(0) @binding(1) var<storage, read> x: array<f32>;
@group(0) @binding(2) var<storage, read> y: array<f32>;
@group(0) @binding(3) var<storage, read_write> out: array<f32>;

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
    let i = id.y * groups.x * 64u + id.x;
    if i >= dims.numbers {
        return;
    }
    switch dims.kind {
        // fill
        case 0u: { out[i] = dims.a; }
        // copy
        case 1u: { out[i] = x[i]; }
        // residual of the labels x
        case 2u: { out[i] = dims.a * x[dims.first + i] - out[i]; }
        // exchange: the residual y with outputs `out` in place of x
        case 3u: { out[i] += y[i] - x[i]; }
        // near a hinge: x the activations, y the residual
        case 4u: { out[i] *= dims.a * y[i] * max(1.0 - abs(x[i]) / dims.b, 0.0) / dims.c; }
        // scale
        case 5u: { out[i] *= dims.a; }
        // divide
        case 6u: { out[i] /= dims.a; }
        // slacken: residuals of the labels x
        case 7u: {
            let r = out[i];
            if r < 0.0 {
                out[i] = min(r + max(dims.a * x[dims.first + i], 0.0), 0.0);
            }
        }
        // keep where the residual x is not 0
        case 8u: {
            if x[i] == 0.0 {
                out[i] = 0.0;
            }
        }
        default: {}
    }
}
