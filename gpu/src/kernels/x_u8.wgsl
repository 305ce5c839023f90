// X as bytes, column by column: a word has four rows. `dims.quads` is the distance of two columns, in fours of rows.
@group(0) @binding(1) var<storage, read> x: array<u32>;

fn rows_of(column: u32, quad: u32) -> vec4<f32> {
    let word = x[column * dims.quads + quad];
    return vec4<f32>((vec4<u32>(word) >> vec4<u32>(0u, 8u, 16u, 24u)) & vec4<u32>(255u));
}
