// The Gram matrix of a support, `G_ab = sum_k gate_a x_ka gate_b x_kb`.
//
// grid          (s / 64, s / 64, groups of rows); tiles below the diagonal are left to those above
// dims.quads    rows of the chunk / 4
// dims.words    rows of the chunk / 32
// dims.base     number of the chunk's first row
// dims.row      first row of the chunk
// dims.rows     rows
// dims.origin   number of the first group's first row, a multiple of 32
// dims.group    rows of a group, a multiple of 32
// dims.size     s
// entries       (neuron, input)
// sums          groups × s × s, to which is added
struct Dims { quads: u32, words: u32, base: u32, row: u32, rows: u32, origin: u32, group: u32, size: u32 }
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
    let first = dims.origin + group.z * dims.group;
    let low = max(first, dims.base + dims.row);
    let high = min(first + dims.group, dims.base + dims.row + dims.rows);
    if low >= high || group.x > group.y {
        return;
    }
    let begin = low - dims.base;
    let end = high - dims.base;
    var acc: array<vec4<f32>, 16>;
    for (var word = begin / 32u; word * 32u < end; word++) {
        workgroupBarrier();
        // 4 × 4 numbers of either side, twice.
        for (var turn = 0u; turn < 2u; turn++) {
            let place = (thread + turn * 64u) / 8u;
            let step = thread % 8u;
            let quad = word * 8u + step;
            let a = columns(group.x * 64u + place * 4u, quad, begin, end);
            let b = columns(group.y * 64u + place * 4u, quad, begin, end);
            for (var k = 0u; k < 4u; k++) {
                left[(step * 4u + k) * 16u + place] = turned(a, k);
                right[(step * 4u + k) * 16u + place] = turned(b, k);
            }
        }
        workgroupBarrier();
        add_products(thread, &acc);
    }
    let i = group.x * 64u + thread / 8u * 8u;
    let j = group.y * 64u + thread % 8u * 8u;
    put(group, i + 0u, j, acc[0]);
    put(group, i + 0u, j + 4u, acc[1]);
    put(group, i + 1u, j, acc[2]);
    put(group, i + 1u, j + 4u, acc[3]);
    put(group, i + 2u, j, acc[4]);
    put(group, i + 2u, j + 4u, acc[5]);
    put(group, i + 3u, j, acc[6]);
    put(group, i + 3u, j + 4u, acc[7]);
    put(group, i + 4u, j, acc[8]);
    put(group, i + 4u, j + 4u, acc[9]);
    put(group, i + 5u, j, acc[10]);
    put(group, i + 5u, j + 4u, acc[11]);
    put(group, i + 6u, j, acc[12]);
    put(group, i + 6u, j + 4u, acc[13]);
    put(group, i + 7u, j, acc[14]);
    put(group, i + 7u, j + 4u, acc[15]);
}
