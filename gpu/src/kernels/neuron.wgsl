// A neuron's activation on four times four rows, for the kernels that go through weights neuron by neuron. The
// quads of a thread are 64 apart, those of a group are 256 in a row.
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

fn gated(sum: vec4<f32>, block: vec4<u32>, quad: u32) -> vec4<f32> {
    switch block.w {
        case 0u: { return select(vec4<f32>(), sum, gate_bits(block.x, quad)); }
        case 2u: { return select(vec4<f32>(), sum, sum > vec4<f32>()); }
        case 3u: { return select(vec4<f32>(), sum, sum < vec4<f32>()); }
        default: { return sum; }
    }
}

fn activation(block: vec4<u32>, quad: vec4<u32>) -> array<vec4<f32>, 4> {
    var a = vec4<f32>();
    var b = vec4<f32>();
    var c = vec4<f32>();
    var d = vec4<f32>();
    for (var e = block.y; e < block.y + block.z; e++) {
        let j = inputs[e];
        let v = values[e];
        a += v * rows_of(j, quad.x);
        b += v * rows_of(j, quad.y);
        c += v * rows_of(j, quad.z);
        d += v * rows_of(j, quad.w);
    }
    return array<vec4<f32>, 4>(
        gated(a, block, quad.x), gated(b, block, quad.y), gated(c, block, quad.z), gated(d, block, quad.w),
    );
}

// The quads of a thread; those beyond the chunk are its last.
fn quads_of(group: u32, thread: u32, row: u32) -> vec4<u32> {
    let first = row / 4u + group * 256u + thread;
    return min(first + vec4<u32>(0u, 64u, 128u, 192u), vec4<u32>(dims.quads - 1u));
}

// Whether row `quad 4 + t` is one of the thread's own, and of the batch.
fn is_own(group: u32, thread: u32, q: u32, t: u32) -> bool {
    let at = dims.row / 4u + group * 256u + thread + q * 64u;
    let row = at * 4u + t;
    return row >= dims.row && row < dims.row + dims.rows;
}
