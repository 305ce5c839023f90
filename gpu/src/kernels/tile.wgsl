// A matrix product in tiles of 64 × 64, over 32 rows of the data at a time: 256 threads, 4 × 4 sums each.
var<workgroup> left: array<vec4<f32>, 512>;
var<workgroup> right: array<vec4<f32>, 512>;

// The gate bits of four rows that are among `low..high`.
fn open_rows(word: u32, quad: u32, low: u32, high: u32) -> vec4<bool> {
    let row = quad * 4u + vec4<u32>(0u, 1u, 2u, 3u);
    let open = (vec4<u32>(word >> (quad % 8u * 4u)) & vec4<u32>(1u, 2u, 4u, 8u)) != vec4<u32>();
    return open & (row >= vec4<u32>(low)) & (row < vec4<u32>(high));
}

// Adds the products of what lies in `left` and `right`.
fn add_products(thread: u32, acc: ptr<function, array<vec4<f32>, 4>>) {
    for (var k = 0u; k < 32u; k++) {
        let a = left[k * 16u + thread / 16u];
        let b = right[k * 16u + thread % 16u];
        (*acc)[0] += a.x * b;
        (*acc)[1] += a.y * b;
        (*acc)[2] += a.z * b;
        (*acc)[3] += a.w * b;
    }
}
