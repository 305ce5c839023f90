//! A model of 8-bit integers: 784 inputs, 10 outputs, 500 weights, checksum 4fa4bd4e.
//!
//! Exported by tamis as code: export it again rather than edit it. It needs no crate.

#![allow(dead_code, missing_docs, unreachable_pub, unused_variables, clippy::all)]

/// Numbers in one input row.
pub const INPUTS: usize = 784;
/// Numbers in one prediction.
pub const OUTPUTS: usize = 10;
/// A byte `q` of an input stands for `INPUT_SCALE * (q - INPUT_ZERO)`.
pub const INPUT_SCALE: f32 = 0.003921569;
/// The byte that stands for 0.
pub const INPUT_ZERO: u8 = 0;
/// An output `y` stands for `OUTPUT_SCALE * y`.
pub const OUTPUT_SCALE: f32 = 0.01;

/// The byte of a reading of one input: rounded, halves away from 0, and cut to 0 to 255.
/// Readings of up to 24 bits are floats without rounding.
#[must_use]
pub fn quantize(column: usize, reading: f32) -> u8 {
    let (_, scale, zero) = (column, INPUT_SCALE, f32::from(INPUT_ZERO));
    let steps = reading / scale;
    // Beyond these there are whole numbers only.
    let steps = if steps > -8_388_608.0 && steps < 8_388_608.0 {
        let whole = steps as i32 as f32;
        let rest = steps - whole;
        whole + if rest >= 0.5 { 1.0 } else if rest <= -0.5 { -1.0 } else { 0.0 }
    } else if steps.is_nan() {
        0.0
    } else {
        steps
    };
    (steps + zero).clamp(0.0, 255.0) as u8
}

/// The bytes of one row of readings.
#[must_use]
pub fn quantize_input(x: &[f32; INPUTS]) -> [u8; INPUTS] {
    core::array::from_fn(|column| quantize(column, x[column]))
}

/// The outputs on one row.
#[must_use]
pub fn predict(x: &[u8; INPUTS]) -> [i32; OUTPUTS] {
    let h_1 = layer_1(x);
    layer_2(&h_1)
}

/// The class of one row.
#[must_use]
pub fn classify(x: &[u8; INPUTS]) -> usize {
    let mut best = (0, i32::MIN);
    for (class, score) in predict(x).into_iter().enumerate() {
        if score > best.1 {
            best = (class, score);
        }
    }
    best.0
}

fn layer_1(x: &[u8; 784]) -> [u8; 10] {
    [
        byte::<1073741824, 10>(row_1_0(x)),
        byte::<1073741824, 10>(row_1_1(x)),
        byte::<1073741824, 10>(row_1_2(x)),
        byte::<1073741824, 10>(row_1_3(x)),
        byte::<1073741824, 10>(row_1_4(x)),
        byte::<1073741824, 10>(row_1_5(x)),
        byte::<1073741824, 10>(row_1_6(x)),
        byte::<1073741824, 10>(row_1_7(x)),
        byte::<1073741824, 10>(row_1_8(x)),
        byte::<1073741824, 10>(row_1_9(x)),
    ]
}

#[inline(never)]
fn row_1_0(x: &[u8; 784]) -> i32 {
    let sum = 0;
    let sum = add(sum, x[14], -72);
    let sum = add(sum, x[21], -20);
    let sum = add(sum, x[53], 118);
    let sum = add(sum, x[68], 65);
    let sum = add(sum, x[84], -11);
    let sum = add(sum, x[111], 19);
    let sum = add(sum, x[121], -31);
    let sum = add(sum, x[145], 23);
    let sum = add(sum, x[159], 2);
    let sum = add(sum, x[188], -113);
    let sum = add(sum, x[201], 74);
    let sum = add(sum, x[214], -82);
    let sum = add(sum, x[239], -65);
    let sum = add(sum, x[248], -69);
    let sum = add(sum, x[271], 22);
    let sum = add(sum, x[290], -90);
    let sum = add(sum, x[317], -2);
    let sum = add(sum, x[335], 35);
    let sum = add(sum, x[342], 53);
    let sum = add(sum, x[370], 83);
    let sum = add(sum, x[398], 87);
    let sum = add(sum, x[410], -20);
    let sum = add(sum, x[436], -10);
    let sum = add(sum, x[441], -103);
    let sum = add(sum, x[472], 53);
    let sum = add(sum, x[489], 51);
    let sum = add(sum, x[507], -25);
    let sum = add(sum, x[524], -81);
    let sum = add(sum, x[549], 6);
    let sum = add(sum, x[564], -84);
    let sum = add(sum, x[581], -85);
    let sum = add(sum, x[591], 10);
    let sum = add(sum, x[617], -109);
    let sum = add(sum, x[642], -50);
    let sum = add(sum, x[648], 90);
    let sum = add(sum, x[682], -1);
    let sum = add(sum, x[697], 21);
    let sum = add(sum, x[712], -39);
    let sum = add(sum, x[733], -42);
    let sum = add(sum, x[751], 74);
    sum
}

#[inline(never)]
fn row_1_1(x: &[u8; 784]) -> i32 {
    let sum = 0;
    let sum = add(sum, x[18], 98);
    let sum = add(sum, x[28], 99);
    let sum = add(sum, x[47], 37);
    let sum = add(sum, x[70], 106);
    let sum = add(sum, x[76], -104);
    let sum = add(sum, x[109], -102);
    let sum = add(sum, x[125], 63);
    let sum = add(sum, x[144], -12);
    let sum = add(sum, x[165], 66);
    let sum = add(sum, x[179], -119);
    let sum = add(sum, x[194], 114);
    let sum = add(sum, x[218], -116);
    let sum = add(sum, x[238], 114);
    let sum = add(sum, x[259], 12);
    let sum = add(sum, x[269], -6);
    let sum = add(sum, x[301], 87);
    let sum = add(sum, x[307], -44);
    let sum = add(sum, x[335], 17);
    let sum = add(sum, x[350], 35);
    let sum = add(sum, x[370], 124);
    let sum = add(sum, x[384], 48);
    let sum = add(sum, x[400], 115);
    let sum = add(sum, x[426], -122);
    let sum = add(sum, x[455], 41);
    let sum = add(sum, x[462], 102);
    let sum = add(sum, x[493], 56);
    let sum = add(sum, x[505], 115);
    let sum = add(sum, x[529], -49);
    let sum = add(sum, x[542], 80);
    let sum = add(sum, x[564], -124);
    let sum = add(sum, x[576], -3);
    let sum = add(sum, x[595], -74);
    let sum = add(sum, x[623], -59);
    let sum = add(sum, x[634], 109);
    let sum = add(sum, x[647], 35);
    let sum = add(sum, x[676], 32);
    let sum = add(sum, x[693], 17);
    let sum = add(sum, x[718], -84);
    let sum = add(sum, x[731], -121);
    let sum = add(sum, x[753], -96);
    sum
}

#[inline(never)]
fn row_1_2(x: &[u8; 784]) -> i32 {
    let sum = 0;
    let sum = add(sum, x[2], -33);
    let sum = add(sum, x[33], 4);
    let sum = add(sum, x[47], -86);
    let sum = add(sum, x[62], 94);
    let sum = add(sum, x[76], 99);
    let sum = add(sum, x[99], -58);
    let sum = add(sum, x[118], -95);
    let sum = add(sum, x[138], 77);
    let sum = add(sum, x[164], -63);
    let sum = add(sum, x[189], 94);
    let sum = add(sum, x[199], -21);
    let sum = add(sum, x[213], 87);
    let sum = add(sum, x[230], -108);
    let sum = add(sum, x[255], 116);
    let sum = add(sum, x[269], -13);
    let sum = add(sum, x[293], -91);
    let sum = add(sum, x[308], -104);
    let sum = add(sum, x[333], -79);
    let sum = add(sum, x[351], -61);
    let sum = add(sum, x[365], -108);
    let sum = add(sum, x[388], 103);
    let sum = add(sum, x[409], 67);
    let sum = add(sum, x[427], -53);
    let sum = add(sum, x[453], -43);
    let sum = add(sum, x[462], -112);
    let sum = add(sum, x[492], -97);
    let sum = add(sum, x[498], 117);
    let sum = add(sum, x[515], -51);
    let sum = add(sum, x[542], 20);
    let sum = add(sum, x[554], -1);
    let sum = add(sum, x[577], 11);
    let sum = add(sum, x[607], -118);
    let sum = add(sum, x[622], -28);
    let sum = add(sum, x[633], -31);
    let sum = add(sum, x[653], -78);
    let sum = add(sum, x[673], -98);
    let sum = add(sum, x[700], -98);
    let sum = add(sum, x[706], 101);
    let sum = add(sum, x[724], -47);
    let sum = add(sum, x[749], -18);
    sum
}

#[inline(never)]
fn row_1_3(x: &[u8; 784]) -> i32 {
    let sum = 0;
    let sum = add(sum, x[18], -19);
    let sum = add(sum, x[30], -35);
    let sum = add(sum, x[42], 124);
    let sum = add(sum, x[59], 14);
    let sum = add(sum, x[82], 6);
    let sum = add(sum, x[112], -122);
    let sum = add(sum, x[126], -51);
    let sum = add(sum, x[139], 101);
    let sum = add(sum, x[157], 37);
    let sum = add(sum, x[184], 36);
    let sum = add(sum, x[204], -21);
    let sum = add(sum, x[225], 110);
    let sum = add(sum, x[235], 50);
    let sum = add(sum, x[250], -17);
    let sum = add(sum, x[276], 17);
    let sum = add(sum, x[301], 30);
    let sum = add(sum, x[321], 109);
    let sum = add(sum, x[339], 58);
    let sum = add(sum, x[343], 56);
    let sum = add(sum, x[366], -61);
    let sum = add(sum, x[385], -92);
    let sum = add(sum, x[417], 119);
    let sum = add(sum, x[419], 125);
    let sum = add(sum, x[445], 58);
    let sum = add(sum, x[460], -25);
    let sum = add(sum, x[488], -97);
    let sum = add(sum, x[507], -109);
    let sum = add(sum, x[521], -67);
    let sum = add(sum, x[549], 94);
    let sum = add(sum, x[568], -100);
    let sum = add(sum, x[580], -74);
    let sum = add(sum, x[589], -21);
    let sum = add(sum, x[608], 52);
    let sum = add(sum, x[634], -19);
    let sum = add(sum, x[660], 41);
    let sum = add(sum, x[671], 31);
    let sum = add(sum, x[701], 40);
    let sum = add(sum, x[711], 105);
    let sum = add(sum, x[739], -9);
    let sum = add(sum, x[747], -78);
    sum
}

#[inline(never)]
fn row_1_4(x: &[u8; 784]) -> i32 {
    let sum = 0;
    let sum = add(sum, x[17], 81);
    let sum = add(sum, x[36], -119);
    let sum = add(sum, x[45], 82);
    let sum = add(sum, x[66], 38);
    let sum = add(sum, x[90], -122);
    let sum = add(sum, x[105], 23);
    let sum = add(sum, x[122], -31);
    let sum = add(sum, x[142], 39);
    let sum = add(sum, x[170], -15);
    let sum = add(sum, x[189], 26);
    let sum = add(sum, x[203], -120);
    let sum = add(sum, x[214], -69);
    let sum = add(sum, x[235], -22);
    let sum = add(sum, x[258], 4);
    let sum = add(sum, x[268], 88);
    let sum = add(sum, x[301], -14);
    let sum = add(sum, x[316], -110);
    let sum = add(sum, x[332], -20);
    let sum = add(sum, x[348], -122);
    let sum = add(sum, x[363], 66);
    let sum = add(sum, x[395], 27);
    let sum = add(sum, x[404], -59);
    let sum = add(sum, x[419], -104);
    let sum = add(sum, x[439], 8);
    let sum = add(sum, x[468], -12);
    let sum = add(sum, x[483], 65);
    let sum = add(sum, x[505], 14);
    let sum = add(sum, x[513], 87);
    let sum = add(sum, x[535], 96);
    let sum = add(sum, x[551], 43);
    let sum = add(sum, x[576], 56);
    let sum = add(sum, x[599], -28);
    let sum = add(sum, x[608], -20);
    let sum = add(sum, x[634], -121);
    let sum = add(sum, x[662], 43);
    let sum = add(sum, x[677], 126);
    let sum = add(sum, x[697], 2);
    let sum = add(sum, x[712], 96);
    let sum = add(sum, x[727], 125);
    let sum = add(sum, x[744], -72);
    sum
}

#[inline(never)]
fn row_1_5(x: &[u8; 784]) -> i32 {
    let sum = 0;
    let sum = add(sum, x[5], -86);
    let sum = add(sum, x[23], 34);
    let sum = add(sum, x[56], 69);
    let sum = add(sum, x[75], 38);
    let sum = add(sum, x[78], 123);
    let sum = add(sum, x[97], -72);
    let sum = add(sum, x[124], 77);
    let sum = add(sum, x[134], 121);
    let sum = add(sum, x[163], 113);
    let sum = add(sum, x[174], 127);
    let sum = add(sum, x[194], 67);
    let sum = add(sum, x[227], -104);
    let sum = add(sum, x[228], 71);
    let sum = add(sum, x[251], -52);
    let sum = add(sum, x[275], -58);
    let sum = add(sum, x[289], -12);
    let sum = add(sum, x[312], 30);
    let sum = add(sum, x[333], 10);
    let sum = add(sum, x[346], -39);
    let sum = add(sum, x[377], -42);
    let sum = add(sum, x[396], -19);
    let sum = add(sum, x[407], 43);
    let sum = add(sum, x[423], 50);
    let sum = add(sum, x[451], 63);
    let sum = add(sum, x[457], 13);
    let sum = add(sum, x[487], -33);
    let sum = add(sum, x[495], 41);
    let sum = add(sum, x[525], -110);
    let sum = add(sum, x[535], -102);
    let sum = add(sum, x[562], 3);
    let sum = add(sum, x[579], -69);
    let sum = add(sum, x[606], -47);
    let sum = add(sum, x[612], -99);
    let sum = add(sum, x[635], -70);
    let sum = add(sum, x[657], -41);
    let sum = add(sum, x[670], -52);
    let sum = add(sum, x[695], 27);
    let sum = add(sum, x[714], -36);
    let sum = add(sum, x[735], 112);
    let sum = add(sum, x[741], 118);
    sum
}

#[inline(never)]
fn row_1_6(x: &[u8; 784]) -> i32 {
    let sum = 0;
    let sum = add(sum, x[6], 42);
    let sum = add(sum, x[28], -26);
    let sum = add(sum, x[43], 125);
    let sum = add(sum, x[63], -89);
    let sum = add(sum, x[91], 35);
    let sum = add(sum, x[111], 16);
    let sum = add(sum, x[115], -64);
    let sum = add(sum, x[138], -105);
    let sum = add(sum, x[157], 98);
    let sum = add(sum, x[189], 7);
    let sum = add(sum, x[203], 60);
    let sum = add(sum, x[217], -120);
    let sum = add(sum, x[232], 55);
    let sum = add(sum, x[264], 87);
    let sum = add(sum, x[277], -121);
    let sum = add(sum, x[289], 119);
    let sum = add(sum, x[313], -81);
    let sum = add(sum, x[330], -105);
    let sum = add(sum, x[345], -70);
    let sum = add(sum, x[372], -78);
    let sum = add(sum, x[386], -5);
    let sum = add(sum, x[415], 36);
    let sum = add(sum, x[434], 48);
    let sum = add(sum, x[454], 83);
    let sum = add(sum, x[474], -105);
    let sum = add(sum, x[483], -105);
    let sum = add(sum, x[503], -117);
    let sum = add(sum, x[530], 118);
    let sum = add(sum, x[547], 29);
    let sum = add(sum, x[569], 37);
    let sum = add(sum, x[580], -45);
    let sum = add(sum, x[591], -3);
    let sum = add(sum, x[617], 48);
    let sum = add(sum, x[636], -87);
    let sum = add(sum, x[651], 21);
    let sum = add(sum, x[667], 47);
    let sum = add(sum, x[694], -117);
    let sum = add(sum, x[713], 118);
    let sum = add(sum, x[730], 115);
    let sum = add(sum, x[754], -106);
    sum
}

#[inline(never)]
fn row_1_7(x: &[u8; 784]) -> i32 {
    let sum = 0;
    let sum = add(sum, x[16], -7);
    let sum = add(sum, x[22], -97);
    let sum = add(sum, x[42], 78);
    let sum = add(sum, x[65], 45);
    let sum = add(sum, x[82], 107);
    let sum = add(sum, x[98], -89);
    let sum = add(sum, x[120], -76);
    let sum = add(sum, x[135], -70);
    let sum = add(sum, x[166], -38);
    let sum = add(sum, x[185], -123);
    let sum = add(sum, x[192], 80);
    let sum = add(sum, x[226], 40);
    let sum = add(sum, x[243], 108);
    let sum = add(sum, x[264], -3);
    let sum = add(sum, x[273], 118);
    let sum = add(sum, x[303], -20);
    let sum = add(sum, x[311], 23);
    let sum = add(sum, x[333], -110);
    let sum = add(sum, x[352], -91);
    let sum = add(sum, x[372], -78);
    let sum = add(sum, x[394], -81);
    let sum = add(sum, x[408], 62);
    let sum = add(sum, x[430], -78);
    let sum = add(sum, x[443], 88);
    let sum = add(sum, x[474], 27);
    let sum = add(sum, x[483], 48);
    let sum = add(sum, x[500], -85);
    let sum = add(sum, x[523], 41);
    let sum = add(sum, x[545], -13);
    let sum = add(sum, x[559], 38);
    let sum = add(sum, x[584], 2);
    let sum = add(sum, x[597], 48);
    let sum = add(sum, x[623], 28);
    let sum = add(sum, x[627], 73);
    let sum = add(sum, x[648], 25);
    let sum = add(sum, x[674], 47);
    let sum = add(sum, x[689], -17);
    let sum = add(sum, x[718], -49);
    let sum = add(sum, x[729], -104);
    let sum = add(sum, x[755], -67);
    sum
}

#[inline(never)]
fn row_1_8(x: &[u8; 784]) -> i32 {
    let sum = 0;
    let sum = add(sum, x[18], -83);
    let sum = add(sum, x[37], -11);
    let sum = add(sum, x[44], 85);
    let sum = add(sum, x[66], -16);
    let sum = add(sum, x[93], 120);
    let sum = add(sum, x[100], 84);
    let sum = add(sum, x[115], 120);
    let sum = add(sum, x[145], -25);
    let sum = add(sum, x[170], -63);
    let sum = add(sum, x[179], 57);
    let sum = add(sum, x[193], 62);
    let sum = add(sum, x[212], 58);
    let sum = add(sum, x[245], -94);
    let sum = add(sum, x[249], 6);
    let sum = add(sum, x[280], 29);
    let sum = add(sum, x[291], -71);
    let sum = add(sum, x[304], 96);
    let sum = add(sum, x[339], -44);
    let sum = add(sum, x[352], 19);
    let sum = add(sum, x[372], -43);
    let sum = add(sum, x[393], 39);
    let sum = add(sum, x[409], 66);
    let sum = add(sum, x[418], 87);
    let sum = add(sum, x[443], -120);
    let sum = add(sum, x[469], 70);
    let sum = add(sum, x[483], -62);
    let sum = add(sum, x[505], -26);
    let sum = add(sum, x[513], 11);
    let sum = add(sum, x[543], -63);
    let sum = add(sum, x[567], 36);
    let sum = add(sum, x[575], -90);
    let sum = add(sum, x[593], 10);
    let sum = add(sum, x[611], -49);
    let sum = add(sum, x[638], 66);
    let sum = add(sum, x[651], 58);
    let sum = add(sum, x[679], -77);
    let sum = add(sum, x[699], -60);
    let sum = add(sum, x[711], 21);
    let sum = add(sum, x[732], -19);
    let sum = add(sum, x[752], 60);
    sum
}

#[inline(never)]
fn row_1_9(x: &[u8; 784]) -> i32 {
    let sum = 0;
    let sum = add(sum, x[16], 54);
    let sum = add(sum, x[32], 44);
    let sum = add(sum, x[46], 93);
    let sum = add(sum, x[62], 12);
    let sum = add(sum, x[82], 60);
    let sum = add(sum, x[101], 104);
    let sum = add(sum, x[116], 40);
    let sum = add(sum, x[135], 63);
    let sum = add(sum, x[170], -50);
    let sum = add(sum, x[183], -26);
    let sum = add(sum, x[195], -109);
    let sum = add(sum, x[220], -73);
    let sum = add(sum, x[245], 75);
    let sum = add(sum, x[256], -85);
    let sum = add(sum, x[266], 35);
    let sum = add(sum, x[303], 109);
    let sum = add(sum, x[318], 19);
    let sum = add(sum, x[338], -77);
    let sum = add(sum, x[360], 88);
    let sum = add(sum, x[366], -85);
    let sum = add(sum, x[391], -94);
    let sum = add(sum, x[402], -78);
    let sum = add(sum, x[427], -51);
    let sum = add(sum, x[439], -95);
    let sum = add(sum, x[458], 10);
    let sum = add(sum, x[493], -73);
    let sum = add(sum, x[494], -117);
    let sum = add(sum, x[526], 97);
    let sum = add(sum, x[537], -118);
    let sum = add(sum, x[556], 61);
    let sum = add(sum, x[577], -76);
    let sum = add(sum, x[592], -13);
    let sum = add(sum, x[620], -41);
    let sum = add(sum, x[629], -35);
    let sum = add(sum, x[657], -127);
    let sum = add(sum, x[677], 12);
    let sum = add(sum, x[697], -119);
    let sum = add(sum, x[706], 42);
    let sum = add(sum, x[723], 59);
    let sum = add(sum, x[752], -23);
    sum
}

fn layer_2(x: &[u8; 10]) -> [i32; 10] {
    [
        row_2_0(x),
        row_2_1(x),
        row_2_2(x),
        row_2_3(x),
        row_2_4(x),
        row_2_5(x),
        row_2_6(x),
        row_2_7(x),
        row_2_8(x),
        row_2_9(x),
    ]
}

#[inline(never)]
fn row_2_0(x: &[u8; 10]) -> i32 {
    let sum = 0;
    let sum = add(sum, x[0], -117);
    let sum = add(sum, x[1], -57);
    let sum = add(sum, x[2], -120);
    let sum = add(sum, x[3], -88);
    let sum = add(sum, x[4], 81);
    let sum = add(sum, x[5], -52);
    let sum = add(sum, x[6], -101);
    let sum = add(sum, x[7], 125);
    let sum = add(sum, x[8], 100);
    let sum = add(sum, x[9], -38);
    sum
}

#[inline(never)]
fn row_2_1(x: &[u8; 10]) -> i32 {
    let sum = 0;
    let sum = add(sum, x[0], 23);
    let sum = add(sum, x[1], 63);
    let sum = add(sum, x[2], -1);
    let sum = add(sum, x[3], 60);
    let sum = add(sum, x[4], -10);
    let sum = add(sum, x[5], -88);
    let sum = add(sum, x[6], 110);
    let sum = add(sum, x[7], -83);
    let sum = add(sum, x[8], -61);
    let sum = add(sum, x[9], 102);
    sum
}

#[inline(never)]
fn row_2_2(x: &[u8; 10]) -> i32 {
    let sum = 0;
    let sum = add(sum, x[0], 9);
    let sum = add(sum, x[1], 108);
    let sum = add(sum, x[2], 38);
    let sum = add(sum, x[3], -92);
    let sum = add(sum, x[4], -33);
    let sum = add(sum, x[5], 100);
    let sum = add(sum, x[6], -33);
    let sum = add(sum, x[7], 32);
    let sum = add(sum, x[8], -119);
    let sum = add(sum, x[9], 52);
    sum
}

#[inline(never)]
fn row_2_3(x: &[u8; 10]) -> i32 {
    let sum = 0;
    let sum = add(sum, x[0], 20);
    let sum = add(sum, x[1], 64);
    let sum = add(sum, x[2], -71);
    let sum = add(sum, x[3], -113);
    let sum = add(sum, x[4], 111);
    let sum = add(sum, x[5], -69);
    let sum = add(sum, x[6], 67);
    let sum = add(sum, x[7], 77);
    let sum = add(sum, x[8], -27);
    let sum = add(sum, x[9], 39);
    sum
}

#[inline(never)]
fn row_2_4(x: &[u8; 10]) -> i32 {
    let sum = 0;
    let sum = add(sum, x[0], 107);
    let sum = add(sum, x[1], 16);
    let sum = add(sum, x[2], 29);
    let sum = add(sum, x[3], 112);
    let sum = add(sum, x[4], 107);
    let sum = add(sum, x[5], -121);
    let sum = add(sum, x[6], -126);
    let sum = add(sum, x[7], 106);
    let sum = add(sum, x[8], 120);
    let sum = add(sum, x[9], -43);
    sum
}

#[inline(never)]
fn row_2_5(x: &[u8; 10]) -> i32 {
    let sum = 0;
    let sum = add(sum, x[0], 115);
    let sum = add(sum, x[1], 51);
    let sum = add(sum, x[2], 65);
    let sum = add(sum, x[3], 104);
    let sum = add(sum, x[4], 14);
    let sum = add(sum, x[5], -48);
    let sum = add(sum, x[6], 127);
    let sum = add(sum, x[7], -50);
    let sum = add(sum, x[8], -51);
    let sum = add(sum, x[9], -61);
    sum
}

#[inline(never)]
fn row_2_6(x: &[u8; 10]) -> i32 {
    let sum = 0;
    let sum = add(sum, x[0], -74);
    let sum = add(sum, x[1], -112);
    let sum = add(sum, x[2], -117);
    let sum = add(sum, x[3], 6);
    let sum = add(sum, x[4], -48);
    let sum = add(sum, x[5], 86);
    let sum = add(sum, x[6], 11);
    let sum = add(sum, x[7], 10);
    let sum = add(sum, x[8], 58);
    let sum = add(sum, x[9], 68);
    sum
}

#[inline(never)]
fn row_2_7(x: &[u8; 10]) -> i32 {
    let sum = 0;
    let sum = add(sum, x[0], 32);
    let sum = add(sum, x[1], 93);
    let sum = add(sum, x[2], -24);
    let sum = add(sum, x[3], 98);
    let sum = add(sum, x[4], 13);
    let sum = add(sum, x[5], 108);
    let sum = add(sum, x[6], 37);
    let sum = add(sum, x[7], 84);
    let sum = add(sum, x[8], 79);
    let sum = add(sum, x[9], -91);
    sum
}

#[inline(never)]
fn row_2_8(x: &[u8; 10]) -> i32 {
    let sum = 0;
    let sum = add(sum, x[0], -109);
    let sum = add(sum, x[1], -124);
    let sum = add(sum, x[2], 2);
    let sum = add(sum, x[3], 114);
    let sum = add(sum, x[4], 49);
    let sum = add(sum, x[5], -8);
    let sum = add(sum, x[6], 104);
    let sum = add(sum, x[7], 22);
    let sum = add(sum, x[8], -101);
    let sum = add(sum, x[9], 20);
    sum
}

#[inline(never)]
fn row_2_9(x: &[u8; 10]) -> i32 {
    let sum = 0;
    let sum = add(sum, x[0], 80);
    let sum = add(sum, x[1], 9);
    let sum = add(sum, x[2], -1);
    let sum = add(sum, x[3], -75);
    let sum = add(sum, x[4], 75);
    let sum = add(sum, x[5], -110);
    let sum = add(sum, x[6], 56);
    let sum = add(sum, x[7], 26);
    let sum = add(sum, x[8], -76);
    let sum = add(sum, x[9], 51);
    sum
}

/// One weight.
#[inline(always)]
fn add(sum: i32, x: u8, weight: i32) -> i32 {
    sum.wrapping_add(i32::from(x).wrapping_mul(weight))
}

/// A sum times a factor, rounded.
#[inline(always)]
fn number<const FACTOR: i64, const SHIFT: u32>(sum: i32) -> i32 {
    let high = (i64::from(sum).wrapping_mul(FACTOR) >> 32) as i32;
    high.wrapping_add(1 << (SHIFT - 1)) >> SHIFT
}

/// A sum times a factor, rounded and cut to a byte.
#[inline(always)]
fn byte<const FACTOR: i64, const SHIFT: u32>(sum: i32) -> u8 {
    number::<FACTOR, SHIFT>(sum).clamp(0, 255) as u8
}
