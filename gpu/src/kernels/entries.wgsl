// Neurons' weights, for the kernels that go through them: `sum_e values[e] x[inputs[e]]` on four rows.
//
// blocks        (neuron, first entry, entries, kind)
// inputs, values  of the entries
@group(0) @binding(2) var<storage, read> blocks: array<vec4<u32>>;
@group(0) @binding(3) var<storage, read> inputs: array<u32>;
@group(0) @binding(4) var<storage, read> values: array<f32>;

// In the order of the entries, with four reads at a time, so that these do not wait for each other.
fn weighted(block: vec4<u32>, quad: u32) -> vec4<f32> {
    var sum = vec4<f32>();
    let end = block.y + block.z;
    var e = block.y;
    for (; e + 3u < end; e += 4u) {
        let a = rows_of(inputs[e], quad);
        let b = rows_of(inputs[e + 1u], quad);
        let c = rows_of(inputs[e + 2u], quad);
        let d = rows_of(inputs[e + 3u], quad);
        sum += values[e] * a;
        sum += values[e + 1u] * b;
        sum += values[e + 2u] * c;
        sum += values[e + 3u] * d;
    }
    for (; e < end; e++) {
        sum += values[e] * rows_of(inputs[e], quad);
    }
    return sum;
}
