// Gates of neurons as bits: bit k % 32 of word k / 32 says whether `sign w · x_k > 0`.
//
// grid          (rows / 256, neurons); a thread takes four rows of one neuron
// dims.quads    rows of the chunk / 4, with those that fill it up
// dims.words    rows of the chunk / 32
// dims.first    first row, a multiple of 256
// blocks        kind: closed 0, open 1, positive 2, negative 3
// bits          neurons × words
struct Dims { quads: u32, words: u32, first: u32, pad: u32 }
@group(0) @binding(0) var<uniform> dims: Dims;
@group(0) @binding(5) var<storage, read_write> bits: array<u32>;

var<workgroup> packed: array<atomic<u32>, 8>;

@compute @workgroup_size(64)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) thread: u32) {
    let block = blocks[group.y];
    let quad = dims.first / 4u + group.x * 64u + thread;
    if thread < 8u {
        atomicStore(&packed[thread], 0u);
    }
    var open = vec4<bool>(block.w == 1u);
    if block.w > 1u {
        let sum = weighted(block, quad);
        open = select(sum > vec4<f32>(), sum < vec4<f32>(), block.w == 3u);
    }
    let four = select(vec4<u32>(), vec4<u32>(1u, 2u, 4u, 8u), open);
    workgroupBarrier();
    atomicOr(&packed[thread / 8u], (four.x | four.y | four.z | four.w) << (thread % 8u * 4u));
    workgroupBarrier();
    if thread < 8u {
        bits[block.x * dims.words + dims.first / 32u + group.x * 8u + thread] = atomicLoad(&packed[thread]);
    }
}
