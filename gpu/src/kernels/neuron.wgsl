// A neuron's activation on four rows, for the kernels that go through weights neuron by neuron.
//
// dims.words    rows of the chunk / 32
// blocks        (neuron, first entry, entries, kind): gate as bits 0, open 1, its own, positive 2 or negative 3
// inputs, values  of the entries
// bits          neurons × words
@group(0) @binding(2) var<storage, read> blocks: array<vec4<u32>>;
@group(0) @binding(3) var<storage, read> inputs: array<u32>;
@group(0) @binding(4) var<storage, read> values: array<f32>;
@group(0) @binding(5) var<storage, read> bits: array<u32>;

fn gate_bits(neuron: u32, quad: u32) -> vec4<bool> {
    let four = bits[neuron * dims.words + quad / 8u] >> (quad % 8u * 4u);
    return (vec4<u32>(four) & vec4<u32>(1u, 2u, 4u, 8u)) != vec4<u32>();
}

fn activation(block: vec4<u32>, quad: u32) -> vec4<f32> {
    var sum = vec4<f32>();
    for (var e = block.y; e < block.y + block.z; e++) {
        sum += values[e] * rows_of(inputs[e], quad);
    }
    var open = vec4<bool>(true);
    switch block.w {
        case 0u: { open = gate_bits(block.x, quad); }
        case 2u: { open = sum > vec4<f32>(); }
        case 3u: { open = sum < vec4<f32>(); }
        default: {}
    }
    return select(vec4<f32>(), sum, open);
}
