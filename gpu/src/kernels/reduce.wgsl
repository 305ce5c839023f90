// Sums over the numbers of vectors, two at a time, as the machine's operations say.
//
// THREADS       of a group, a power of two
//
// grid          (groups); a group takes `dims.group` numbers
// dims.numbers  numbers
// dims.kind     which operation
// dims.first    where x begins
// dims.group    numbers of a group
// dims.base     number of the first group
// dims.a, b, c  its numbers
// x, y, z       vectors
// sums          groups × 2
struct Dims {
    numbers: u32, kind: u32, first: u32, group: u32, base: u32, a: f32, b: f32, c: f32,
}
@group(0) @binding(0) var<uniform> dims: Dims;
@group(0) @binding(1) var<storage, read> x: array<f32>;
@group(0) @binding(2) var<storage, read> y: array<f32>;
@group(0) @binding(3) var<storage, read> z: array<f32>;
@group(0) @binding(4) var<storage, read_write> sums: array<vec2<f32>>;

var<workgroup> parts: array<vec2<f32>, THREADS>;

// Two neurons' activations in place of one: what they have over it.
fn change(i: u32) -> f32 {
    let v = dims.a;
    let t = dims.b * z[i];
    let first = max(v * (dims.c * y[i] + t), 0.0);
    return v * (first + max(v * ((1.0 - dims.c) * y[i] - t), 0.0) - max(v * y[i], 0.0));
}

fn term(i: u32) -> vec2<f32> {
    switch dims.kind {
        // dot
        case 0u: { return vec2<f32>(x[i] * y[i], 0.0); }
        // sum
        case 1u: { return vec2<f32>(x[i], 0.0); }
        // active: sign x > 0
        case 2u: { return vec2<f32>(select(0.0, 1.0, dims.a * x[i] > 0.0), 0.0); }
        // power of the labels
        case 3u: { let label = dims.a * x[dims.first + i]; return vec2<f32>(label * label, 0.0); }
        // fit: labels x, residual y
        case 4u: {
            let label = dims.a * x[dims.first + i];
            let f = label - y[i];
            return vec2<f32>(label * f, f * f);
        }
        // halves: residual x, activations y, directions z
        case 5u: { let c = change(i); return vec2<f32>(x[i] * c, c * c); }
        // pair: residual y, activations x and z
        default: {
            let phi = max(x[i] - dims.a * z[i], 0.0);
            return vec2<f32>(y[i] * phi, phi * phi);
        }
    }
}

@compute @workgroup_size(THREADS)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) thread: u32) {
    let first = group.x * dims.group;
    let end = min(first + dims.group, dims.numbers);
    var sum = vec2<f32>();
    for (var i = first + thread; i < end; i += THREADS) {
        sum += term(i);
    }
    parts[thread] = sum;
    workgroupBarrier();
    for (var half = THREADS / 2u; half > 0u; half /= 2u) {
        if thread < half {
            parts[thread] += parts[thread + half];
        }
        workgroupBarrier();
    }
    if thread == 0u {
        sums[dims.base + group.x] = parts[0];
    }
}
