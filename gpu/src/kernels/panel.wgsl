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

// Inputs, the side that threads alone read at one address. Lines beyond the last are the last again, and nothing is made
// of them.
struct FirstLines { column: vec4<u32> }
// Neurons: where their bits and residuals lie.
struct SecondLines { bits: vec4<u32>, r: vec4<u32> }

fn lines_end() -> u32 {
    return dims.inputs;
}

fn first_lines(line: u32) -> FirstLines {
    return FirstLines(min(line + vec4<u32>(0u, 1u, 2u, 3u), vec4<u32>(dims.inputs - 1u)));
}

fn second_lines(line: u32) -> SecondLines {
    let slot = min(line + vec4<u32>(0u, 1u, 2u, 3u), vec4<u32>(dims.neurons - 1u));
    let own = vec4<u32>(neurons[slot.x], neurons[slot.y], neurons[slot.z], neurons[slot.w]);
    let r = select(vec4<u32>(), slot * dims.batch, dims.mode == 1u);
    return SecondLines(own * dims.words, r + dims.at - dims.row);
}

// Four inputs, or their squares, on four rows.
fn first_side(lines: FirstLines, quad: u32) -> mat4x4<f32> {
    let a = rows_of(lines.column.x, quad);
    let b = rows_of(lines.column.y, quad);
    let c = rows_of(lines.column.z, quad);
    let d = rows_of(lines.column.w, quad);
    if dims.mode == 2u {
        return mat4x4<f32>(a * a, b * b, c * c, d * d);
    }
    return mat4x4<f32>(a, b, c, d);
}

// Residuals of four rows, whatever they are where rows are not of the batch.
fn residuals(line: u32, quad: u32) -> vec4<f32> {
    let at = line + quad * 4u;
    return vec4<f32>(r[at], r[at + 1u], r[at + 2u], r[at + 3u]);
}

// Gated residuals of four neurons on four rows.
fn second_side(lines: SecondLines, quad: u32, here: u32) -> mat4x4<f32> {
    let shift = quad % 8u * 4u;
    let word = lines.bits + quad / 8u;
    let a = bits[word.x] >> shift & here;
    let b = bits[word.y] >> shift & here;
    let c = bits[word.z] >> shift & here;
    let d = bits[word.w] >> shift & here;
    if dims.mode == 1u {
        return mat4x4<f32>(
            where_set(residuals(lines.r.x, quad), a), where_set(residuals(lines.r.y, quad), b),
            where_set(residuals(lines.r.z, quad), c), where_set(residuals(lines.r.w, quad), d),
        );
    }
    var one = vec4<f32>(1.0);
    if dims.mode == 0u {
        one = residuals(dims.at - dims.row, quad);
    }
    return mat4x4<f32>(where_set(one, a), where_set(one, b), where_set(one, c), where_set(one, d));
}

// Adds the sums of an input for four neurons from i on.
fn put(group: vec3<u32>, j: u32, i: u32, four: vec4<f32>) {
    for (var k = 0u; k < 4u; k++) {
        if i + k < dims.neurons && j < dims.inputs {
            sums[(group.z * dims.neurons + i + k) * dims.inputs + j] += four[k];
        }
    }
}

@compute @workgroup_size(THREADS)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) thread: u32) {
    // The first side of a tile are inputs.
    add_tile(group.yxz, thread);
}
