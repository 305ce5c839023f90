// Products of a table with activations of neurons, `sum_k a_ik R_kj`.
//
// grid          (tasks, groups of rows); a task is up to four outputs of one neuron
// dims.rows     rows of the window
// dims.width    c
// dims.group    rows of a group
// dims.entries  sums of a group
// dims.stride   numbers of a line of `a`
// dims.first    where the first row stands in it
// dims.base     number of the first group
// tasks         (which activations, first entry, entries)
// outputs       the output of each entry
// a             neurons × n
// r             rows × c
// sums          groups × entries
struct Dims {
    rows: u32, width: u32, group: u32, entries: u32, stride: u32, first: u32, base: u32, pad: u32,
}
@group(0) @binding(0) var<uniform> dims: Dims;
@group(0) @binding(1) var<storage, read> tasks: array<vec4<u32>>;
@group(0) @binding(2) var<storage, read> outputs: array<u32>;
@group(0) @binding(3) var<storage, read> a: array<f32>;
@group(0) @binding(4) var<storage, read> r: array<f32>;
@group(0) @binding(5) var<storage, read_write> sums: array<f32>;

var<workgroup> parts: array<vec4<f32>, 64>;

@compute @workgroup_size(64)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) thread: u32) {
    let task = tasks[group.x];
    let first = group.y * dims.group;
    let end = min(first + dims.group, dims.rows);
    // Entries beyond the last are the last again, and nothing is made of them.
    let last = task.y + task.z - 1u;
    let place = min(task.y + vec4<u32>(0u, 1u, 2u, 3u), vec4<u32>(last));
    let k = vec4<u32>(outputs[place.x], outputs[place.y], outputs[place.z], outputs[place.w]);
    var acc = vec4<f32>();
    for (var row = first + thread; row < end; row += 64u) {
        let v = a[task.x * dims.stride + dims.first + row];
        if v != 0.0 {
            let at = row * dims.width + k;
            acc += v * vec4<f32>(r[at.x], r[at.y], r[at.z], r[at.w]);
        }
    }
    parts[thread] = acc;
    workgroupBarrier();
    if thread == 0u {
        var sum = vec4<f32>();
        for (var t = 0u; t < 64u; t++) {
            sum += parts[t];
        }
        for (var e = 0u; e < task.z; e++) {
            sums[(dims.base + group.y) * dims.entries + task.y + e] = sum[e];
        }
    }
}
