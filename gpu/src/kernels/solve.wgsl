// Conjugate gradients for damped normal equations on a support, `(A_S^T A_S + lambda D) delta = b`,
// preconditioned with D, as `tamis::operator::solve` has them: a step for each product, or all steps with
// the Gram matrix.
//
// grid          one workgroup
// dims.size     s
// dims.products products at the most
// dims.plain    without preconditioner and damping
// dims.mode     begin 0, a step with the product in `product` 1, all steps with the Gram matrix 2
// dims.lambda   the damping
// dims.tolerance  the relative residual to end at, squared
// gram          s × s
// product       A_S^T A_S p, s
// vectors       eight numbers: products, steps, slope, goal, whether it is done; then delta and g (the residual
//               of the equations), D and h: s each
// direction     p, s
struct Dims {
    size: u32, products: u32, plain: u32, mode: u32, lambda: f32, tolerance: f32, pad0: u32, pad1: u32,
}
@group(0) @binding(0) var<uniform> dims: Dims;
@group(0) @binding(1) var<storage, read> gram: array<f32>;
@group(0) @binding(2) var<storage, read> product: array<f32>;
@group(0) @binding(3) var<storage, read_write> vectors: array<f32>;
@group(0) @binding(4) var<storage, read_write> direction: array<f32>;

fn delta(i: u32) -> u32 { return 8u + i; }
fn g(i: u32) -> u32 { return 8u + dims.size + i; }
fn d(i: u32) -> u32 { return 8u + 2u * dims.size + i; }
fn h(i: u32) -> u32 { return 8u + 3u * dims.size + i; }

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

// One of the first eight numbers, the same for all threads.
fn number(thread: u32, i: u32) -> f32 {
    workgroupBarrier();
    if thread == 0u {
        total = vectors[i];
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

fn turn(thread: u32, beta: f32) {
    for (var i = thread; i < dims.size; i += 256u) {
        direction[i] = preconditioned(i) + beta * direction[i];
    }
    storageBarrier();
}

// An entry of the Gram matrix times the direction; with all threads, which read the direction together.
fn product_of(thread: u32, i: u32) -> f32 {
    let s = dims.size;
    var sum = 0.0;
    for (var first = 0u; first < s; first += 256u) {
        workgroupBarrier();
        if first + thread < s {
            parts[thread] = direction[first + thread];
        }
        workgroupBarrier();
        let end = min(256u, s - first);
        var j = 0u;
        for (; j + 3u < end; j += 4u) {
            let at = (first + j) * s + i;
            let a = gram[at];
            let b = gram[at + s];
            let c = gram[at + 2u * s];
            let d = gram[at + 3u * s];
            sum += a * parts[j];
            sum += b * parts[j + 1u];
            sum += c * parts[j + 2u];
            sum += d * parts[j + 3u];
        }
        for (; j < end; j++) {
            sum += gram[(first + j) * s + i] * parts[j];
        }
    }
    return sum;
}

@compute @workgroup_size(256)
fn main(@builtin(local_invocation_index) thread: u32) {
    let s = dims.size;
    if dims.mode == 0u {
        for (var i = thread; i < s; i += 256u) {
            direction[i] = 0.0;
        }
        let slope = slope_of(thread);
        turn(thread, 0.0);
        if thread == 0u {
            vectors[0] = 0.0;
            vectors[1] = 0.0;
            vectors[2] = slope;
            vectors[3] = dims.tolerance * slope;
            vectors[4] = select(1.0, 0.0, slope > dims.tolerance * slope && dims.products > 0u);
        }
        return;
    }
    var products = number(thread, 0u);
    var steps = number(thread, 1u);
    var slope = number(thread, 2u);
    let goal = number(thread, 3u);
    var done = number(thread, 4u);
    while done == 0.0 {
        var part = 0.0;
        for (var first = 0u; first < s; first += 256u) {
            let i = first + thread;
            var sum = 0.0;
            if dims.mode == 2u {
                sum = product_of(thread, min(i, s - 1u));
            }
            if dims.mode == 1u && i < s {
                sum = product[i];
            }
            if i < s {
                if dims.plain == 0u {
                    sum += dims.lambda * vectors[d(i)] * direction[i];
                }
                vectors[h(i)] = sum;
                part += direction[i] * sum;
            }
        }
        products += 1.0;
        let curvature = sum_of(thread, part);
        let length = slope / curvature;
        // What is not a number compares as false; so does a length out of range.
        if !(curvature > 0.0) || !(abs(length) < 3.0e38) {
            done = 1.0;
            break;
        }
        for (var i = thread; i < s; i += 256u) {
            vectors[delta(i)] += length * direction[i];
            vectors[g(i)] -= length * vectors[h(i)];
        }
        steps += 1.0;
        let next = slope_of(thread);
        let beta = next / slope;
        slope = next;
        turn(thread, beta);
        done = select(1.0, 0.0, slope > goal && products < f32(dims.products));
        if dims.mode == 1u {
            break;
        }
    }
    if thread == 0u {
        vectors[0] = products;
        vectors[1] = steps;
        vectors[2] = slope;
        vectors[4] = done;
    }
}
