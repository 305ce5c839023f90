// Classes: outputs to residuals `onehot(label) - softmax(output)` in place, with the loss of each row; or
// whether the outputs of each row say its class.
//
// grid          (rows / 64)
// dims.rows     rows of the window
// dims.width    c; one output is the log-odds of class 1
// dims.first    where the labels begin
// dims.count    only say whether the class is right
// labels        classes
// out           rows × c
// losses        rows
struct Dims { rows: u32, width: u32, first: u32, count: u32 }
@group(0) @binding(0) var<uniform> dims: Dims;
@group(0) @binding(1) var<storage, read> labels: array<u32>;
@group(0) @binding(2) var<storage, read_write> out: array<f32>;
@group(0) @binding(3) var<storage, read_write> losses: array<f32>;

fn binary(at: u32, label: u32) -> f32 {
    // Of the class that is not the label's.
    let odds = select(out[at], -out[at], label == 1u);
    let small = exp(-abs(odds));
    let share = select(small, 1.0, odds > 0.0) / (1.0 + small);
    out[at] = select(-share, share, label == 1u);
    return max(odds, 0.0) + log(1.0 + small);
}

fn best(at: u32) -> u32 {
    var found = 0u;
    for (var k = 1u; k < dims.width; k++) {
        if out[at + k] > out[at + found] {
            found = k;
        }
    }
    return found;
}

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
    let row = id.y * groups.x * 64u + id.x;
    if row >= dims.rows {
        return;
    }
    let at = row * dims.width;
    let label = labels[dims.first + row];
    if dims.count == 1u {
        let said = select(best(at), u32(out[at] >= 0.0), dims.width == 1u);
        losses[row] = select(0.0, 1.0, said == label);
        return;
    }
    if dims.width == 1u {
        losses[row] = binary(at, label);
        return;
    }
    let top = out[at + best(at)];
    let own = out[at + label];
    var total = 0.0;
    for (var k = 0u; k < dims.width; k++) {
        let share = exp(out[at + k] - top);
        out[at + k] = share;
        total += share;
    }
    for (var k = 0u; k < dims.width; k++) {
        out[at + k] = select(0.0, 1.0, k == label) - out[at + k] / total;
    }
    losses[row] = log(total) + (top - own);
}
