// The Gram matrix of a support, `G_ab = sum_k gate_a x_ka gate_b x_kb`.
//
// grid          (s / 64, s / 64, groups of rows); tiles above the diagonal are left to those below
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

// Entries: where the bits of their neurons lie, and their inputs. Lines beyond the last are the last again, and nothing
// is made of them.
struct Lines { bits: vec4<u32>, column: vec4<u32> }
alias FirstLines = Lines;
alias SecondLines = Lines;

fn lines_end() -> u32 {
    return dims.size;
}

fn first_lines(line: u32) -> Lines {
    let at = min(line + vec4<u32>(0u, 1u, 2u, 3u), vec4<u32>(dims.size - 1u));
    let a = entries[at.x];
    let b = entries[at.y];
    let c = entries[at.z];
    let d = entries[at.w];
    return Lines(vec4<u32>(a.x, b.x, c.x, d.x) * dims.words, vec4<u32>(a.y, b.y, c.y, d.y));
}

fn second_lines(line: u32) -> Lines {
    return first_lines(line);
}

// Gated columns of four entries on four rows.
fn second_side(lines: Lines, quad: u32, here: u32) -> mat4x4<f32> {
    let shift = quad % 8u * 4u;
    let word = lines.bits + quad / 8u;
    return mat4x4<f32>(
        where_set(rows_of(lines.column.x, quad), bits[word.x] >> shift & here),
        where_set(rows_of(lines.column.y, quad), bits[word.y] >> shift & here),
        where_set(rows_of(lines.column.z, quad), bits[word.z] >> shift & here),
        where_set(rows_of(lines.column.w, quad), bits[word.w] >> shift & here),
    );
}

// Rows that are not of the part are 0 on the other side.
fn first_side(lines: Lines, quad: u32) -> mat4x4<f32> {
    return second_side(lines, quad, 15u);
}

// Adds four sums of an entry, and those on the other side of the diagonal.
fn put(group: vec3<u32>, i: u32, j: u32, four: vec4<f32>) {
    let base = group.z * dims.size * dims.size;
    for (var k = 0u; k < 4u; k++) {
        if i < dims.size && j + k < dims.size {
            sums[base + i * dims.size + j + k] += four[k];
            if group.x > group.y {
                sums[base + (j + k) * dims.size + i] += four[k];
            }
        }
    }
}

@compute @workgroup_size(THREADS)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) thread: u32) {
    if group.x >= group.y {
        add_tile(group, thread);
    }
}
