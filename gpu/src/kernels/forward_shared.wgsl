
// SHARES        threads that share the neurons of four rows; divides 256
//
// grid          (rows SHARES / 1024); a thread takes four rows and every SHARES-th neuron
var<workgroup> parts: array<vec4<f32>, 256>;

@compute @workgroup_size(256)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) thread: u32) {
    let quads = 256u / SHARES;
    let own = group.x * quads + thread % quads;
    let quad = own_quad(own);
    var part = vec4<f32>();
    for (var b = thread / quads; b < dims.blocks; b += SHARES) {
        part += activation(blocks[b], quad);
    }
    parts[thread] = part;
    workgroupBarrier();
    if thread >= quads {
        return;
    }
    part = vec4<f32>();
    for (var share = 0u; share < SHARES; share++) {
        part += parts[share * quads + thread];
    }
    put(own, quad, part);
}
