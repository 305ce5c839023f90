// A panel of the gradient, `out[i][j] = sum_k gate_i(x_k) r_k x_kj`, or of squared column norms.
//
// grid          (neurons / 64, inputs / 64, groups of rows)
// dims.quads    rows of the chunk / 4
// dims.words    rows of the chunk / 32
// dims.base     number of the chunk's first row
// dims.row      first row of the chunk
// dims.rows     rows
// dims.at       where its residual stands
// dims.batch    n, rows of the batch
// dims.origin   number of the first group's first row, a multiple of 32
// dims.group    rows of a group, a multiple of those of a part
// dims.part     rows that are added up as one, a multiple of 32
// dims.neurons  p
// dims.inputs   d
// dims.mode     one residual 0, one for each neuron 1, squares 2
// neurons       the neuron of each row of the panel
// r             n, or p × n
// sums          groups × p × d, to which is added
struct Dims {
    quads: u32, words: u32, base: u32, row: u32, rows: u32, at: u32, batch: u32, origin: u32, group: u32,
    part: u32, neurons: u32, inputs: u32, mode: u32, pad0: u32, pad1: u32, pad2: u32,
}
@group(0) @binding(0) var<uniform> dims: Dims;
@group(0) @binding(2) var<storage, read> neurons: array<u32>;
@group(0) @binding(3) var<storage, read> bits: array<u32>;
@group(0) @binding(4) var<storage, read> r: array<f32>;
@group(0) @binding(5) var<storage, read_write> sums: array<f32>;

// Residuals of four rows of the chunk, where they are of the part.
fn residuals(slot: u32, quad: u32, here: vec4<bool>) -> vec4<f32> {
    if dims.mode == 2u {
        return select(vec4<f32>(), vec4<f32>(1.0), here);
    }
    let first = slot * dims.batch + dims.at + quad * 4u - dims.row;
    if all(here) {
        return vec4<f32>(r[first], r[first + 1u], r[first + 2u], r[first + 3u]);
    }
    var four = vec4<f32>();
    for (var k = 0u; k < 4u; k++) {
        if here[k] {
            four[k] = r[first + k];
        }
    }
    return four;
}

// Gated residuals of four neurons on four rows.
fn first_side(slot: u32, quad: u32, begin: u32, end: u32) -> array<vec4<f32>, 4> {
    let here = open_rows(0xffffffffu, quad, begin, end);
    let is_one = dims.mode != 1u;
    var own = vec4<f32>();
    if is_one {
        own = residuals(0u, quad, here);
    }
    var four: array<vec4<f32>, 4>;
    for (var t = 0u; t < 4u; t++) {
        if slot + t < dims.neurons {
            let word = bits[neurons[slot + t] * dims.words + quad / 8u];
            if !is_one {
                own = residuals(slot + t, quad, here);
            }
            four[t] = select(vec4<f32>(), own, open_rows(word, quad, begin, end));
        }
    }
    return four;
}

// Four inputs, or their squares, on four rows.
fn second_side(column: u32, quad: u32, begin: u32, end: u32) -> array<vec4<f32>, 4> {
    let here = open_rows(0xffffffffu, quad, begin, end);
    var four: array<vec4<f32>, 4>;
    for (var t = 0u; t < 4u; t++) {
        if column + t < dims.inputs {
            let values = select(vec4<f32>(), rows_of(column + t, quad), here);
            four[t] = select(values, values * values, dims.mode == 2u);
        }
    }
    return four;
}

// Adds four sums of a neuron.
fn put(group: vec3<u32>, i: u32, j: u32, four: vec4<f32>) {
    for (var k = 0u; k < 4u; k++) {
        if i < dims.neurons && j + k < dims.inputs {
            sums[(group.z * dims.neurons + i) * dims.inputs + j + k] += four[k];
        }
    }
}

@compute @workgroup_size(64)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) thread: u32) {
    add_tile(group, thread);
}
