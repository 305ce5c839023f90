// Tiles of eight threads that share nothing, for software, where they are the lanes of a vector: what is read at one
// address for all of them is read once, and a read at addresses that differ takes as long as many sums. So a thread has
// eight lines of the second side, and all of them go through the first by sixteen lines, four rows at a time.
const THREADS = 8u;

// Sums of four lines of the first side with four of the second, and with four more.
struct Sums {
    a: vec4<f32>, b: vec4<f32>, c: vec4<f32>, d: vec4<f32>, e: vec4<f32>, f: vec4<f32>, g: vec4<f32>, h: vec4<f32>,
}

fn plus(sums: Sums, lines: mat4x4<f32>, one: mat4x4<f32>, other: mat4x4<f32>) -> Sums {
    return Sums(
        sums.a + lines[0] * one, sums.b + lines[1] * one, sums.c + lines[2] * one, sums.d + lines[3] * one,
        sums.e + lines[0] * other, sums.f + lines[1] * other, sums.g + lines[2] * other, sums.h + lines[3] * other,
    );
}

fn put_all(group: vec3<u32>, i: u32, j: u32, sums: Sums) {
    put(group, i, j, sums.a);
    put(group, i + 1u, j, sums.b);
    put(group, i + 2u, j, sums.c);
    put(group, i + 3u, j, sums.d);
    put(group, i, j + 4u, sums.e);
    put(group, i + 1u, j + 4u, sums.f);
    put(group, i + 2u, j + 4u, sums.g);
    put(group, i + 3u, j + 4u, sums.h);
}

// The sums of a tile over rows of the chunk, which `put` adds to what the kernel gives.
fn add_part(group: vec3<u32>, thread: u32, begin: u32, end: u32) {
    let j = group.y * 64u + thread * 8u;
    let one = second_lines(j);
    let other = second_lines(j + 4u);
    for (var block = 0u; block < 64u && group.x * 64u + block < lines_end(); block += 16u) {
        let i = group.x * 64u + block;
        let a = first_lines(i);
        let b = first_lines(i + 4u);
        let c = first_lines(i + 8u);
        let d = first_lines(i + 12u);
        var of_a: Sums;
        var of_b: Sums;
        var of_c: Sums;
        var of_d: Sums;
        for (var quad = begin / 4u; quad * 4u < end; quad++) {
            let here = rows_here(quad, begin, end);
            let x = second_side(one, quad, here);
            let y = second_side(other, quad, here);
            of_a = plus(of_a, first_side(a, quad), x, y);
            of_b = plus(of_b, first_side(b, quad), x, y);
            of_c = plus(of_c, first_side(c, quad), x, y);
            of_d = plus(of_d, first_side(d, quad), x, y);
        }
        put_all(group, i, j, of_a);
        put_all(group, i + 4u, j, of_b);
        put_all(group, i + 8u, j, of_c);
        put_all(group, i + 12u, j, of_d);
    }
}
