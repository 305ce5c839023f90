//! A model of 8-bit integers: 784 inputs, 10 outputs, 1000 weights, checksum 75a25386.
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
    let sum = add(sum, x[5], 51);
    let sum = add(sum, x[9], -25);
    let sum = add(sum, x[22], -81);
    let sum = add(sum, x[29], 6);
    let sum = add(sum, x[35], -84);
    let sum = add(sum, x[47], -85);
    let sum = add(sum, x[51], 10);
    let sum = add(sum, x[61], -109);
    let sum = add(sum, x[67], -50);
    let sum = add(sum, x[79], 90);
    let sum = add(sum, x[84], -1);
    let sum = add(sum, x[90], 21);
    let sum = add(sum, x[100], -39);
    let sum = add(sum, x[104], -42);
    let sum = add(sum, x[114], 74);
    let sum = add(sum, x[122], 126);
    let sum = add(sum, x[133], -67);
    let sum = add(sum, x[141], -7);
    let sum = add(sum, x[144], -79);
    let sum = add(sum, x[156], 90);
    let sum = add(sum, x[167], 30);
    let sum = add(sum, x[173], -71);
    let sum = add(sum, x[183], -26);
    let sum = add(sum, x[185], -24);
    let sum = add(sum, x[198], 58);
    let sum = add(sum, x[205], 33);
    let sum = add(sum, x[213], -58);
    let sum = add(sum, x[220], -45);
    let sum = add(sum, x[231], -75);
    let sum = add(sum, x[237], -69);
    let sum = add(sum, x[244], 43);
    let sum = add(sum, x[248], 106);
    let sum = add(sum, x[260], -8);
    let sum = add(sum, x[270], -66);
    let sum = add(sum, x[272], -61);
    let sum = add(sum, x[287], 98);
    let sum = add(sum, x[293], 99);
    let sum = add(sum, x[300], 37);
    let sum = add(sum, x[309], 106);
    let sum = add(sum, x[316], -104);
    let sum = add(sum, x[324], -102);
    let sum = add(sum, x[335], 63);
    let sum = add(sum, x[337], -12);
    let sum = add(sum, x[348], 66);
    let sum = add(sum, x[359], -119);
    let sum = add(sum, x[361], 114);
    let sum = add(sum, x[372], -116);
    let sum = add(sum, x[377], 114);
    let sum = add(sum, x[384], 12);
    let sum = add(sum, x[399], -6);
    let sum = add(sum, x[401], 87);
    let sum = add(sum, x[409], -44);
    let sum = add(sum, x[417], 17);
    let sum = add(sum, x[430], 35);
    let sum = add(sum, x[433], 124);
    let sum = add(sum, x[440], 48);
    let sum = add(sum, x[448], 115);
    let sum = add(sum, x[457], -122);
    let sum = add(sum, x[471], 41);
    let sum = add(sum, x[477], 102);
    let sum = add(sum, x[484], 56);
    let sum = add(sum, x[489], 115);
    let sum = add(sum, x[501], -49);
    let sum = add(sum, x[511], 80);
    core::hint::black_box(());
    let sum = add(sum, x[516], -124);
    let sum = add(sum, x[526], -3);
    let sum = add(sum, x[532], -74);
    let sum = add(sum, x[542], -59);
    let sum = add(sum, x[545], 109);
    let sum = add(sum, x[552], 35);
    let sum = add(sum, x[565], 32);
    let sum = add(sum, x[573], 17);
    let sum = add(sum, x[576], -84);
    let sum = add(sum, x[591], -121);
    let sum = add(sum, x[594], -96);
    let sum = add(sum, x[602], -20);
    let sum = add(sum, x[611], 65);
    let sum = add(sum, x[617], 4);
    let sum = add(sum, x[629], 33);
    let sum = add(sum, x[634], -82);
    let sum = add(sum, x[645], 65);
    let sum = add(sum, x[649], 16);
    let sum = add(sum, x[657], 21);
    let sum = add(sum, x[668], -34);
    let sum = add(sum, x[672], 67);
    let sum = add(sum, x[686], -57);
    let sum = add(sum, x[694], -64);
    let sum = add(sum, x[703], -44);
    let sum = add(sum, x[707], 32);
    let sum = add(sum, x[712], 73);
    sum
}

#[inline(never)]
fn row_1_1(x: &[u8; 784]) -> i32 {
    let sum = 0;
    let sum = add(sum, x[3], -127);
    let sum = add(sum, x[15], 28);
    let sum = add(sum, x[21], -41);
    let sum = add(sum, x[26], 87);
    let sum = add(sum, x[35], -34);
    let sum = add(sum, x[43], -98);
    let sum = add(sum, x[54], 51);
    let sum = add(sum, x[57], -72);
    let sum = add(sum, x[65], -117);
    let sum = add(sum, x[75], 8);
    let sum = add(sum, x[82], -38);
    let sum = add(sum, x[94], 12);
    let sum = add(sum, x[96], -29);
    let sum = add(sum, x[104], 93);
    let sum = add(sum, x[117], -116);
    let sum = add(sum, x[127], 73);
    let sum = add(sum, x[133], 2);
    let sum = add(sum, x[139], 98);
    let sum = add(sum, x[150], 114);
    let sum = add(sum, x[154], 114);
    let sum = add(sum, x[163], -19);
    let sum = add(sum, x[174], -35);
    let sum = add(sum, x[181], 124);
    let sum = add(sum, x[191], 14);
    let sum = add(sum, x[196], 6);
    let sum = add(sum, x[201], -122);
    let sum = add(sum, x[211], -51);
    let sum = add(sum, x[223], 101);
    let sum = add(sum, x[229], 37);
    let sum = add(sum, x[233], 36);
    let sum = add(sum, x[241], -21);
    let sum = add(sum, x[255], 110);
    let sum = add(sum, x[261], 50);
    let sum = add(sum, x[267], -17);
    let sum = add(sum, x[278], 17);
    let sum = add(sum, x[284], 30);
    let sum = add(sum, x[295], 109);
    let sum = add(sum, x[296], 58);
    let sum = add(sum, x[304], 56);
    let sum = add(sum, x[316], -61);
    let sum = add(sum, x[325], -92);
    let sum = add(sum, x[335], 119);
    let sum = add(sum, x[342], 125);
    let sum = add(sum, x[348], 58);
    let sum = add(sum, x[356], -25);
    let sum = add(sum, x[366], -97);
    let sum = add(sum, x[371], -109);
    let sum = add(sum, x[380], -67);
    let sum = add(sum, x[390], 94);
    let sum = add(sum, x[396], -100);
    let sum = add(sum, x[406], -74);
    let sum = add(sum, x[410], -21);
    let sum = add(sum, x[420], 52);
    let sum = add(sum, x[427], -19);
    let sum = add(sum, x[435], 41);
    let sum = add(sum, x[446], 31);
    let sum = add(sum, x[450], 40);
    let sum = add(sum, x[460], 105);
    let sum = add(sum, x[471], -9);
    let sum = add(sum, x[476], -78);
    let sum = add(sum, x[486], -116);
    let sum = add(sum, x[495], -52);
    let sum = add(sum, x[503], -100);
    let sum = add(sum, x[506], 55);
    core::hint::black_box(());
    let sum = add(sum, x[515], -123);
    let sum = add(sum, x[527], 89);
    let sum = add(sum, x[529], -48);
    let sum = add(sum, x[536], -19);
    let sum = add(sum, x[544], -82);
    let sum = add(sum, x[558], 46);
    let sum = add(sum, x[560], 103);
    let sum = add(sum, x[570], 10);
    let sum = add(sum, x[583], 82);
    let sum = add(sum, x[590], 80);
    let sum = add(sum, x[593], 24);
    let sum = add(sum, x[606], -43);
    let sum = add(sum, x[609], 5);
    let sum = add(sum, x[621], -109);
    let sum = add(sum, x[628], 91);
    let sum = add(sum, x[637], 34);
    let sum = add(sum, x[646], 81);
    let sum = add(sum, x[654], -119);
    let sum = add(sum, x[662], 82);
    let sum = add(sum, x[668], 38);
    let sum = add(sum, x[678], -122);
    let sum = add(sum, x[683], 23);
    let sum = add(sum, x[690], -31);
    let sum = add(sum, x[701], 39);
    let sum = add(sum, x[705], -15);
    let sum = add(sum, x[718], 26);
    sum
}

#[inline(never)]
fn row_1_2(x: &[u8; 784]) -> i32 {
    let sum = 0;
    let sum = add(sum, x[7], -66);
    let sum = add(sum, x[15], 34);
    let sum = add(sum, x[20], 75);
    let sum = add(sum, x[28], -80);
    let sum = add(sum, x[33], 91);
    let sum = add(sum, x[45], -86);
    let sum = add(sum, x[48], 34);
    let sum = add(sum, x[56], 69);
    let sum = add(sum, x[69], 38);
    let sum = add(sum, x[73], 123);
    let sum = add(sum, x[80], -72);
    let sum = add(sum, x[93], 77);
    let sum = add(sum, x[102], 121);
    let sum = add(sum, x[110], 113);
    let sum = add(sum, x[113], 127);
    let sum = add(sum, x[126], 67);
    let sum = add(sum, x[135], -104);
    let sum = add(sum, x[140], 71);
    let sum = add(sum, x[148], -52);
    let sum = add(sum, x[154], -58);
    let sum = add(sum, x[161], -12);
    let sum = add(sum, x[169], 30);
    let sum = add(sum, x[179], 10);
    let sum = add(sum, x[191], -39);
    let sum = add(sum, x[198], -42);
    let sum = add(sum, x[207], -19);
    let sum = add(sum, x[208], 43);
    let sum = add(sum, x[216], 50);
    let sum = add(sum, x[224], 63);
    let sum = add(sum, x[238], 13);
    let sum = add(sum, x[244], -33);
    let sum = add(sum, x[249], 41);
    let sum = add(sum, x[256], -110);
    let sum = add(sum, x[266], -102);
    let sum = add(sum, x[277], 3);
    let sum = add(sum, x[281], -69);
    let sum = add(sum, x[294], -47);
    let sum = add(sum, x[297], -99);
    let sum = add(sum, x[306], -70);
    let sum = add(sum, x[314], -41);
    let sum = add(sum, x[323], -52);
    let sum = add(sum, x[330], 27);
    let sum = add(sum, x[337], -36);
    let sum = add(sum, x[350], 112);
    let sum = add(sum, x[353], 118);
    let sum = add(sum, x[366], -45);
    let sum = add(sum, x[375], 37);
    let sum = add(sum, x[380], -105);
    let sum = add(sum, x[386], 12);
    let sum = add(sum, x[394], -38);
    let sum = add(sum, x[407], 89);
    let sum = add(sum, x[410], -27);
    let sum = add(sum, x[416], 78);
    let sum = add(sum, x[427], 61);
    let sum = add(sum, x[438], -25);
    let sum = add(sum, x[442], -43);
    let sum = add(sum, x[455], -114);
    let sum = add(sum, x[458], 122);
    let sum = add(sum, x[468], -66);
    let sum = add(sum, x[479], -105);
    let sum = add(sum, x[482], 68);
    let sum = add(sum, x[489], -66);
    let sum = add(sum, x[503], 34);
    let sum = add(sum, x[511], -74);
    core::hint::black_box(());
    let sum = add(sum, x[513], -57);
    let sum = add(sum, x[520], 42);
    let sum = add(sum, x[532], -26);
    let sum = add(sum, x[536], 125);
    let sum = add(sum, x[548], -89);
    let sum = add(sum, x[553], 35);
    let sum = add(sum, x[561], 16);
    let sum = add(sum, x[575], -64);
    let sum = add(sum, x[576], -105);
    let sum = add(sum, x[585], 98);
    let sum = add(sum, x[595], 7);
    let sum = add(sum, x[602], 60);
    let sum = add(sum, x[611], -120);
    let sum = add(sum, x[620], 55);
    let sum = add(sum, x[625], 87);
    let sum = add(sum, x[638], -121);
    let sum = add(sum, x[646], 119);
    let sum = add(sum, x[651], -81);
    let sum = add(sum, x[658], -105);
    let sum = add(sum, x[670], -70);
    let sum = add(sum, x[672], -78);
    let sum = add(sum, x[685], -5);
    let sum = add(sum, x[688], 36);
    let sum = add(sum, x[701], 48);
    let sum = add(sum, x[705], 83);
    let sum = add(sum, x[716], -105);
    sum
}

#[inline(never)]
fn row_1_3(x: &[u8; 784]) -> i32 {
    let sum = 0;
    let sum = add(sum, x[6], 80);
    let sum = add(sum, x[15], 40);
    let sum = add(sum, x[23], 108);
    let sum = add(sum, x[29], -3);
    let sum = add(sum, x[39], 118);
    let sum = add(sum, x[40], -20);
    let sum = add(sum, x[49], 23);
    let sum = add(sum, x[59], -110);
    let sum = add(sum, x[66], -91);
    let sum = add(sum, x[75], -78);
    let sum = add(sum, x[82], -81);
    let sum = add(sum, x[92], 62);
    let sum = add(sum, x[96], -78);
    let sum = add(sum, x[109], 88);
    let sum = add(sum, x[114], 27);
    let sum = add(sum, x[120], 48);
    let sum = add(sum, x[133], -85);
    let sum = add(sum, x[142], 41);
    let sum = add(sum, x[145], -13);
    let sum = add(sum, x[153], 38);
    let sum = add(sum, x[162], 2);
    let sum = add(sum, x[170], 48);
    let sum = add(sum, x[183], 28);
    let sum = add(sum, x[188], 73);
    let sum = add(sum, x[199], 25);
    let sum = add(sum, x[203], 47);
    let sum = add(sum, x[215], -17);
    let sum = add(sum, x[217], -49);
    let sum = add(sum, x[230], -104);
    let sum = add(sum, x[237], -67);
    let sum = add(sum, x[247], -127);
    let sum = add(sum, x[249], -46);
    let sum = add(sum, x[257], 118);
    let sum = add(sum, x[267], -10);
    let sum = add(sum, x[274], 127);
    let sum = add(sum, x[281], 26);
    let sum = add(sum, x[290], 119);
    let sum = add(sum, x[297], 95);
    let sum = add(sum, x[310], -5);
    let sum = add(sum, x[318], -70);
    let sum = add(sum, x[320], -89);
    let sum = add(sum, x[335], 4);
    let sum = add(sum, x[342], 92);
    let sum = add(sum, x[351], 80);
    let sum = add(sum, x[355], -74);
    let sum = add(sum, x[367], 40);
    let sum = add(sum, x[371], -23);
    let sum = add(sum, x[380], -40);
    let sum = add(sum, x[388], 102);
    let sum = add(sum, x[396], -68);
    let sum = add(sum, x[406], -83);
    let sum = add(sum, x[411], -11);
    let sum = add(sum, x[421], 85);
    let sum = add(sum, x[426], -16);
    let sum = add(sum, x[439], 120);
    let sum = add(sum, x[443], 84);
    let sum = add(sum, x[450], 120);
    let sum = add(sum, x[460], -25);
    let sum = add(sum, x[469], -63);
    let sum = add(sum, x[475], 57);
    let sum = add(sum, x[486], 62);
    let sum = add(sum, x[491], 58);
    let sum = add(sum, x[502], -94);
    let sum = add(sum, x[504], 6);
    core::hint::black_box(());
    let sum = add(sum, x[512], 29);
    let sum = add(sum, x[523], -71);
    let sum = add(sum, x[530], 96);
    let sum = add(sum, x[542], -44);
    let sum = add(sum, x[547], 19);
    let sum = add(sum, x[557], -43);
    let sum = add(sum, x[560], 39);
    let sum = add(sum, x[575], 66);
    let sum = add(sum, x[582], 87);
    let sum = add(sum, x[591], -120);
    let sum = add(sum, x[596], 70);
    let sum = add(sum, x[602], -62);
    let sum = add(sum, x[610], -26);
    let sum = add(sum, x[617], 11);
    let sum = add(sum, x[630], -63);
    let sum = add(sum, x[635], 36);
    let sum = add(sum, x[645], -90);
    let sum = add(sum, x[655], 10);
    let sum = add(sum, x[660], -49);
    let sum = add(sum, x[670], 66);
    let sum = add(sum, x[676], 58);
    let sum = add(sum, x[686], -77);
    let sum = add(sum, x[690], -60);
    let sum = add(sum, x[702], 21);
    let sum = add(sum, x[711], -19);
    let sum = add(sum, x[716], 60);
    sum
}

#[inline(never)]
fn row_1_4(x: &[u8; 784]) -> i32 {
    let sum = 0;
    let sum = add(sum, x[6], -73);
    let sum = add(sum, x[13], -117);
    let sum = add(sum, x[19], 97);
    let sum = add(sum, x[26], -118);
    let sum = add(sum, x[34], 61);
    let sum = add(sum, x[42], -76);
    let sum = add(sum, x[49], -13);
    let sum = add(sum, x[57], -41);
    let sum = add(sum, x[71], -35);
    let sum = add(sum, x[77], -127);
    let sum = add(sum, x[82], 12);
    let sum = add(sum, x[92], -119);
    let sum = add(sum, x[103], 42);
    let sum = add(sum, x[108], 59);
    let sum = add(sum, x[112], -23);
    let sum = add(sum, x[127], 52);
    let sum = add(sum, x[134], -18);
    let sum = add(sum, x[142], -3);
    let sum = add(sum, x[151], -4);
    let sum = add(sum, x[154], -114);
    let sum = add(sum, x[164], 106);
    let sum = add(sum, x[169], -115);
    let sum = add(sum, x[180], 31);
    let sum = add(sum, x[184], 95);
    let sum = add(sum, x[192], 86);
    let sum = add(sum, x[207], 83);
    let sum = add(sum, x[208], -71);
    let sum = add(sum, x[221], 28);
    let sum = add(sum, x[226], -57);
    let sum = add(sum, x[234], -87);
    let sum = add(sum, x[243], -114);
    let sum = add(sum, x[249], 87);
    let sum = add(sum, x[261], -59);
    let sum = add(sum, x[264], 90);
    let sum = add(sum, x[276], -18);
    let sum = add(sum, x[285], -95);
    let sum = add(sum, x[293], 35);
    let sum = add(sum, x[297], -50);
    let sum = add(sum, x[304], 81);
    let sum = add(sum, x[316], 20);
    let sum = add(sum, x[323], -4);
    let sum = add(sum, x[331], -120);
    let sum = add(sum, x[338], -20);
    let sum = add(sum, x[344], 52);
    let sum = add(sum, x[357], -38);
    let sum = add(sum, x[362], 117);
    let sum = add(sum, x[368], 8);
    let sum = add(sum, x[379], 61);
    let sum = add(sum, x[387], -120);
    let sum = add(sum, x[395], -78);
    let sum = add(sum, x[406], -119);
    let sum = add(sum, x[411], 90);
    let sum = add(sum, x[418], 22);
    let sum = add(sum, x[427], -100);
    let sum = add(sum, x[435], 110);
    let sum = add(sum, x[443], 97);
    let sum = add(sum, x[451], -112);
    let sum = add(sum, x[460], 117);
    let sum = add(sum, x[465], 24);
    let sum = add(sum, x[477], -33);
    let sum = add(sum, x[486], -28);
    let sum = add(sum, x[492], 71);
    let sum = add(sum, x[500], -101);
    let sum = add(sum, x[511], -71);
    core::hint::black_box(());
    let sum = add(sum, x[516], -111);
    let sum = add(sum, x[522], -93);
    let sum = add(sum, x[533], -101);
    let sum = add(sum, x[540], 88);
    let sum = add(sum, x[546], -122);
    let sum = add(sum, x[552], 81);
    let sum = add(sum, x[566], 67);
    let sum = add(sum, x[571], -40);
    let sum = add(sum, x[577], 5);
    let sum = add(sum, x[584], 51);
    let sum = add(sum, x[596], -72);
    let sum = add(sum, x[607], 47);
    let sum = add(sum, x[613], -117);
    let sum = add(sum, x[617], 73);
    let sum = add(sum, x[629], -75);
    let sum = add(sum, x[637], -41);
    let sum = add(sum, x[645], 78);
    let sum = add(sum, x[653], 105);
    let sum = add(sum, x[660], 113);
    let sum = add(sum, x[670], -96);
    let sum = add(sum, x[675], 55);
    let sum = add(sum, x[685], -71);
    let sum = add(sum, x[693], 56);
    let sum = add(sum, x[702], 116);
    let sum = add(sum, x[704], -20);
    let sum = add(sum, x[714], 84);
    sum
}

#[inline(never)]
fn row_1_5(x: &[u8; 784]) -> i32 {
    let sum = 0;
    let sum = add(sum, x[3], -66);
    let sum = add(sum, x[14], -6);
    let sum = add(sum, x[18], -72);
    let sum = add(sum, x[29], -12);
    let sum = add(sum, x[34], -77);
    let sum = add(sum, x[43], -48);
    let sum = add(sum, x[52], -36);
    let sum = add(sum, x[63], -107);
    let sum = add(sum, x[68], -100);
    let sum = add(sum, x[75], -28);
    let sum = add(sum, x[84], 84);
    let sum = add(sum, x[92], 60);
    let sum = add(sum, x[96], -18);
    let sum = add(sum, x[111], -78);
    let sum = add(sum, x[112], -82);
    let sum = add(sum, x[124], 3);
    let sum = add(sum, x[129], 24);
    let sum = add(sum, x[140], -17);
    let sum = add(sum, x[149], -85);
    let sum = add(sum, x[155], -85);
    let sum = add(sum, x[164], 8);
    let sum = add(sum, x[173], -28);
    let sum = add(sum, x[177], 71);
    let sum = add(sum, x[191], 7);
    let sum = add(sum, x[193], 35);
    let sum = add(sum, x[207], 8);
    let sum = add(sum, x[211], 126);
    let sum = add(sum, x[217], -107);
    let sum = add(sum, x[225], 95);
    let sum = add(sum, x[233], -1);
    let sum = add(sum, x[245], -83);
    let sum = add(sum, x[252], -29);
    let sum = add(sum, x[261], -26);
    let sum = add(sum, x[271], -90);
    let sum = add(sum, x[273], -116);
    let sum = add(sum, x[281], -4);
    let sum = add(sum, x[292], 48);
    let sum = add(sum, x[299], 63);
    let sum = add(sum, x[309], -127);
    let sum = add(sum, x[315], 54);
    let sum = add(sum, x[321], -60);
    let sum = add(sum, x[330], -23);
    let sum = add(sum, x[339], -78);
    let sum = add(sum, x[348], -44);
    let sum = add(sum, x[356], 103);
    let sum = add(sum, x[367], -16);
    let sum = add(sum, x[373], 13);
    let sum = add(sum, x[378], -60);
    let sum = add(sum, x[384], -83);
    let sum = add(sum, x[395], 99);
    let sum = add(sum, x[401], 69);
    let sum = add(sum, x[412], 91);
    let sum = add(sum, x[419], -41);
    let sum = add(sum, x[425], 110);
    let sum = add(sum, x[435], -47);
    let sum = add(sum, x[443], 82);
    let sum = add(sum, x[451], 115);
    let sum = add(sum, x[458], 125);
    let sum = add(sum, x[469], 21);
    let sum = add(sum, x[479], 58);
    let sum = add(sum, x[484], -38);
    let sum = add(sum, x[492], 58);
    let sum = add(sum, x[497], -4);
    let sum = add(sum, x[506], -90);
    core::hint::black_box(());
    let sum = add(sum, x[517], 115);
    let sum = add(sum, x[521], -31);
    let sum = add(sum, x[530], -93);
    let sum = add(sum, x[543], -94);
    let sum = add(sum, x[546], 25);
    let sum = add(sum, x[554], -54);
    let sum = add(sum, x[560], -105);
    let sum = add(sum, x[574], 71);
    let sum = add(sum, x[582], 110);
    let sum = add(sum, x[590], 74);
    let sum = add(sum, x[594], -11);
    let sum = add(sum, x[607], -126);
    let sum = add(sum, x[614], 117);
    let sum = add(sum, x[620], 101);
    let sum = add(sum, x[627], -50);
    let sum = add(sum, x[638], 72);
    let sum = add(sum, x[647], -16);
    let sum = add(sum, x[651], -114);
    let sum = add(sum, x[659], 64);
    let sum = add(sum, x[666], 43);
    let sum = add(sum, x[672], 105);
    let sum = add(sum, x[684], 67);
    let sum = add(sum, x[688], -50);
    let sum = add(sum, x[701], -124);
    let sum = add(sum, x[711], 99);
    let sum = add(sum, x[717], -94);
    sum
}

#[inline(never)]
fn row_1_6(x: &[u8; 784]) -> i32 {
    let sum = 0;
    let sum = add(sum, x[5], 28);
    let sum = add(sum, x[15], 110);
    let sum = add(sum, x[17], -95);
    let sum = add(sum, x[31], -122);
    let sum = add(sum, x[33], 38);
    let sum = add(sum, x[44], -32);
    let sum = add(sum, x[50], 6);
    let sum = add(sum, x[56], -103);
    let sum = add(sum, x[66], 7);
    let sum = add(sum, x[74], 80);
    let sum = add(sum, x[80], 5);
    let sum = add(sum, x[88], 111);
    let sum = add(sum, x[103], -2);
    let sum = add(sum, x[106], 18);
    let sum = add(sum, x[118], 90);
    let sum = add(sum, x[120], 3);
    let sum = add(sum, x[128], -85);
    let sum = add(sum, x[138], -77);
    let sum = add(sum, x[147], 51);
    let sum = add(sum, x[156], -46);
    let sum = add(sum, x[162], -51);
    let sum = add(sum, x[172], 61);
    let sum = add(sum, x[183], -74);
    let sum = add(sum, x[190], 36);
    let sum = add(sum, x[199], 29);
    let sum = add(sum, x[206], 85);
    let sum = add(sum, x[209], -57);
    let sum = add(sum, x[221], -61);
    let sum = add(sum, x[231], 1);
    let sum = add(sum, x[239], 39);
    let sum = add(sum, x[245], -115);
    let sum = add(sum, x[252], -78);
    let sum = add(sum, x[258], -6);
    let sum = add(sum, x[270], -49);
    let sum = add(sum, x[279], -112);
    let sum = add(sum, x[283], 21);
    let sum = add(sum, x[293], -39);
    let sum = add(sum, x[296], -38);
    let sum = add(sum, x[310], 57);
    let sum = add(sum, x[313], -98);
    let sum = add(sum, x[321], 47);
    let sum = add(sum, x[335], -85);
    let sum = add(sum, x[339], 119);
    let sum = add(sum, x[348], 104);
    let sum = add(sum, x[353], 12);
    let sum = add(sum, x[364], -16);
    let sum = add(sum, x[373], 49);
    let sum = add(sum, x[383], -104);
    let sum = add(sum, x[390], -92);
    let sum = add(sum, x[395], 98);
    let sum = add(sum, x[402], -89);
    let sum = add(sum, x[413], -7);
    let sum = add(sum, x[418], 83);
    let sum = add(sum, x[427], 46);
    let sum = add(sum, x[435], -23);
    let sum = add(sum, x[443], 119);
    let sum = add(sum, x[452], 47);
    let sum = add(sum, x[459], 123);
    let sum = add(sum, x[470], -79);
    let sum = add(sum, x[477], 100);
    let sum = add(sum, x[484], -15);
    let sum = add(sum, x[495], 49);
    let sum = add(sum, x[498], 72);
    let sum = add(sum, x[509], 42);
    core::hint::black_box(());
    let sum = add(sum, x[513], -17);
    let sum = add(sum, x[520], 6);
    let sum = add(sum, x[532], 54);
    let sum = add(sum, x[537], -35);
    let sum = add(sum, x[545], -9);
    let sum = add(sum, x[554], 74);
    let sum = add(sum, x[561], 97);
    let sum = add(sum, x[570], -90);
    let sum = add(sum, x[581], 15);
    let sum = add(sum, x[584], 121);
    let sum = add(sum, x[597], 6);
    let sum = add(sum, x[602], -73);
    let sum = add(sum, x[614], -107);
    let sum = add(sum, x[622], -79);
    let sum = add(sum, x[630], 95);
    let sum = add(sum, x[634], -110);
    let sum = add(sum, x[642], -21);
    let sum = add(sum, x[648], -19);
    let sum = add(sum, x[662], -27);
    let sum = add(sum, x[666], -23);
    let sum = add(sum, x[679], -21);
    let sum = add(sum, x[680], 58);
    let sum = add(sum, x[688], 25);
    let sum = add(sum, x[700], 77);
    let sum = add(sum, x[711], -113);
    let sum = add(sum, x[716], -68);
    sum
}

#[inline(never)]
fn row_1_7(x: &[u8; 784]) -> i32 {
    let sum = 0;
    let sum = add(sum, x[6], 63);
    let sum = add(sum, x[13], -59);
    let sum = add(sum, x[18], -9);
    let sum = add(sum, x[26], -123);
    let sum = add(sum, x[38], -69);
    let sum = add(sum, x[41], -93);
    let sum = add(sum, x[51], 99);
    let sum = add(sum, x[56], 127);
    let sum = add(sum, x[68], -4);
    let sum = add(sum, x[73], 38);
    let sum = add(sum, x[80], -43);
    let sum = add(sum, x[94], 56);
    let sum = add(sum, x[99], -62);
    let sum = add(sum, x[104], -65);
    let sum = add(sum, x[113], -8);
    let sum = add(sum, x[124], 103);
    let sum = add(sum, x[132], 38);
    let sum = add(sum, x[137], 100);
    let sum = add(sum, x[147], 44);
    let sum = add(sum, x[158], -73);
    let sum = add(sum, x[167], 115);
    let sum = add(sum, x[174], -99);
    let sum = add(sum, x[181], -108);
    let sum = add(sum, x[190], 102);
    let sum = add(sum, x[193], 103);
    let sum = add(sum, x[200], -38);
    let sum = add(sum, x[211], 60);
    let sum = add(sum, x[219], 78);
    let sum = add(sum, x[228], -34);
    let sum = add(sum, x[232], 13);
    let sum = add(sum, x[242], 101);
    let sum = add(sum, x[248], 37);
    let sum = add(sum, x[259], -94);
    let sum = add(sum, x[271], 117);
    let sum = add(sum, x[278], -45);
    let sum = add(sum, x[287], -97);
    let sum = add(sum, x[288], 44);
    let sum = add(sum, x[303], -83);
    let sum = add(sum, x[309], 39);
    let sum = add(sum, x[312], 53);
    let sum = add(sum, x[323], -55);
    let sum = add(sum, x[331], -23);
    let sum = add(sum, x[343], -123);
    let sum = add(sum, x[346], -47);
    let sum = add(sum, x[352], -74);
    let sum = add(sum, x[360], 62);
    let sum = add(sum, x[372], -51);
    let sum = add(sum, x[379], 36);
    let sum = add(sum, x[391], -52);
    let sum = add(sum, x[394], -92);
    let sum = add(sum, x[406], 20);
    let sum = add(sum, x[414], 93);
    let sum = add(sum, x[417], -18);
    let sum = add(sum, x[425], -47);
    let sum = add(sum, x[437], -81);
    let sum = add(sum, x[443], -47);
    let sum = add(sum, x[454], -67);
    let sum = add(sum, x[463], 126);
    let sum = add(sum, x[471], 81);
    let sum = add(sum, x[475], -90);
    let sum = add(sum, x[486], 54);
    let sum = add(sum, x[492], 125);
    let sum = add(sum, x[498], -109);
    let sum = add(sum, x[504], -120);
    core::hint::black_box(());
    let sum = add(sum, x[513], -64);
    let sum = add(sum, x[524], -115);
    let sum = add(sum, x[530], 121);
    let sum = add(sum, x[536], 75);
    let sum = add(sum, x[550], 89);
    let sum = add(sum, x[553], 57);
    let sum = add(sum, x[566], 1);
    let sum = add(sum, x[571], 79);
    let sum = add(sum, x[582], 118);
    let sum = add(sum, x[590], -11);
    let sum = add(sum, x[593], -80);
    let sum = add(sum, x[606], 30);
    let sum = add(sum, x[608], -85);
    let sum = add(sum, x[619], -1);
    let sum = add(sum, x[630], 101);
    let sum = add(sum, x[639], 99);
    let sum = add(sum, x[643], 114);
    let sum = add(sum, x[650], 55);
    let sum = add(sum, x[662], 31);
    let sum = add(sum, x[669], 64);
    let sum = add(sum, x[672], -64);
    let sum = add(sum, x[681], 80);
    let sum = add(sum, x[690], -123);
    let sum = add(sum, x[699], -93);
    let sum = add(sum, x[709], 13);
    let sum = add(sum, x[714], -44);
    sum
}

#[inline(never)]
fn row_1_8(x: &[u8; 784]) -> i32 {
    let sum = 0;
    let sum = add(sum, x[0], -45);
    let sum = add(sum, x[15], 80);
    let sum = add(sum, x[16], 79);
    let sum = add(sum, x[31], 83);
    let sum = add(sum, x[37], 84);
    let sum = add(sum, x[41], -86);
    let sum = add(sum, x[52], 88);
    let sum = add(sum, x[59], 104);
    let sum = add(sum, x[66], -44);
    let sum = add(sum, x[78], 103);
    let sum = add(sum, x[83], -23);
    let sum = add(sum, x[88], 127);
    let sum = add(sum, x[102], -2);
    let sum = add(sum, x[108], 55);
    let sum = add(sum, x[119], 112);
    let sum = add(sum, x[120], 75);
    let sum = add(sum, x[130], 116);
    let sum = add(sum, x[140], 78);
    let sum = add(sum, x[148], -100);
    let sum = add(sum, x[158], 85);
    let sum = add(sum, x[163], -103);
    let sum = add(sum, x[169], -98);
    let sum = add(sum, x[176], -71);
    let sum = add(sum, x[190], -17);
    let sum = add(sum, x[192], 63);
    let sum = add(sum, x[204], -121);
    let sum = add(sum, x[212], 93);
    let sum = add(sum, x[219], -114);
    let sum = add(sum, x[231], 120);
    let sum = add(sum, x[238], 101);
    let sum = add(sum, x[242], 15);
    let sum = add(sum, x[249], -53);
    let sum = add(sum, x[260], -122);
    let sum = add(sum, x[264], 61);
    let sum = add(sum, x[276], -63);
    let sum = add(sum, x[281], 40);
    let sum = add(sum, x[288], -35);
    let sum = add(sum, x[296], 13);
    let sum = add(sum, x[304], -53);
    let sum = add(sum, x[315], -28);
    let sum = add(sum, x[324], -121);
    let sum = add(sum, x[331], -41);
    let sum = add(sum, x[342], 92);
    let sum = add(sum, x[351], 101);
    let sum = add(sum, x[354], 74);
    let sum = add(sum, x[367], 74);
    let sum = add(sum, x[374], 87);
    let sum = add(sum, x[381], 45);
    let sum = add(sum, x[385], -105);
    let sum = add(sum, x[397], -55);
    let sum = add(sum, x[405], -73);
    let sum = add(sum, x[412], 15);
    let sum = add(sum, x[417], -71);
    let sum = add(sum, x[425], 32);
    let sum = add(sum, x[438], -39);
    let sum = add(sum, x[441], 3);
    let sum = add(sum, x[452], -44);
    let sum = add(sum, x[460], 75);
    let sum = add(sum, x[468], 69);
    let sum = add(sum, x[475], -80);
    let sum = add(sum, x[482], 74);
    let sum = add(sum, x[492], 64);
    let sum = add(sum, x[500], -18);
    let sum = add(sum, x[505], 119);
    core::hint::black_box(());
    let sum = add(sum, x[515], -103);
    let sum = add(sum, x[520], -113);
    let sum = add(sum, x[533], 119);
    let sum = add(sum, x[541], 25);
    let sum = add(sum, x[546], 4);
    let sum = add(sum, x[554], -83);
    let sum = add(sum, x[564], 21);
    let sum = add(sum, x[571], -29);
    let sum = add(sum, x[580], -26);
    let sum = add(sum, x[591], 102);
    let sum = add(sum, x[592], -1);
    let sum = add(sum, x[607], -59);
    let sum = add(sum, x[612], -114);
    let sum = add(sum, x[620], -51);
    let sum = add(sum, x[625], -82);
    let sum = add(sum, x[639], 18);
    let sum = add(sum, x[641], 72);
    let sum = add(sum, x[654], 115);
    let sum = add(sum, x[663], 55);
    let sum = add(sum, x[665], -1);
    let sum = add(sum, x[678], 93);
    let sum = add(sum, x[680], -93);
    let sum = add(sum, x[694], -32);
    let sum = add(sum, x[697], -122);
    let sum = add(sum, x[706], -36);
    let sum = add(sum, x[713], -119);
    sum
}

#[inline(never)]
fn row_1_9(x: &[u8; 784]) -> i32 {
    let sum = 0;
    let sum = add(sum, x[0], -54);
    let sum = add(sum, x[13], -126);
    let sum = add(sum, x[20], 89);
    let sum = add(sum, x[30], -15);
    let sum = add(sum, x[35], 65);
    let sum = add(sum, x[42], 90);
    let sum = add(sum, x[52], 85);
    let sum = add(sum, x[61], -92);
    let sum = add(sum, x[69], 67);
    let sum = add(sum, x[77], 3);
    let sum = add(sum, x[85], -67);
    let sum = add(sum, x[92], -66);
    let sum = add(sum, x[99], 102);
    let sum = add(sum, x[104], -19);
    let sum = add(sum, x[112], -40);
    let sum = add(sum, x[123], 71);
    let sum = add(sum, x[131], -118);
    let sum = add(sum, x[136], 57);
    let sum = add(sum, x[151], -32);
    let sum = add(sum, x[155], 73);
    let sum = add(sum, x[161], 103);
    let sum = add(sum, x[168], 99);
    let sum = add(sum, x[183], 67);
    let sum = add(sum, x[190], -1);
    let sum = add(sum, x[194], 7);
    let sum = add(sum, x[202], -58);
    let sum = add(sum, x[210], 84);
    let sum = add(sum, x[217], -55);
    let sum = add(sum, x[224], 84);
    let sum = add(sum, x[232], -49);
    let sum = add(sum, x[242], -101);
    let sum = add(sum, x[251], -19);
    let sum = add(sum, x[259], -89);
    let sum = add(sum, x[265], 67);
    let sum = add(sum, x[274], 28);
    let sum = add(sum, x[282], -103);
    let sum = add(sum, x[288], 53);
    let sum = add(sum, x[299], -20);
    let sum = add(sum, x[311], -19);
    let sum = add(sum, x[314], -83);
    let sum = add(sum, x[322], 90);
    let sum = add(sum, x[334], -119);
    let sum = add(sum, x[343], 9);
    let sum = add(sum, x[344], 10);
    let sum = add(sum, x[356], -30);
    let sum = add(sum, x[362], 54);
    let sum = add(sum, x[373], -108);
    let sum = add(sum, x[383], 26);
    let sum = add(sum, x[385], 81);
    let sum = add(sum, x[393], -118);
    let sum = add(sum, x[405], -55);
    let sum = add(sum, x[409], -39);
    let sum = add(sum, x[418], 15);
    let sum = add(sum, x[428], -16);
    let sum = add(sum, x[439], -86);
    let sum = add(sum, x[447], 24);
    let sum = add(sum, x[449], -58);
    let sum = add(sum, x[461], -118);
    let sum = add(sum, x[465], 27);
    let sum = add(sum, x[474], 5);
    let sum = add(sum, x[483], -113);
    let sum = add(sum, x[493], -45);
    let sum = add(sum, x[497], 36);
    let sum = add(sum, x[504], 14);
    core::hint::black_box(());
    let sum = add(sum, x[514], -17);
    let sum = add(sum, x[523], 92);
    let sum = add(sum, x[532], -60);
    let sum = add(sum, x[543], -42);
    let sum = add(sum, x[544], -74);
    let sum = add(sum, x[557], 79);
    let sum = add(sum, x[564], -28);
    let sum = add(sum, x[575], 126);
    let sum = add(sum, x[578], 105);
    let sum = add(sum, x[584], 70);
    let sum = add(sum, x[597], 24);
    let sum = add(sum, x[606], -123);
    let sum = add(sum, x[615], 73);
    let sum = add(sum, x[622], 28);
    let sum = add(sum, x[624], 36);
    let sum = add(sum, x[635], -44);
    let sum = add(sum, x[645], 39);
    let sum = add(sum, x[649], 77);
    let sum = add(sum, x[658], -10);
    let sum = add(sum, x[667], -13);
    let sum = add(sum, x[678], 53);
    let sum = add(sum, x[680], 50);
    let sum = add(sum, x[693], 19);
    let sum = add(sum, x[696], -111);
    let sum = add(sum, x[709], -39);
    let sum = add(sum, x[712], 45);
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
