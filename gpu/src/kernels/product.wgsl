// Products of lines, `out[i][j] = sum_k a_ik b_jk`.
//
// grid          (lines of a / 64, lines of b / 64)
// dims.base, dims.row, dims.origin   0
// dims.rows     numbers of a line
// dims.group    the same, a multiple of those of a part
// dims.part     numbers that are added up as one, a multiple of 32
// dims.left     lines of a
// dims.right    lines of b
// a, b          lines, one after the other
// sums          left × right, to which is added
struct Dims {
    base: u32, row: u32, rows: u32, origin: u32, group: u32, part: u32, left: u32, right: u32,
}
@group(0) @binding(0) var<uniform> dims: Dims;
@group(0) @binding(1) var<storage, read> a: array<f32>;
@group(0) @binding(2) var<storage, read> b: array<f32>;
@group(0) @binding(3) var<storage, read_write> sums: array<f32>;

// Where four lines begin. Those beyond the last are the last again, and nothing is made of them.
struct Lines { at: vec4<u32> }
alias FirstLines = Lines;
alias SecondLines = Lines;

fn lines_end() -> u32 {
    return dims.left;
}

fn first_lines(line: u32) -> Lines {
    return Lines(min(line + vec4<u32>(0u, 1u, 2u, 3u), vec4<u32>(dims.left - 1u)) * dims.rows);
}

fn second_lines(line: u32) -> Lines {
    return Lines(min(line + vec4<u32>(0u, 1u, 2u, 3u), vec4<u32>(dims.right - 1u)) * dims.rows);
}

// Four numbers of a line, whatever they are where it has ended.
fn four_of_a(line: u32, quad: u32) -> vec4<f32> {
    let at = line + quad * 4u;
    return vec4<f32>(a[at], a[at + 1u], a[at + 2u], a[at + 3u]);
}

fn four_of_b(line: u32, quad: u32) -> vec4<f32> {
    let at = line + quad * 4u;
    return vec4<f32>(b[at], b[at + 1u], b[at + 2u], b[at + 3u]);
}

fn first_side(lines: Lines, quad: u32) -> mat4x4<f32> {
    return mat4x4<f32>(
        four_of_a(lines.at.x, quad), four_of_a(lines.at.y, quad),
        four_of_a(lines.at.z, quad), four_of_a(lines.at.w, quad),
    );
}

fn second_side(lines: Lines, quad: u32, here: u32) -> mat4x4<f32> {
    return mat4x4<f32>(
        where_set(four_of_b(lines.at.x, quad), here), where_set(four_of_b(lines.at.y, quad), here),
        where_set(four_of_b(lines.at.z, quad), here), where_set(four_of_b(lines.at.w, quad), here),
    );
}

fn put(group: vec3<u32>, i: u32, j: u32, four: vec4<f32>) {
    for (var k = 0u; k < 4u; k++) {
        if i < dims.left && j + k < dims.right {
            sums[i * dims.right + j + k] += four[k];
        }
    }
}

@compute @workgroup_size(THREADS)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) thread: u32) {
    add_tile(group, thread);
}
