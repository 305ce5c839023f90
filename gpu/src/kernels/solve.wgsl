// Conjugate gradients for damped normal equations on a support whose Gram matrix G is there:
// `(G + lambda D) delta = b`, preconditioned with D; as `tamis::operator::solve` has them.
//
// grid          one workgroup
// dims.size     s
// dims.products products at the most
// dims.plain    without preconditioner and damping
// dims.lambda   the damping
// dims.goal     the relative residual to end at, squared
// gram          s × s
// vectors       four numbers, of which the first two are the products and steps that were made; then delta and
//               g (the residual of the equations), D, p and h: s each
struct Dims { size: u32, products: u32, plain: u32, lambda: f32, goal: f32, pad0: u32, pad1: u32, pad2: u32 }
@group(0) @binding(0) var<uniform> dims: Dims;
@group(0) @binding(1) var<storage, read> gram: array<f32>;
@group(0) @binding(2) var<storage, read_write> vectors: array<f32>;

fn delta(i: u32) -> u32 { return 4u + i; }
fn g(i: u32) -> u32 { return 4u + dims.size + i; }
fn d(i: u32) -> u32 { return 4u + 2u * dims.size + i; }
fn p(i: u32) -> u32 { return 4u + 3u * dims.size + i; }
fn h(i: u32) -> u32 { return 4u + 4u * dims.size + i; }

var<workgroup> parts: array<f32, 256>;
var<workgroup> total: f32;

// The sum over all threads, in their order whatever the device.
fn sum_of(thread: u32, part: f32) -> f32 {
    workgroupBarrier();
    parts[thread] = part;
    workgroupBarrier();
    for (var half = 128u; half > 0u; half /= 2u) {
        if thread < half {
            parts[thread] += parts[thread + half];
        }
        workgroupBarrier();
    }
    if thread == 0u {
        total = parts[0];
    }
    return workgroupUniformLoad(&total);
}

// An entry of the preconditioned residual; a column without norm has no equation.
fn preconditioned(i: u32) -> f32 {
    if dims.plain == 1u {
        return vectors[g(i)];
    }
    let norm = vectors[d(i)];
    return select(0.0, vectors[g(i)] / (norm * (1.0 + dims.lambda)), norm > 0.0);
}

fn slope_of(thread: u32) -> f32 {
    var part = 0.0;
    for (var i = thread; i < dims.size; i += 256u) {
        part += preconditioned(i) * vectors[g(i)];
    }
    return sum_of(thread, part);
}

@compute @workgroup_size(256)
fn main(@builtin(local_invocation_index) thread: u32) {
    let s = dims.size;
    var slope = slope_of(thread);
    let goal = dims.goal * slope;
    var beta = 0.0;
    var products = 0u;
    var steps = 0u;
    for (var i = thread; i < s; i += 256u) {
        vectors[p(i)] = 0.0;
    }
    while products < dims.products && slope > goal {
        for (var i = thread; i < s; i += 256u) {
            vectors[p(i)] = preconditioned(i) + beta * vectors[p(i)];
        }
        storageBarrier();
        var part = 0.0;
        for (var i = thread; i < s; i += 256u) {
            var sum = 0.0;
            for (var j = 0u; j < s; j++) {
                sum += gram[j * s + i] * vectors[p(j)];
            }
            if dims.plain == 0u {
                sum += dims.lambda * vectors[d(i)] * vectors[p(i)];
            }
            vectors[h(i)] = sum;
            part += vectors[p(i)] * sum;
        }
        products += 1u;
        let curvature = sum_of(thread, part);
        let length = slope / curvature;
        // What is not a number compares as false; so does a length out of range.
        if !(curvature > 0.0) || !(abs(length) < 3.0e38) {
            break;
        }
        for (var i = thread; i < s; i += 256u) {
            vectors[delta(i)] += length * vectors[p(i)];
            vectors[g(i)] -= length * vectors[h(i)];
        }
        steps += 1u;
        let next = slope_of(thread);
        beta = next / slope;
        slope = next;
    }
    if thread == 0u {
        vectors[0] = f32(products);
        vectors[1] = f32(steps);
    }
}
