// Sums over rows for entries of a support: `sum_k gate_i(x_k) r_k x_kj`, or squares of columns.
//
// LANES         threads that read rows side by side; divides 64
//
// grid          (tasks, groups of rows); a task is up to four entries of one neuron
// dims.quads    rows of the chunk / 4
// dims.words    rows of the chunk / 32
// dims.row      first row of the chunk
// dims.rows     rows
// dims.at       where its residual stands
// dims.batch    n, rows of the batch
// dims.group    quads of a group, a multiple of 64; groups begin at multiples of it
// dims.sum      where the sums of the first group stand
// dims.entries  sums of a group
// dims.mode     one residual 0, one for each neuron 1, squares 2
// tasks         (neuron, first entry, entries, which residual)
// inputs        the input of each entry
// r             n, or residuals × n
// sums          groups × entries
struct Dims {
    quads: u32, words: u32, row: u32, rows: u32, at: u32, batch: u32, group: u32, sum: u32, entries: u32,
    mode: u32, pad0: u32, pad1: u32,
}
@group(0) @binding(0) var<uniform> dims: Dims;
@group(0) @binding(2) var<storage, read> tasks: array<vec4<u32>>;
@group(0) @binding(3) var<storage, read> inputs: array<u32>;
@group(0) @binding(4) var<storage, read> bits: array<u32>;
@group(0) @binding(5) var<storage, read> r: array<f32>;
@group(0) @binding(6) var<storage, read> r_quads: array<vec4<f32>>;
@group(0) @binding(7) var<storage, read_write> sums: array<f32>;

var<workgroup> parts: array<vec4<f32>, 64>;

@compute @workgroup_size(64)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) thread: u32) {
    let task = tasks[group.x];
    let begin = (dims.row / 4u / dims.group + group.y) * dims.group;
    let low = max(begin, dims.row / 4u);
    let high = min(begin + dims.group, (dims.row + dims.rows + 3u) / 4u);
    let base = dims.at + task.w * dims.batch;
    // Entries beyond the last are the last again, and nothing is made of them.
    let last = task.y + task.z - 1u;
    let place = min(task.y + vec4<u32>(0u, 1u, 2u, 3u), vec4<u32>(last));
    let column = vec4<u32>(inputs[place.x], inputs[place.y], inputs[place.z], inputs[place.w]);
    // Quads of residuals lie as those of rows where the batch begins with one.
    let is_aligned = (base + 4u - dims.row % 4u) % 4u == 0u;
    var acc = vec4<f32>();
    // Threads stand on the same rows whatever the batch begins with, LANES of them side by side.
    let share = begin + thread / LANES * (dims.group / (64u / LANES)) + thread % LANES;
    for (var step = 0u; step < dims.group / 64u; step++) {
        let quad = share + step * LANES;
        if quad < low || quad >= high {
            continue;
        }
        let four = bits[task.x * dims.words + quad / 8u] >> (quad % 8u * 4u);
        let row = quad * 4u + vec4<u32>(0u, 1u, 2u, 3u);
        let here = (row >= vec4<u32>(dims.row)) & (row < vec4<u32>(dims.row + dims.rows));
        let open = here & ((vec4<u32>(four) & vec4<u32>(1u, 2u, 4u, 8u)) != vec4<u32>());
        var v = vec4<f32>(1.0);
        if dims.mode < 2u {
            if is_aligned {
                v = r_quads[(base + row.x - dims.row) / 4u];
            } else {
                let at = select(vec4<u32>(), base + row - dims.row, open);
                v = vec4<f32>(r[at.x], r[at.y], r[at.z], r[at.w]);
            }
        }
        v = select(vec4<f32>(), v, open);
        var x = array<vec4<f32>, 4>(
            rows_of(column.x, quad), rows_of(column.y, quad), rows_of(column.z, quad), rows_of(column.w, quad),
        );
        for (var e = 0u; e < 4u; e++) {
            let other = select(v, v * x[e], dims.mode == 2u);
            acc[e] += dot(other, select(vec4<f32>(), x[e], open));
        }
    }
    parts[thread] = acc;
    workgroupBarrier();
    // One thread adds them in order of the threads.
    if thread == 0u {
        var sum = vec4<f32>();
        for (var t = 0u; t < 64u; t++) {
            sum += parts[t];
        }
        for (var e = 0u; e < task.z; e++) {
            sums[dims.sum + group.y * dims.entries + task.y + e] = sum[e];
        }
    }
}
