
// grid          (rows / 1024); a thread takes all neurons and four times four rows
//
// On software, where the lanes of a vector are threads: a weight is read once for all of them, and 128 of their rows
// lie side by side.
@compute @workgroup_size(64)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) thread: u32) {
    let own = group.x * 256u + thread / 8u * 32u + thread % 8u;
    let q = own_quad(own);
    let r = own_quad(own + 8u);
    let s = own_quad(own + 16u);
    let t = own_quad(own + 24u);
    var of_q = vec4<f32>();
    var of_r = vec4<f32>();
    var of_s = vec4<f32>();
    var of_t = vec4<f32>();
    for (var b = 0u; b < dims.blocks; b++) {
        let block = blocks[b];
        var sum_q = vec4<f32>();
        var sum_r = vec4<f32>();
        var sum_s = vec4<f32>();
        var sum_t = vec4<f32>();
        for (var e = block.y; e < block.y + block.z; e++) {
            let input = inputs[e];
            let value = values[e];
            sum_q += value * rows_of(input, q);
            sum_r += value * rows_of(input, r);
            sum_s += value * rows_of(input, s);
            sum_t += value * rows_of(input, t);
        }
        of_q += gated(block, sum_q, q);
        of_r += gated(block, sum_r, r);
        of_s += gated(block, sum_s, s);
        of_t += gated(block, sum_t, t);
    }
    put(own, q, of_q);
    put(own + 8u, r, of_r);
    put(own + 16u, s, of_s);
    put(own + 24u, t, of_t);
}
