// Rows of a table whose outputs are the neurons of a second layer: output 0 is always active, another one
// where its residual is not 0.
//
// grid          (rows / 64)
// dims.rows     n, rows of the window
// dims.width    c
// dims.words    words of bits of a row
// dims.kind     residual of labels 0, bits of the active outputs 1, their sum in their places 2, square of the
//               sum of those weights that lead to active outputs where x > 0 3
// dims.first    where the labels begin
// dims.weights  entries of `weights`
// dims.scale    factor of the labels
// weights       (output, value)
// x             labels, or activations: one number a row
// table         n × c, which is written by 0 and 2
// bits          n × words, written by 1
// rows          written by 0, the squared residual, and by 3, the square where x > 0: n
struct Dims {
    rows: u32, width: u32, words: u32, kind: u32, first: u32, weights: u32, scale: f32, pad: u32,
}
@group(0) @binding(0) var<uniform> dims: Dims;
@group(0) @binding(1) var<storage, read> weights: array<vec2<u32>>;
@group(0) @binding(2) var<storage, read> x: array<f32>;
@group(0) @binding(3) var<storage, read_write> table: array<f32>;
@group(0) @binding(4) var<storage, read_write> bits: array<u32>;
@group(0) @binding(5) var<storage, read_write> rows: array<f32>;

fn is_active(at: u32, k: u32) -> bool {
    return k == 0u || table[at + k] != 0.0;
}

// r = y - z_0 - sum_k relu(z_k), in the places of the active outputs.
fn residual(row: u32, at: u32) {
    var r = dims.scale * x[dims.first + row] - table[at];
    for (var k = 1u; k < dims.width; k++) {
        r -= max(table[at + k], 0.0);
    }
    table[at] = r;
    rows[row] = r * r;
    // An active output is told by a residual that is not 0, so one of 0 becomes the least there is.
    let told = select(r, 1.17549435e-38, r == 0.0);
    for (var k = 1u; k < dims.width; k++) {
        table[at + k] = select(0.0, told, table[at + k] > 0.0);
    }
}

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
    let row = id.y * groups.x * 64u + id.x;
    if row >= dims.rows {
        return;
    }
    let at = row * dims.width;
    switch dims.kind {
        case 0u: { residual(row, at); }
        case 1u: {
            for (var word = 0u; word < dims.words; word++) {
                var mask = 0u;
                for (var k = word * 32u; k < min(word * 32u + 32u, dims.width); k++) {
                    mask |= select(0u, 1u << (k % 32u), is_active(at, k));
                }
                bits[row * dims.words + word] = mask;
            }
        }
        case 2u: {
            var sum = 0.0;
            for (var k = 0u; k < dims.width; k++) {
                if ((bits[row * dims.words + k / 32u] >> (k % 32u)) & 1u) == 1u {
                    sum += table[at + k];
                }
            }
            for (var k = 0u; k < dims.width; k++) {
                let open = ((bits[row * dims.words + k / 32u] >> (k % 32u)) & 1u) == 1u;
                table[at + k] = select(0.0, sum, open);
            }
        }
        default: {
            var sum = 0.0;
            for (var e = 0u; e < dims.weights; e++) {
                if is_active(at, weights[e].x) {
                    sum += bitcast<f32>(weights[e].y);
                }
            }
            rows[row] = select(0.0, sum * sum, x[row] > 0.0);
        }
    }
}
