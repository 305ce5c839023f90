// A matrix product in tiles of 64 × 64. A line of a side is what is multiplied, of a neuron, an input or an entry.

// Numbers on four rows where their bits are set.
fn where_set(four: vec4<f32>, bits: u32) -> vec4<f32> {
    return select(vec4<f32>(), four, (vec4<u32>(bits) & vec4<u32>(1u, 2u, 4u, 8u)) != vec4<u32>());
}

// Bits of the rows of a quad that are among `low..high`.
fn rows_here(quad: u32, low: u32, high: u32) -> u32 {
    let row = quad * 4u + vec4<u32>(0u, 1u, 2u, 3u);
    let here = select(vec4<u32>(), vec4<u32>(1u, 2u, 4u, 8u), (row >= vec4<u32>(low)) & (row < vec4<u32>(high)));
    return here.x | here.y | here.z | here.w;
}

// The tile of a group of rows, whose parts are added one after the other: so the sums do not depend on where chunks
// end, which is between parts. A kernel of tiles has FirstLines, SecondLines and the functions that make them and read
// them, `lines_end`, the number of lines of the first side, `put`, and rows as `dims` says; `add_part` is that of threads that
// share what they read, or of threads alone.
fn add_tile(group: vec3<u32>, thread: u32) {
    let first = dims.origin + group.z * dims.group;
    for (var part = first; part < first + dims.group; part += dims.part) {
        let low = max(part, dims.base + dims.row);
        let high = min(part + dims.part, dims.base + dims.row + dims.rows);
        if low < high {
            add_part(group, thread, low - dims.base, high - dims.base);
        }
    }
}
