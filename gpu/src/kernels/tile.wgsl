// A matrix product in tiles of 64 × 64, over 32 rows of the data at a time: 64 threads, 8 × 8 sums each.
var<workgroup> left: array<vec4<f32>, 512>;
var<workgroup> right: array<vec4<f32>, 512>;

// The gate bits of four rows that are among `low..high`.
fn open_rows(word: u32, quad: u32, low: u32, high: u32) -> vec4<bool> {
    let row = quad * 4u + vec4<u32>(0u, 1u, 2u, 3u);
    let open = (vec4<u32>(word >> (quad % 8u * 4u)) & vec4<u32>(1u, 2u, 4u, 8u)) != vec4<u32>();
    return open & (row >= vec4<u32>(low)) & (row < vec4<u32>(high));
}

// Where four columns, the number `place` of 16, lie of a row of `left` or `right`: so that neither threads of eight
// quads that write nor threads of eight columns that read wait for one bank of memory.
fn place_of(quad: u32, k: u32, place: u32) -> u32 {
    return (quad * 4u + k) * 16u + (place ^ quad);
}

// Adds the products of one row of what lies in `left` and `right`: eight times eight, in fours that are 32 apart.
fn add_row(quad: u32, k: u32, thread: u32, acc: ptr<function, array<vec4<f32>, 16>>) {
    let a = left[place_of(quad, k, thread / 8u)];
    let b = left[place_of(quad, k, thread / 8u + 8u)];
    let c = right[place_of(quad, k, thread % 8u)];
    let d = right[place_of(quad, k, thread % 8u + 8u)];
    (*acc)[0] += a.x * c;
    (*acc)[1] += a.x * d;
    (*acc)[2] += a.y * c;
    (*acc)[3] += a.y * d;
    (*acc)[4] += a.z * c;
    (*acc)[5] += a.z * d;
    (*acc)[6] += a.w * c;
    (*acc)[7] += a.w * d;
    (*acc)[8] += b.x * c;
    (*acc)[9] += b.x * d;
    (*acc)[10] += b.y * c;
    (*acc)[11] += b.y * d;
    (*acc)[12] += b.z * c;
    (*acc)[13] += b.z * d;
    (*acc)[14] += b.w * c;
    (*acc)[15] += b.w * d;
}

// Four rows of four columns as four columns of row k.
fn turned(four: array<vec4<f32>, 4>, k: u32) -> vec4<f32> {
    return vec4<f32>(four[0][k], four[1][k], four[2][k], four[3][k]);
}

// The sums of a tile over rows of the chunk: of `first_side` times `second_side`, which `put` adds to what the kernel
// gives.
fn add_part(group: vec3<u32>, thread: u32, begin: u32, end: u32) {
    var acc: array<vec4<f32>, 16>;
    let step = thread % 8u;
    for (var word = begin / 32u; word * 32u < end; word++) {
        workgroupBarrier();
        // 4 × 4 numbers of either side, twice.
        let quad = word * 8u + step;
        for (var turn = 0u; turn < 2u; turn++) {
            let place = thread / 8u + turn * 8u;
            let a = first_side(group.x * 64u + place * 4u, quad, begin, end);
            let b = second_side(group.y * 64u + place * 4u, quad, begin, end);
            for (var k = 0u; k < 4u; k++) {
                left[place_of(step, k, place)] = turned(a, k);
                right[place_of(step, k, place)] = turned(b, k);
            }
        }
        workgroupBarrier();
        for (var four = 0u; four < 8u; four++) {
            add_row(four, 0u, thread, &acc);
            add_row(four, 1u, thread, &acc);
            add_row(four, 2u, thread, &acc);
            add_row(four, 3u, thread, &acc);
        }
    }
    let i = group.x * 64u + thread / 8u * 4u;
    let j = group.y * 64u + thread % 8u * 4u;
    put(group, i + 0u, j, acc[0]);
    put(group, i + 0u, j + 32u, acc[1]);
    put(group, i + 1u, j, acc[2]);
    put(group, i + 1u, j + 32u, acc[3]);
    put(group, i + 2u, j, acc[4]);
    put(group, i + 2u, j + 32u, acc[5]);
    put(group, i + 3u, j, acc[6]);
    put(group, i + 3u, j + 32u, acc[7]);
    put(group, i + 32u, j, acc[8]);
    put(group, i + 32u, j + 32u, acc[9]);
    put(group, i + 33u, j, acc[10]);
    put(group, i + 33u, j + 32u, acc[11]);
    put(group, i + 34u, j, acc[12]);
    put(group, i + 34u, j + 32u, acc[13]);
    put(group, i + 35u, j, acc[14]);
    put(group, i + 35u, j + 32u, acc[15]);
}

// The tile of a group of rows, whose parts are added one after the other: so the sums do not depend on where chunks
// end, which is between parts. Kernels of tiles have the three functions above, and rows as `dims` says.
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
