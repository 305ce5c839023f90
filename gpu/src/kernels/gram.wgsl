// The Gram matrix of a support, `G_ab = sum_k gate_a x_ka gate_b x_kb`.
//
// grid          (s / 64, s / 64, groups of rows); tiles below the diagonal are left to those above
// dims.quads    rows of the chunk / 4
// dims.words    rows of the chunk / 32
// dims.base     number of the chunk's first row
// dims.row      first row of the chunk
// dims.rows     rows
// dims.origin   number of the first group's first row, a multiple of 32
// dims.group    rows of a group, a multiple of those of a part
// dims.part     rows that are added up as one, a multiple of 32
// dims.size     s
// entries       (neuron, input)
// sums          groups × s × s, to which is added
struct Dims {
    quads: u32, words: u32, base: u32, row: u32, rows: u32, origin: u32, group: u32, part: u32, size: u32,
    pad0: u32, pad1: u32, pad2: u32,
}
@group(0) @binding(0) var<uniform> dims: Dims;
@group(0) @binding(2) var<storage, read> entries: array<vec2<u32>>;
@group(0) @binding(3) var<storage, read> bits: array<u32>;
@group(0) @binding(4) var<storage, read_write> sums: array<f32>;

// Gated columns of four entries on four rows.
fn columns(entry: u32, quad: u32, begin: u32, end: u32) -> array<vec4<f32>, 4> {
    var four: array<vec4<f32>, 4>;
    for (var t = 0u; t < 4u; t++) {
        if entry + t < dims.size {
            let e = entries[entry + t];
            let open = open_rows(bits[e.x * dims.words + quad / 8u], quad, begin, end);
            four[t] = select(vec4<f32>(), rows_of(e.y, quad), open);
        }
    }
    return four;
}

fn first_side(entry: u32, quad: u32, begin: u32, end: u32) -> array<vec4<f32>, 4> {
    return columns(entry, quad, begin, end);
}

fn second_side(entry: u32, quad: u32, begin: u32, end: u32) -> array<vec4<f32>, 4> {
    return columns(entry, quad, begin, end);
}

// Adds four sums of an entry, and those on the other side of the diagonal.
fn put(group: vec3<u32>, i: u32, j: u32, four: vec4<f32>) {
    let base = group.z * dims.size * dims.size;
    for (var k = 0u; k < 4u; k++) {
        if i < dims.size && j + k < dims.size {
            sums[base + i * dims.size + j + k] += four[k];
            if group.x < group.y {
                sums[base + (j + k) * dims.size + i] += four[k];
            }
        }
    }
}

@compute @workgroup_size(64)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) thread: u32) {
    if group.x <= group.y {
        add_tile(group, thread);
    }
}
