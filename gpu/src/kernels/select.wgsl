// The s numbers of largest magnitude of a vector, in order of their places: of equal ones the first. The s-th
// magnitude is found by its digits, from the highest on, each by a histogram of those that have the digits before it;
// so the result does not depend on the order of threads. Zeros are never selected.
//
// grid          (groups); what a group does depends on the kind
// dims.numbers  numbers
// dims.kind     w + eta g: g times eta 0, plus w 1; histogram of a digit 2; the digit of the s-th 3; how many of each
//               block are selected 4; where each block's go 5; write them 6
// dims.shift    place of the digit's lowest bit
// dims.bits     bits of the digit
// dims.size     s, or weights
// dims.blocks   blocks of 1024 numbers
// dims.eta      eta
// weights       (place, w)
// values        the vector
// state         magnitude of the s-th as far as it is known, how many of it to take, whether all are taken; then the
//               histogram from 8 on
// counts        (larger than the s-th, equal to it): of each block, then of all blocks before it
// out           how many are selected, 0; then (place, number) of each
struct Dims { numbers: u32, kind: u32, shift: u32, bits: u32, size: u32, blocks: u32, eta: f32, pad: u32 }
@group(0) @binding(0) var<uniform> dims: Dims;
@group(0) @binding(1) var<storage, read> weights: array<vec2<u32>>;
@group(0) @binding(2) var<storage, read_write> values: array<f32>;
@group(0) @binding(3) var<storage, read_write> state: array<atomic<u32>>;
@group(0) @binding(4) var<storage, read_write> counts: array<vec2<u32>>;
@group(0) @binding(5) var<storage, read_write> out: array<vec2<u32>>;

var<workgroup> bins: array<atomic<u32>, 2048>;
var<workgroup> parts: array<vec2<u32>, 256>;

fn magnitude(i: u32) -> u32 {
    return bitcast<u32>(values[i]) & 0x7fffffffu;
}

// The sum over the threads before this one; with all threads.
fn sum_before(thread: u32, own: vec2<u32>) -> vec2<u32> {
    workgroupBarrier();
    parts[thread] = own;
    workgroupBarrier();
    for (var step = 1u; step < 256u; step *= 2u) {
        var add = vec2<u32>();
        if thread >= step {
            add = parts[thread - step];
        }
        workgroupBarrier();
        parts[thread] += add;
        workgroupBarrier();
    }
    return parts[thread] - own;
}

fn histogram(group: u32, groups: u32, thread: u32) {
    for (var bin = thread; bin < 2048u; bin += 256u) {
        atomicStore(&bins[bin], 0u);
    }
    workgroupBarrier();
    let known = atomicLoad(&state[0]);
    let before = dims.shift + dims.bits;
    for (var i = group * 256u + thread; i < dims.numbers; i += groups * 256u) {
        let own = magnitude(i);
        if own != 0u && (own ^ known) >> before == 0u {
            atomicAdd(&bins[(own >> dims.shift) & ((1u << dims.bits) - 1u)], 1u);
        }
    }
    workgroupBarrier();
    for (var bin = thread; bin < 2048u; bin += 256u) {
        let count = atomicLoad(&bins[bin]);
        if count != 0u {
            atomicAdd(&state[8u + bin], count);
        }
    }
}

// Threads take eight bins each, from the largest on. The histogram is left empty.
fn digit(thread: u32) {
    let is_first = dims.shift + dims.bits == 31u;
    var wanted = dims.size;
    if !is_first {
        wanted = atomicLoad(&state[1]);
    }
    let is_done = !is_first && atomicLoad(&state[2]) == 1u;
    var own = 0u;
    for (var k = 0u; k < 8u; k++) {
        own += atomicLoad(&state[8u + 2047u - thread * 8u - k]);
    }
    var larger = sum_before(thread, vec2<u32>(own, 0u)).x;
    if !is_done && larger < wanted && larger + own >= wanted {
        for (var k = 0u; k < 8u; k++) {
            let bin = 2047u - thread * 8u - k;
            let count = atomicLoad(&state[8u + bin]);
            if larger + count >= wanted {
                atomicStore(&state[0], atomicLoad(&state[0]) | (bin << dims.shift));
                atomicStore(&state[1], wanted - larger);
                break;
            }
            larger += count;
        }
    }
    // Fewer than are wanted: all are larger than 0.
    if is_first && thread == 255u {
        atomicStore(&state[2], select(0u, 1u, larger + own < wanted));
    }
    storageBarrier();
    for (var bin = thread; bin < 2048u; bin += 256u) {
        atomicStore(&state[8u + bin], 0u);
    }
}

// Whether a number is larger than the s-th, and whether it is equal to it.
fn rank(i: u32) -> vec2<u32> {
    if i >= dims.numbers {
        return vec2<u32>();
    }
    let own = magnitude(i);
    let last = atomicLoad(&state[0]);
    return select(vec2<u32>(), vec2<u32>(1u), vec2<bool>(own > last, own == last && own != 0u));
}

fn count(group: u32, thread: u32) {
    let first = group * 1024u + thread * 4u;
    let own = rank(first) + rank(first + 1u) + rank(first + 2u) + rank(first + 3u);
    let before = sum_before(thread, own);
    if thread == 255u {
        counts[group] = before + own;
    }
}

fn places(thread: u32) {
    let each = (dims.blocks + 255u) / 256u;
    let begin = thread * each;
    let end = min(begin + each, dims.blocks);
    var own = vec2<u32>();
    for (var block = begin; block < end; block++) {
        own += counts[block];
    }
    var before = sum_before(thread, own);
    for (var block = begin; block < end; block++) {
        let here = counts[block];
        counts[block] = before;
        before += here;
    }
    if thread == 255u {
        out[0] = vec2<u32>(before.x + min(before.y, atomicLoad(&state[1])), 0u);
    }
}

fn write(group: u32, thread: u32) {
    let first = group * 1024u + thread * 4u;
    let own = array<vec2<u32>, 4>(rank(first), rank(first + 1u), rank(first + 2u), rank(first + 3u));
    var before = counts[group] + sum_before(thread, own[0] + own[1] + own[2] + own[3]);
    let equal = atomicLoad(&state[1]);
    for (var k = 0u; k < 4u; k++) {
        if own[k].x == 1u || own[k].y == 1u && before.y < equal {
            out[1u + before.x + min(before.y, equal)] = vec2<u32>(first + k, bitcast<u32>(values[first + k]));
        }
        before += own[k];
    }
}

@compute @workgroup_size(256)
fn main(
    @builtin(workgroup_id) id: vec3<u32>,
    @builtin(num_workgroups) ids: vec3<u32>,
    @builtin(local_invocation_index) thread: u32,
) {
    let group = id.y * ids.x + id.x;
    let i = group * 256u + thread;
    switch dims.kind {
        case 0u: {
            if i < dims.numbers {
                values[i] *= dims.eta;
            }
        }
        case 1u: {
            if i < dims.size {
                values[weights[i].x] += bitcast<f32>(weights[i].y);
            }
        }
        case 2u: { histogram(group, ids.x * ids.y, thread); }
        case 3u: { digit(thread); }
        case 4u: {
            if group < dims.blocks {
                count(group, thread);
            }
        }
        case 5u: { places(thread); }
        default: {
            if group < dims.blocks {
                write(group, thread);
            }
        }
    }
}
