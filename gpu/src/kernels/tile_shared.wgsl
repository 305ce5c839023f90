// Tiles of 64 threads that share what they read, over 32 rows of the data at a time: 8 × 8 sums each.
const THREADS = 64u;

var<workgroup> left: array<vec4<f32>, 512>;
var<workgroup> right: array<vec4<f32>, 512>;

// Adds the products of one row of what lies in `left` and `right`: eight times eight, in fours that are 32 apart.
fn add_row(i: u32, j: u32, acc: ptr<function, array<vec4<f32>, 16>>) {
    let a = left[i];
    let b = left[i + 8u];
    let c = right[j];
    let d = right[j + 8u];
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

// The sums of a tile over rows of the chunk, which `put` adds to what the kernel gives.
fn add_part(group: vec3<u32>, thread: u32, begin: u32, end: u32) {
    var acc: array<vec4<f32>, 16>;
    let step = thread % 8u;
    let place = thread / 8u;
    // The lines of four columns, and of those 32 further on.
    let i = group.x * 64u + place * 4u;
    let j = group.y * 64u + place * 4u;
    let first = array<FirstLines, 2>(first_lines(i), first_lines(i + 32u));
    let second = array<SecondLines, 2>(second_lines(j), second_lines(j + 32u));
    // Four columns, the number p of 16, of row k of a quad q lie at 64 q + 16 k + (p ^ q): so that neither threads
    // of eight quads that write nor threads of eight columns that read wait for one bank of memory.
    let to = step * 64u + (place ^ step);
    for (var word = begin / 32u; word * 32u < end; word++) {
        let quad = word * 8u + step;
        let here = rows_here(quad, begin, end);
        let a = transpose(first_side(first[0], quad));
        let b = transpose(first_side(first[1], quad));
        let c = transpose(second_side(second[0], quad, here));
        let d = transpose(second_side(second[1], quad, here));
        workgroupBarrier();
        left[to + 0u] = a[0];
        left[to + 8u] = b[0];
        right[to + 0u] = c[0];
        right[to + 8u] = d[0];
        left[to + 16u] = a[1];
        left[to + 24u] = b[1];
        right[to + 16u] = c[1];
        right[to + 24u] = d[1];
        left[to + 32u] = a[2];
        left[to + 40u] = b[2];
        right[to + 32u] = c[2];
        right[to + 40u] = d[2];
        left[to + 48u] = a[3];
        left[to + 56u] = b[3];
        right[to + 48u] = c[3];
        right[to + 56u] = d[3];
        workgroupBarrier();
        for (var four = 0u; four < 8u; four++) {
            let own = four * 64u + (place ^ four);
            let other = four * 64u + (step ^ four);
            add_row(own, other, &acc);
            add_row(own + 16u, other + 16u, &acc);
            add_row(own + 32u, other + 32u, &acc);
            add_row(own + 48u, other + 48u, &acc);
        }
    }
    let to_j = group.y * 64u + step * 4u;
    put(group, i + 0u, to_j, acc[0]);
    put(group, i + 0u, to_j + 32u, acc[1]);
    put(group, i + 1u, to_j, acc[2]);
    put(group, i + 1u, to_j + 32u, acc[3]);
    put(group, i + 2u, to_j, acc[4]);
    put(group, i + 2u, to_j + 32u, acc[5]);
    put(group, i + 3u, to_j, acc[6]);
    put(group, i + 3u, to_j + 32u, acc[7]);
    put(group, i + 32u, to_j, acc[8]);
    put(group, i + 32u, to_j + 32u, acc[9]);
    put(group, i + 33u, to_j, acc[10]);
    put(group, i + 33u, to_j + 32u, acc[11]);
    put(group, i + 34u, to_j, acc[12]);
    put(group, i + 34u, to_j + 32u, acc[13]);
    put(group, i + 35u, to_j, acc[14]);
    put(group, i + 35u, to_j + 32u, acc[15]);
}
