// A matrix product in tiles of 64 × 64, over 32 rows of the data at a time: 64 threads, 8 × 8 sums each.
var<workgroup> left: array<vec4<f32>, 512>;
var<workgroup> right: array<vec4<f32>, 512>;

// The gate bits of four rows that are among `low..high`.
fn open_rows(word: u32, quad: u32, low: u32, high: u32) -> vec4<bool> {
    let row = quad * 4u + vec4<u32>(0u, 1u, 2u, 3u);
    let open = (vec4<u32>(word >> (quad % 8u * 4u)) & vec4<u32>(1u, 2u, 4u, 8u)) != vec4<u32>();
    return open & (row >= vec4<u32>(low)) & (row < vec4<u32>(high));
}

// Adds the products of what lies in `left` and `right`.
fn add_products(thread: u32, acc: ptr<function, array<vec4<f32>, 16>>) {
    for (var k = 0u; k < 32u; k++) {
        let at = k * 16u + thread / 8u * 2u;
        let a = left[at];
        let b = left[at + 1u];
        let to = k * 16u + thread % 8u * 2u;
        let c = right[to];
        let d = right[to + 1u];
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
}

// Four rows of four columns as four columns of four rows, at their place in `left` or `right`.
fn turned(four: array<vec4<f32>, 4>, k: u32) -> vec4<f32> {
    return vec4<f32>(four[0][k], four[1][k], four[2][k], four[3][k]);
}

// The sums of a tile over the rows of a group: of `first_side` times `second_side`, which `put` adds to what the
// kernel gives. Kernels of tiles have these three, and rows as `dims` says.
fn add_tile(group: vec3<u32>, thread: u32) {
    let first = dims.origin + group.z * dims.group;
    let low = max(first, dims.base + dims.row);
    let high = min(first + dims.group, dims.base + dims.row + dims.rows);
    if low >= high {
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
            let a = first_side(group.x * 64u + place * 4u, quad, begin, end);
            let b = second_side(group.y * 64u + place * 4u, quad, begin, end);
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
