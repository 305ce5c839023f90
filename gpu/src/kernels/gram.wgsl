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

@compute @workgroup_size(256)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) thread: u32) {
    let first = dims.origin + group.z * dims.group;
    let low = max(first, dims.base + dims.row);
    let high = min(first + dims.group, dims.base + dims.row + dims.rows);
    if low >= high || group.x > group.y {
        return;
    }
    let begin = low - dims.base;
    let end = high - dims.base;
    var acc: array<vec4<f32>, 4>;
    let is_left = thread < 128u;
    let place = thread % 128u / 8u;
    let step = thread % 8u;
    let entry = select(group.y, group.x, is_left) * 64u + place * 4u;
    for (var word = begin / 32u; word * 32u < end; word++) {
        let quad = word * 8u + step;
        var four: array<vec4<f32>, 4>;
        for (var t = 0u; t < 4u; t++) {
            if entry + t < dims.size {
                let e = entries[entry + t];
                let open = open_rows(bits[e.x * dims.words + word], quad, begin, end);
                four[t] = select(vec4<f32>(), rows_of(e.y, quad), open);
            }
        }
        workgroupBarrier();
        for (var k = 0u; k < 4u; k++) {
            let at = (step * 4u + k) * 16u + place;
            let values = vec4<f32>(four[0][k], four[1][k], four[2][k], four[3][k]);
            if is_left {
                left[at] = values;
            } else {
                right[at] = values;
            }
        }
        workgroupBarrier();
        add_products(thread, &acc);
    }
    let base = group.z * dims.size * dims.size;
    for (var t = 0u; t < 4u; t++) {
        let a = group.x * 64u + thread / 16u * 4u + t;
        for (var k = 0u; k < 4u; k++) {
            let b = group.y * 64u + thread % 16u * 4u + k;
            if a < dims.size && b < dims.size {
                sums[base + a * dims.size + b] += acc[t][k];
                if group.x < group.y {
                    sums[base + b * dims.size + a] += acc[t][k];
                }
            }
        }
    }
}
