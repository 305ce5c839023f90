// A neuron's activation on four rows, for the kernels that go through weights neuron by neuron.
//
// dims.words    rows of the chunk / 32
// blocks        kind: gate as bits 0, open 1, its own, positive 2 or negative 3
// bits          neurons × words
@group(0) @binding(5) var<storage, read> bits: array<u32>;

fn gate_bits(neuron: u32, quad: u32) -> vec4<bool> {
    let four = bits[neuron * dims.words + quad / 8u] >> (quad % 8u * 4u);
    return (vec4<u32>(four) & vec4<u32>(1u, 2u, 4u, 8u)) != vec4<u32>();
}

// What a neuron gives for its sum on four rows.
fn gated(block: vec4<u32>, sum: vec4<f32>, quad: u32) -> vec4<f32> {
    switch block.w {
        case 0u: { return select(vec4<f32>(), sum, gate_bits(block.x, quad)); }
        case 2u: { return select(vec4<f32>(), sum, sum > vec4<f32>()); }
        case 3u: { return select(vec4<f32>(), sum, sum < vec4<f32>()); }
        default: { return sum; }
    }
}

fn activation(block: vec4<u32>, quad: u32) -> vec4<f32> {
    return gated(block, weighted(block, quad), quad);
}

// The quad of a thread; one beyond the chunk is its last.
fn own_quad(at: u32) -> u32 {
    return min(dims.row / 4u + at, dims.quads - 1u);
}

// Whether row t of the thread's quad is of the batch.
fn is_own(at: u32, t: u32) -> bool {
    let row = (dims.row / 4u + at) * 4u + t;
    return row >= dims.row && row < dims.row + dims.rows;
}
