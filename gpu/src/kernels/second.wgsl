// Rows of a table whose outputs are the neurons of a second layer, summed up where they are open: output 0
// always, and those that are positive.
//
// grid          (rows / 64)
// dims.rows     n, rows of the window
// dims.width    c
// dims.words    words of bits of a row
// dims.kind     sum of the outputs of the table 0, of those that are open 1; residuals x in the places of the open
//               outputs 2; an output of numbers x is added 3, and x times the weights to open outputs 4; square of the
//               sum of the weights to open outputs where x > 0 5
// dims.output   which output is added
// dims.weights  entries of `weights`
// weights       (output, value)
// x             residuals, an output, or activations: one number a row
// table         n × c, which is read by 0 and 1, and written by 2
// bits          n × words, which are written by 0, and set by 3
// out           one number a row, not of 2
struct Dims {
    rows: u32, width: u32, words: u32, kind: u32, output: u32, weights: u32, pad0: u32, pad1: u32,
}
@group(0) @binding(0) var<uniform> dims: Dims;
@group(0) @binding(1) var<storage, read> weights: array<vec2<u32>>;
@group(0) @binding(2) var<storage, read> x: array<f32>;
@group(0) @binding(3) var<storage, read_write> table: array<f32>;
@group(0) @binding(4) var<storage, read_write> bits: array<u32>;
@group(0) @binding(5) var<storage, read_write> out: array<f32>;

fn is_open(row: u32, k: u32) -> bool {
    return ((bits[row * dims.words + k / 32u] >> (k % 32u)) & 1u) == 1u;
}

// The sum of the weights to open outputs.
fn open_weights(row: u32) -> f32 {
    var sum = 0.0;
    for (var e = 0u; e < dims.weights; e++) {
        if is_open(row, weights[e].x) {
            sum += bitcast<f32>(weights[e].y);
        }
    }
    return sum;
}

// The sum of the outputs, and which they are.
fn sum(row: u32) -> f32 {
    var sum = 0.0;
    for (var word = 0u; word < dims.words; word++) {
        var mask = 0u;
        for (var k = word * 32u; k < min(word * 32u + 32u, dims.width); k++) {
            let z = table[row * dims.width + k];
            let open = k == 0u || z > 0.0;
            mask |= select(0u, 1u << (k % 32u), open);
            sum += select(0.0, z, open);
        }
        bits[row * dims.words + word] = mask;
    }
    return sum;
}

fn sum_open(row: u32) -> f32 {
    var sum = 0.0;
    for (var k = 0u; k < dims.width; k++) {
        sum += select(0.0, table[row * dims.width + k], is_open(row, k));
    }
    return sum;
}

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
    let row = id.y * groups.x * 64u + id.x;
    if row >= dims.rows {
        return;
    }
    switch dims.kind {
        case 0u: { out[row] = sum(row); }
        case 1u: { out[row] = sum_open(row); }
        case 2u: {
            for (var k = 0u; k < dims.width; k++) {
                table[row * dims.width + k] = select(0.0, x[row], is_open(row, k));
            }
        }
        case 3u: {
            let k = dims.output;
            if k == 0u || x[row] > 0.0 {
                bits[row * dims.words + k / 32u] |= 1u << (k % 32u);
                out[row] += x[row];
            }
        }
        case 4u: { out[row] += x[row] * open_weights(row); }
        default: {
            let sum = open_weights(row);
            out[row] = select(0.0, sum * sum, x[row] > 0.0);
        }
    }
}
