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
        floats: Frame { instructions: [0, 0, 0, 0, 0, 0, 0, 92_534], file: 11428, module: 0 },
        integers: Frame {
            instructions: [91_983, 57_949, 49_844, 11_037, 3_715, 6_090, 47_429, 9_533],
            file: 20060,
            module: 6204,
        },
        kernels: [
            // f32 rows
            Price { instructions: [0, 280_515, 0, 241_874, 224_037, 0, 0, 0, 0], code: 6180, stack: 2804 },
            // f32 rows behind a hidden layer
            Price {
                instructions: [304_008, 71_748, 159_006, 0, 741_737, 0, 0, 0, 0],
                code: 6180,
                stack: 2804,
            },
            // f32 dense
            Price { instructions: [0, 74_509, 0, 205_506, 902_726, 0, 0, 0, 0], code: 4292, stack: 228 },
            // dense
            Price { instructions: [258_490, 14_465, 0, 16_731, 33_327, 0, 0, 0, 0], code: 560, stack: 5052 },
            // dense, used inputs
            Price { instructions: [241_644, 37_533, 0, 12_994, 0, 0, 0, 0, 0], code: 680, stack: 5052 },
            // bitmask
            Price {
                instructions: [247_009, 26_509, 34_016, 32_983, 9_763, 0, 0, 0, 0],
                code: 1344,
                stack: 5052,
            },
            // bitmask, used inputs
            Price {
                instructions: [220_249, 28_836, 43_865, 42_093, 11_326, 0, 0, 0, 0],
                code: 1480,
                stack: 5052,
            },
            // rows
            Price { instructions: [141_031, 57_928, 15_457, 13_001, 0, 0, 0, 0, 0], code: 976, stack: 5052 },
            // distances
            Price { instructions: [147_946, 30_236, 27_236, 25_008, 0, 0, 0, 0, 0], code: 1028, stack: 5052 },
            // blocks
            Price {
                instructions: [153_440, 43_180, 0, 5_906, 11_885, 50_741, 0, 165_468, 1_031],
                code: 1140,
                stack: 5052,
            },
            // constant fan-in
            Price { instructions: [405_831, 47_487, 0, 13_239, 13_050, 0, 0, 0, 0], code: 856, stack: 5052 },
        ],
    },
    // Cortex-M3
    Prices {
        startup: 1196,
        floats: Frame { instructions: [0, 0, 0, 0, 0, 0, 0, 72_755], file: 11232, module: 0 },
        integers: Frame {
            instructions: [53_316, 8_830, 7_878, 7_702, 4_028, 5_177, 62_930, 7_931],
            file: 19272,
            module: 5597,
        },
        kernels: [
            // f32 rows
            Price { instructions: [0, 178_913, 0, 140_932, 130_270, 0, 0, 0, 0], code: 4640, stack: 2224 },
            // f32 rows behind a hidden layer
            Price {
                instructions: [208_072, 55_030, 117_092, 0, 462_938, 0, 0, 0, 0],
                code: 4640,
                stack: 2224,
            },
            // f32 dense
            Price {
                instructions: [100_482, 25_299, 0, 131_518, 529_486, 0, 0, 0, 0],
                code: 3916,
                stack: 168,
            },
            // dense
            Price { instructions: [168_874, 12_995, 0, 7_142, 14_024, 0, 0, 0, 0], code: 571, stack: 4380 },
            // dense, used inputs
            Price { instructions: [130_299, 28_624, 0, 7_994, 0, 0, 0, 0, 0], code: 783, stack: 4380 },
            // bitmask
            Price {
                instructions: [155_452, 17_983, 15_294, 14_058, 6_562, 0, 0, 0, 0],
                code: 1311,
                stack: 4380,
            },
            // bitmask, used inputs
            Price {
                instructions: [149_602, 22_781, 18_211, 17_066, 7_575, 0, 0, 0, 0],
                code: 1559,
                stack: 4380,
            },
            // rows
            Price { instructions: [125_062, 36_908, 8_874, 7_993, 0, 0, 0, 0, 0], code: 995, stack: 4380 },
            // distances
            Price { instructions: [134_875, 17_861, 21_077, 18_998, 0, 0, 0, 0, 0], code: 1059, stack: 4380 },
            // blocks
            Price {
                instructions: [111_004, 27_046, 0, 4_025, 7_383, 56_608, 132, 155_566, 1_045],
                code: 1231,
                stack: 4380,
            },
            // constant fan-in
            Price { instructions: [138_320, 34_921, 0, 8_033, 7_996, 0, 0, 0, 0], code: 807, stack: 4380 },
        ],
    },
    // Cortex-M4F
    Prices {
        startup: 1224,
        floats: Frame { instructions: [0, 0, 0, 0, 0, 0, 16_997, 15_511], file: 10748, module: 0 },
        integers: Frame {
            instructions: [53_518, 7_925, 6_960, 8_651, 4_016, 5_196, 62_277, 7_954],
            file: 19452,
            module: 5589,
        },
        kernels: [
            // f32 rows
            Price { instructions: [84_552, 52_421, 0, 9_828, 3_941, 0, 0, 0, 0], code: 3976, stack: 2136 },
            // f32 rows behind a hidden layer
            Price { instructions: [77_981, 39_743, 13_954, 0, 34_619, 0, 0, 0, 0], code: 3976, stack: 2108 },
            // f32 dense
            Price { instructions: [71_583, 26_464, 0, 7_972, 13_186, 0, 0, 0, 0], code: 2048, stack: 84 },
            // dense
            Price { instructions: [169_636, 12_080, 0, 8_167, 14_031, 0, 0, 0, 0], code: 591, stack: 4388 },
            // dense, used inputs
            Price { instructions: [130_958, 27_494, 0, 7_993, 0, 0, 0, 0, 0], code: 791, stack: 4388 },
            // bitmask
            Price {
                instructions: [154_957, 18_103, 15_087, 14_058, 6_564, 0, 0, 0, 0],
                code: 1311,
                stack: 4388,
            },
            // bitmask, used inputs
            Price {
                instructions: [147_800, 22_797, 18_228, 17_074, 7_548, 0, 0, 0, 0],
                code: 1567,
                stack: 4388,
            },
            // rows
            Price { instructions: [124_681, 35_827, 8_894, 7_993, 0, 0, 0, 0, 0], code: 999, stack: 4388 },
            // distances
            Price { instructions: [134_403, 17_799, 21_074, 18_994, 0, 0, 0, 0, 0], code: 1071, stack: 4388 },
            // blocks
            Price {
                instructions: [110_107, 31_101, 0, 4_018, 7_428, 56_436, 23, 156_487, 1_041],
                code: 1247,
                stack: 4388,
            },
            // constant fan-in
            Price { instructions: [137_969, 33_820, 0, 8_032, 7_998, 0, 0, 0, 0], code: 803, stack: 4388 },
        ],
    },
    // Cortex-M7
    Prices {
        startup: 1224,
        floats: Frame { instructions: [0, 0, 0, 0, 0, 0, 16_997, 15_511], file: 10748, module: 0 },
        integers: Frame {
            instructions: [53_518, 7_925, 6_960, 8_651, 4_016, 5_196, 62_277, 7_954],
            file: 19452,
            module: 5589,
        },
        kernels: [
            // f32 rows
            Price { instructions: [84_552, 52_421, 0, 9_828, 3_941, 0, 0, 0, 0], code: 3976, stack: 2136 },
            // f32 rows behind a hidden layer
            Price { instructions: [77_981, 39_743, 13_954, 0, 34_619, 0, 0, 0, 0], code: 3976, stack: 2108 },
            // f32 dense
            Price { instructions: [71_583, 26_464, 0, 7_972, 13_186, 0, 0, 0, 0], code: 2048, stack: 84 },
            // dense
            Price { instructions: [169_636, 12_080, 0, 8_167, 14_031, 0, 0, 0, 0], code: 591, stack: 4388 },
            // dense, used inputs
            Price { instructions: [130_958, 27_494, 0, 7_993, 0, 0, 0, 0, 0], code: 791, stack: 4388 },
            // bitmask
            Price {
                instructions: [154_957, 18_103, 15_087, 14_058, 6_564, 0, 0, 0, 0],
                code: 1311,
                stack: 4388,
            },
            // bitmask, used inputs
            Price {
                instructions: [147_800, 22_797, 18_228, 17_074, 7_548, 0, 0, 0, 0],
                code: 1567,
                stack: 4388,
            },
            // rows
            Price { instructions: [124_681, 35_827, 8_894, 7_993, 0, 0, 0, 0, 0], code: 999, stack: 4388 },
            // distances
            Price { instructions: [134_403, 17_799, 21_074, 18_994, 0, 0, 0, 0, 0], code: 1071, stack: 4388 },
            // blocks
            Price {
                instructions: [110_107, 31_101, 0, 4_018, 7_428, 56_436, 23, 156_487, 1_041],
                code: 1247,
                stack: 4388,
            },
            // constant fan-in
            Price { instructions: [137_969, 33_820, 0, 8_032, 7_998, 0, 0, 0, 0], code: 803, stack: 4388 },
        ],
    },
    // Cortex-M33
    Prices {
        startup: 2184,
        floats: Frame { instructions: [0, 0, 0, 0, 0, 0, 16_974, 15_516], file: 10736, module: 0 },
        integers: Frame {
            instructions: [53_283, 8_828, 7_874, 7_704, 4_029, 5_183, 62_906, 7_936],
            file: 19460,
            module: 5594,
        },
        kernels: [
            // f32 rows
            Price { instructions: [84_512, 50_422, 0, 9_813, 3_992, 0, 0, 0, 0], code: 3964, stack: 2136 },
            // f32 rows behind a hidden layer
            Price { instructions: [78_024, 37_743, 13_936, 0, 34_623, 0, 0, 0, 0], code: 3964, stack: 2104 },
            // f32 dense
            Price { instructions: [71_583, 26_464, 0, 7_972, 13_186, 0, 0, 0, 0], code: 2048, stack: 84 },
            // dense
            Price { instructions: [168_897, 12_995, 0, 7_143, 14_024, 0, 0, 0, 0], code: 590, stack: 4388 },
            // dense, used inputs
            Price { instructions: [130_333, 27_623, 0, 7_994, 0, 0, 0, 0, 0], code: 794, stack: 4388 },
            // bitmask
            Price {
                instructions: [155_511, 17_990, 15_281, 14_058, 6_562, 0, 0, 0, 0],
                code: 1310,
                stack: 4388,
            },
            // bitmask, used inputs
            Price {
                instructions: [149_646, 22_785, 18_206, 17_066, 7_575, 0, 0, 0, 0],
                code: 1566,
                stack: 4388,
            },
            // rows
            Price { instructions: [125_102, 35_900, 8_882, 7_993, 0, 0, 0, 0, 0], code: 1002, stack: 4388 },
            // distances
            Price { instructions: [134_891, 17_864, 21_075, 18_998, 0, 0, 0, 0, 0], code: 1074, stack: 4388 },
            // blocks
            Price {
                instructions: [110_997, 28_047, 0, 4_026, 7_374, 56_613, 126, 155_620, 1_045],
                code: 1246,
                stack: 4388,
            },
            // constant fan-in
            Price { instructions: [138_367, 33_918, 0, 8_033, 7_996, 0, 0, 0, 0], code: 802, stack: 4388 },
        ],
    },
    // RV32IMAC
    Prices {
        startup: 650,
        floats: Frame { instructions: [0, 0, 0, 0, 0, 0, 0, 58_263], file: 10000, module: 0 },
        integers: Frame {
            instructions: [65_557, 14_071, 8_353, 7_035, 5_600, 8_629, 55_697, 8_178],
            file: 17696,
            module: 5265,
        },
        kernels: [
            // f32 rows
            Price {
                instructions: [26_498, 195_016, 0, 140_644, 92_240, 0, 0, 0, 0],
                code: 5300,
                stack: 2456,
            },
            // f32 rows behind a hidden layer
            Price {
                instructions: [244_750, 86_427, 75_215, 0, 417_201, 0, 0, 0, 0],
                code: 5300,
                stack: 2456,
            },
            // f32 dense
            Price { instructions: [0, 65_511, 0, 98_706, 485_328, 0, 0, 0, 0], code: 2512, stack: 100 },
            // dense
            Price { instructions: [193_583, 9_842, 0, 9_323, 19_028, 0, 0, 0, 0], code: 491, stack: 4344 },
            // dense, used inputs
            Price { instructions: [139_970, 23_656, 0, 10_993, 0, 0, 0, 0, 0], code: 591, stack: 4344 },
            // bitmask
            Price {
                instructions: [171_230, 12_509, 20_590, 19_062, 5_586, 0, 0, 0, 0],
                code: 887,
                stack: 4344,
            },
            // bitmask, used inputs
            Price {
                instructions: [170_621, 14_468, 22_365, 23_050, 5_836, 0, 0, 0, 0],
                code: 975,
                stack: 4344,
            },
            // rows
            Price { instructions: [145_606, 29_899, 13_072, 10_992, 0, 0, 0, 0, 0], code: 667, stack: 4344 },
            // distances
            Price { instructions: [151_976, 16_098, 14_938, 14_044, 0, 0, 0, 0, 0], code: 711, stack: 4344 },
            // blocks
            Price {
                instructions: [116_150, 47_357, 0, 5_928, 8_943, 59_076, 1_253, 268_523, 1_220],
                code: 875,
                stack: 4344,
            },
            // constant fan-in
            Price { instructions: [147_699, 33_909, 0, 11_040, 10_985, 0, 0, 0, 0], code: 711, stack: 4344 },
        ],
    },
];
