// X as floats, column by column: four rows at a time. `dims.quads` is the distance of two columns, in fours of rows.
@group(0) @binding(1) var<storage, read> x: array<vec4<f32>>;

fn rows_of(column: u32, quad: u32) -> vec4<f32> {
    return x[column * dims.quads + quad];
}
