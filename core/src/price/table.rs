//! Generated: prices in thousandths of an instruction, code and stack in bytes, one entry for each of `Core::ALL`.
//!
//! Made by `cargo ci costs (rustc 1.95.0)`.
//! Do not edit: run that again.
//!
//! - a prediction: prediction, byte, number, own factor, bias, relu, sum, sign
//! - a layer: layer, row, first weight, weight, group, window, output, short row, copied byte

use super::{Frame, Price, Prices};

pub(super) static TABLE: [Prices; 6] = [
    // Cortex-M0
    Prices {
        startup: 352,
        floats: Frame { instructions: [0, 0, 0, 0, 0, 0, 0, 106_915], file: 11428, module: 0 },
        integers: Frame {
            instructions: [95_191, 57_551, 50_382, 8_763, 5_148, 5_180, 75_565, 7_637],
            file: 20060,
            module: 6204,
        },
        kernels: [
            // f32 rows
            Price {
                instructions: [0, 124_619, 140_958, 268_287, 138_724, 0, 0, 0, 0],
                code: 6180,
                stack: 2804,
            },
            // f32 dense
            Price { instructions: [0, 93_869, 0, 228_488, 899_766, 0, 0, 0, 0], code: 4292, stack: 228 },
            // dense
            Price { instructions: [243_135, 15_546, 0, 15_726, 33_539, 0, 0, 0, 0], code: 560, stack: 5052 },
            // dense, used inputs
            Price { instructions: [209_176, 40_941, 0, 12_988, 0, 0, 0, 0, 0], code: 680, stack: 5052 },
            // bitmask
            Price {
                instructions: [246_624, 27_869, 31_639, 33_055, 9_762, 0, 0, 0, 0],
                code: 1344,
                stack: 5052,
            },
            // bitmask, used inputs
            Price {
                instructions: [227_018, 30_674, 39_041, 42_126, 11_770, 0, 0, 0, 0],
                code: 1480,
                stack: 5052,
            },
            // rows
            Price { instructions: [129_734, 59_570, 15_629, 12_972, 0, 0, 0, 0, 0], code: 976, stack: 5052 },
            // distances
            Price {
                instructions: [145_081, 29_438, 29_156, 24_967, 23_000, 0, 0, 0, 0],
                code: 1028,
                stack: 5052,
            },
            // blocks
            Price {
                instructions: [13_199, 42_986, 0, 5_620, 13_317, 120_026, 2_996, 212_433, 1_228],
                code: 1140,
                stack: 5052,
            },
            // constant fan-in
            Price { instructions: [391_774, 48_854, 0, 13_350, 13_023, 0, 0, 0, 0], code: 856, stack: 5052 },
        ],
    },
    // Cortex-M3
    Prices {
        startup: 1196,
        floats: Frame { instructions: [0, 0, 0, 0, 0, 0, 0, 76_786], file: 11232, module: 0 },
        integers: Frame {
            instructions: [64_077, 9_275, 7_966, 6_749, 4_798, 4_521, 66_726, 7_047],
            file: 19272,
            module: 5597,
        },
        kernels: [
            // f32 rows
            Price {
                instructions: [0, 101_206, 72_941, 156_367, 81_669, 0, 0, 0, 0],
                code: 4640,
                stack: 2224,
            },
            // f32 dense
            Price { instructions: [22_558, 0, 0, 142_000, 530_785, 0, 0, 0, 0], code: 3916, stack: 168 },
            // dense
            Price { instructions: [144_950, 14_236, 0, 6_162, 14_123, 0, 0, 0, 0], code: 571, stack: 4380 },
            // dense, used inputs
            Price { instructions: [119_322, 28_598, 0, 7_998, 0, 0, 0, 0, 0], code: 783, stack: 4380 },
            // bitmask
            Price {
                instructions: [155_873, 17_435, 14_887, 14_031, 6_712, 0, 0, 0, 0],
                code: 1311,
                stack: 4380,
            },
            // bitmask, used inputs
            Price {
                instructions: [148_645, 23_271, 16_296, 17_048, 7_817, 0, 0, 0, 0],
                code: 1559,
                stack: 4380,
            },
            // rows
            Price { instructions: [114_530, 37_777, 8_477, 7_992, 0, 0, 0, 0, 0], code: 995, stack: 4380 },
            // distances
            Price {
                instructions: [129_436, 17_773, 20_847, 18_991, 12_438, 0, 0, 0, 0],
                code: 1059,
                stack: 4380,
            },
            // blocks
            Price {
                instructions: [74_030, 26_249, 0, 3_987, 7_262, 75_552, 1_619, 165_889, 1_078],
                code: 1231,
                stack: 4380,
            },
            // constant fan-in
            Price { instructions: [125_978, 35_124, 0, 8_049, 7_968, 0, 0, 0, 0], code: 807, stack: 4380 },
        ],
    },
    // Cortex-M4F
    Prices {
        startup: 1224,
        floats: Frame { instructions: [21_852, 0, 0, 0, 0, 0, 15_437, 15_231], file: 10748, module: 0 },
        integers: Frame {
            instructions: [65_648, 8_386, 7_157, 7_515, 4_901, 4_389, 69_787, 6_732],
            file: 19452,
            module: 5589,
        },
        kernels: [
            // f32 rows
            Price { instructions: [63_974, 42_774, 9_771, 10_941, 441, 0, 0, 0, 0], code: 3976, stack: 2136 },
            // f32 dense
            Price { instructions: [27_234, 28_686, 0, 6_392, 13_331, 0, 0, 0, 0], code: 2048, stack: 84 },
            // dense
            Price { instructions: [136_676, 14_036, 0, 7_172, 14_141, 0, 0, 0, 0], code: 591, stack: 4388 },
            // dense, used inputs
            Price { instructions: [117_716, 27_562, 0, 7_998, 0, 0, 0, 0, 0], code: 791, stack: 4388 },
            // bitmask
            Price {
                instructions: [154_384, 17_176, 14_999, 14_033, 6_726, 0, 0, 0, 0],
                code: 1311,
                stack: 4388,
            },
            // bitmask, used inputs
            Price {
                instructions: [145_632, 23_220, 16_303, 17_055, 7_808, 0, 0, 0, 0],
                code: 1567,
                stack: 4388,
            },
            // rows
            Price { instructions: [112_270, 36_803, 8_523, 7_990, 0, 0, 0, 0, 0], code: 999, stack: 4388 },
            // distances
            Price {
                instructions: [127_642, 17_659, 20_920, 18_987, 12_433, 0, 0, 0, 0],
                code: 1071,
                stack: 4388,
            },
            // blocks
            Price {
                instructions: [71_703, 30_307, 0, 3_990, 7_243, 74_545, 1_610, 166_866, 1_076],
                code: 1247,
                stack: 4388,
            },
            // constant fan-in
            Price { instructions: [122_941, 34_156, 0, 8_050, 7_961, 0, 0, 0, 0], code: 803, stack: 4388 },
        ],
    },
    // Cortex-M7
    Prices {
        startup: 1224,
        floats: Frame { instructions: [21_852, 0, 0, 0, 0, 0, 15_437, 15_231], file: 10748, module: 0 },
        integers: Frame {
            instructions: [65_648, 8_386, 7_157, 7_515, 4_901, 4_389, 69_787, 6_732],
            file: 19452,
            module: 5589,
        },
        kernels: [
            // f32 rows
            Price { instructions: [63_974, 42_774, 9_771, 10_941, 441, 0, 0, 0, 0], code: 3976, stack: 2136 },
            // f32 dense
            Price { instructions: [27_234, 28_686, 0, 6_392, 13_331, 0, 0, 0, 0], code: 2048, stack: 84 },
            // dense
            Price { instructions: [136_676, 14_036, 0, 7_172, 14_141, 0, 0, 0, 0], code: 591, stack: 4388 },
            // dense, used inputs
            Price { instructions: [117_716, 27_562, 0, 7_998, 0, 0, 0, 0, 0], code: 791, stack: 4388 },
            // bitmask
            Price {
                instructions: [154_384, 17_176, 14_999, 14_033, 6_726, 0, 0, 0, 0],
                code: 1311,
                stack: 4388,
            },
            // bitmask, used inputs
            Price {
                instructions: [145_632, 23_220, 16_303, 17_055, 7_808, 0, 0, 0, 0],
                code: 1567,
                stack: 4388,
            },
            // rows
            Price { instructions: [112_270, 36_803, 8_523, 7_990, 0, 0, 0, 0, 0], code: 999, stack: 4388 },
            // distances
            Price {
                instructions: [127_642, 17_659, 20_920, 18_987, 12_433, 0, 0, 0, 0],
                code: 1071,
                stack: 4388,
            },
            // blocks
            Price {
                instructions: [71_703, 30_307, 0, 3_990, 7_243, 74_545, 1_610, 166_866, 1_076],
                code: 1247,
                stack: 4388,
            },
            // constant fan-in
            Price { instructions: [122_941, 34_156, 0, 8_050, 7_961, 0, 0, 0, 0], code: 803, stack: 4388 },
        ],
    },
    // Cortex-M33
    Prices {
        startup: 2184,
        floats: Frame { instructions: [21_840, 0, 0, 0, 0, 0, 15_412, 15_240], file: 10736, module: 0 },
        integers: Frame {
            instructions: [64_123, 9_274, 7_967, 6_750, 4_795, 4_526, 66_708, 7_058],
            file: 19460,
            module: 5594,
        },
        kernels: [
            // f32 rows
            Price { instructions: [63_971, 40_791, 9_747, 10_936, 461, 0, 0, 0, 0], code: 3964, stack: 2136 },
            // f32 dense
            Price { instructions: [27_246, 28_686, 0, 6_392, 13_331, 0, 0, 0, 0], code: 2048, stack: 84 },
            // dense
            Price { instructions: [144_788, 14_240, 0, 6_155, 14_124, 0, 0, 0, 0], code: 590, stack: 4388 },
            // dense, used inputs
            Price { instructions: [119_301, 27_598, 0, 7_998, 0, 0, 0, 0, 0], code: 794, stack: 4388 },
            // bitmask
            Price {
                instructions: [155_824, 17_436, 14_887, 14_031, 6_712, 0, 0, 0, 0],
                code: 1310,
                stack: 4388,
            },
            // bitmask, used inputs
            Price {
                instructions: [148_572, 23_263, 16_310, 17_048, 7_817, 0, 0, 0, 0],
                code: 1566,
                stack: 4388,
            },
            // rows
            Price { instructions: [114_476, 36_771, 8_484, 7_992, 0, 0, 0, 0, 0], code: 1002, stack: 4388 },
            // distances
            Price {
                instructions: [129_396, 17_777, 20_845, 18_991, 12_465, 0, 0, 0, 0],
                code: 1074,
                stack: 4388,
            },
            // blocks
            Price {
                instructions: [73_714, 27_250, 0, 3_988, 7_254, 75_687, 1_619, 165_994, 1_078],
                code: 1246,
                stack: 4388,
            },
            // constant fan-in
            Price { instructions: [126_027, 34_117, 0, 8_050, 7_968, 0, 0, 0, 0], code: 802, stack: 4388 },
        ],
    },
    // RV32IMAC
    Prices {
        startup: 650,
        floats: Frame { instructions: [2_721, 0, 0, 0, 0, 0, 5_476, 65_546], file: 10000, module: 0 },
        integers: Frame {
            instructions: [75_334, 14_331, 9_003, 6_429, 5_450, 7_613, 48_523, 8_480],
            file: 17696,
            module: 5265,
        },
        kernels: [
            // f32 rows
            Price {
                instructions: [0, 125_765, 64_310, 157_422, 38_034, 0, 0, 0, 0],
                code: 5300,
                stack: 2456,
            },
            // f32 dense
            Price { instructions: [0, 73_096, 0, 129_349, 482_340, 0, 0, 0, 0], code: 2512, stack: 100 },
            // dense
            Price { instructions: [177_316, 12_472, 0, 9_228, 18_999, 0, 0, 0, 0], code: 491, stack: 4344 },
            // dense, used inputs
            Price { instructions: [143_103, 23_140, 0, 10_996, 0, 0, 0, 0, 0], code: 591, stack: 4344 },
            // bitmask
            Price {
                instructions: [176_672, 10_855, 21_771, 19_037, 5_708, 0, 0, 0, 0],
                code: 887,
                stack: 4344,
            },
            // bitmask, used inputs
            Price {
                instructions: [159_053, 13_881, 23_499, 23_062, 5_802, 0, 0, 0, 0],
                code: 975,
                stack: 4344,
            },
            // rows
            Price { instructions: [141_099, 30_208, 12_729, 10_997, 0, 0, 0, 0, 0], code: 667, stack: 4344 },
            // distances
            Price {
                instructions: [156_875, 16_204, 14_271, 14_043, 4_292, 0, 0, 0, 0],
                code: 711,
                stack: 4344,
            },
            // blocks
            Price {
                instructions: [0, 44_599, 0, 5_949, 8_349, 126_162, 5_590, 299_532, 1_286],
                code: 875,
                stack: 4344,
            },
            // constant fan-in
            Price { instructions: [139_576, 33_879, 0, 11_051, 10_994, 0, 0, 0, 0], code: 711, stack: 4344 },
        ],
    },
];
