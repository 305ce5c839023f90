// Sums over the rows where outputs are open: `sum_k a_k r_k`, and `sum_k a_k²`.
//
// grid          (outputs, groups of rows)
// dims.rows     n, rows of the window
// dims.width    c
// dims.words    words of bits of a row
// dims.group    rows of a group
// dims.ones     whether a and r are 1 everywhere
// dims.base     number of the first group
// a, r          n
// bits          n × words, whether each output is open
// sums          groups × c × 2
struct Dims {
    rows: u32, width: u32, words: u32, group: u32, ones: u32, base: u32, pad0: u32, pad1: u32,
}
@group(0) @binding(0) var<uniform> dims: Dims;
@group(0) @binding(1) var<storage, read> a: array<f32>;
@group(0) @binding(2) var<storage, read> r: array<f32>;
@group(0) @binding(3) var<storage, read> bits: array<u32>;
@group(0) @binding(4) var<storage, read_write> sums: array<vec2<f32>>;

var<workgroup> parts: array<vec2<f32>, 64>;

@compute @workgroup_size(64)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) thread: u32) {
    let k = group.x;
    let first = group.y * dims.group;
    let end = min(first + dims.group, dims.rows);
    var sum = vec2<f32>();
    for (var row = first + thread; row < end; row += 64u) {
        if ((bits[row * dims.words + k / 32u] >> (k % 32u)) & 1u) == 1u {
            if dims.ones == 1u {
                sum += vec2<f32>(1.0, 1.0);
            } else {
                sum += a[row] * vec2<f32>(r[row], a[row]);
            }
        }
    }
    parts[thread] = sum;
    workgroupBarrier();
    if thread == 0u {
        var all = vec2<f32>();
        for (var t = 0u; t < 64u; t++) {
            all += parts[t];
        }
        sums[(dims.base + group.y) * dims.width + k] = all;
    }
}
