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
            instructions: [90_976, 57_674, 49_620, 11_013, 3_722, 6_030, 52_782, 9_541],
            file: 20060,
            module: 6204,
        },
        kernels: [
            // f32 rows
            Price {
                instructions: [0, 280_515, 0, 241_874, 224_037, 0, 0, 0, 0],
                code: 6180,
                stack: 2804,
                alone: 200,
            },
            // f32 rows behind a hidden layer
            Price {
                instructions: [304_008, 71_748, 159_006, 0, 741_737, 0, 0, 0, 0],
                code: 6180,
                stack: 2804,
                alone: 200,
            },
            // f32 rows
            Price {
                instructions: [0, 280_515, 0, 241_874, 224_037, 0, 0, 0, 0],
                code: 6180,
                stack: 2804,
                alone: 200,
            },
            // f32 rows behind a hidden layer
            Price {
                instructions: [304_008, 71_748, 159_006, 0, 741_737, 0, 0, 0, 0],
                code: 6180,
                stack: 2804,
                alone: 200,
            },
            // f32 rows
            Price {
                instructions: [0, 280_515, 0, 241_874, 224_037, 0, 0, 0, 0],
                code: 6180,
                stack: 2804,
                alone: 200,
            },
            // f32 rows behind a hidden layer
            Price {
                instructions: [304_008, 71_748, 159_006, 0, 741_737, 0, 0, 0, 0],
                code: 6180,
                stack: 2804,
                alone: 200,
            },
            // f32 dense
            Price {
                instructions: [14_325, 0, 285_214, 195_723, 903_613, 0, 0, 0, 0],
                code: 4292,
                stack: 228,
                alone: 200,
            },
            // dense
            Price {
                instructions: [238_861, 13_754, 37_739, 5_458, 33_281, 0, 0, 0, 0],
                code: 560,
                stack: 5052,
                alone: 200,
            },
            // dense, used inputs
            Price {
                instructions: [236_733, 38_018, 0, 13_000, 0, 0, 0, 0, 0],
                code: 680,
                stack: 5052,
                alone: 200,
            },
            // bitmask
            Price {
                instructions: [248_146, 26_329, 34_456, 32_991, 9_705, 0, 0, 0, 0],
                code: 1344,
                stack: 5052,
                alone: 200,
            },
            // bitmask, used inputs
            Price {
                instructions: [220_437, 28_874, 44_013, 42_106, 11_288, 0, 0, 0, 0],
                code: 1480,
                stack: 5052,
                alone: 200,
            },
            // rows
            Price {
                instructions: [142_126, 58_288, 15_241, 13_000, 0, 0, 0, 0, 0],
                code: 976,
                stack: 5052,
                alone: 200,
            },
            // distances
            Price {
                instructions: [147_985, 30_540, 27_191, 25_018, 0, 0, 0, 0, 0],
                code: 1028,
                stack: 5052,
                alone: 200,
            },
            // blocks
            Price {
                instructions: [162_928, 43_269, 0, 5_987, 11_267, 45_661, 0, 159_560, 1_045],
                code: 1140,
                stack: 5052,
                alone: 200,
            },
            // constant fan-in
            Price {
                instructions: [403_964, 47_979, 0, 13_243, 13_042, 0, 0, 0, 0],
                code: 856,
                stack: 5052,
                alone: 200,
            },
        ],
    },
    // Cortex-M3
    Prices {
        startup: 1196,
        floats: Frame { instructions: [0, 0, 0, 0, 0, 0, 0, 72_755], file: 11232, module: 0 },
        integers: Frame {
            instructions: [53_059, 8_743, 7_811, 7_694, 4_027, 5_168, 64_554, 7_932],
            file: 19272,
            module: 5597,
        },
        kernels: [
            // f32 rows
            Price {
                instructions: [0, 178_913, 0, 140_932, 130_270, 0, 0, 0, 0],
                code: 4640,
                stack: 2224,
                alone: 200,
            },
            // f32 rows behind a hidden layer
            Price {
                instructions: [208_072, 55_030, 117_092, 0, 462_938, 0, 0, 0, 0],
                code: 4640,
                stack: 2224,
                alone: 200,
            },
            // f32 rows
            Price {
                instructions: [0, 178_913, 0, 140_932, 130_270, 0, 0, 0, 0],
                code: 4640,
                stack: 2224,
                alone: 200,
            },
            // f32 rows behind a hidden layer
            Price {
                instructions: [208_072, 55_030, 117_092, 0, 462_938, 0, 0, 0, 0],
                code: 4640,
                stack: 2224,
                alone: 200,
            },
            // f32 rows
            Price {
                instructions: [0, 178_913, 0, 140_932, 130_270, 0, 0, 0, 0],
                code: 4640,
                stack: 2224,
                alone: 200,
            },
            // f32 rows behind a hidden layer
            Price {
                instructions: [208_072, 55_030, 117_092, 0, 462_938, 0, 0, 0, 0],
                code: 4640,
                stack: 2224,
                alone: 200,
            },
            // f32 dense
            Price {
                instructions: [112_514, 0, 157_966, 128_492, 529_754, 0, 0, 0, 0],
                code: 3916,
                stack: 168,
                alone: 200,
            },
            // dense
            Price {
                instructions: [164_515, 12_834, 11_622, 4_726, 14_015, 0, 0, 0, 0],
                code: 571,
                stack: 4380,
                alone: 200,
            },
            // dense, used inputs
            Price {
                instructions: [128_658, 28_792, 0, 7_994, 0, 0, 0, 0, 0],
                code: 783,
                stack: 4380,
                alone: 200,
            },
            // bitmask
            Price {
                instructions: [155_719, 17_935, 15_425, 14_060, 6_548, 0, 0, 0, 0],
                code: 1311,
                stack: 4380,
                alone: 200,
            },
            // bitmask, used inputs
            Price {
                instructions: [149_697, 22_792, 18_260, 17_068, 7_566, 0, 0, 0, 0],
                code: 1559,
                stack: 4380,
                alone: 200,
            },
            // rows
            Price {
                instructions: [125_365, 36_988, 8_852, 7_993, 0, 0, 0, 0, 0],
                code: 995,
                stack: 4380,
                alone: 200,
            },
            // distances
            Price {
                instructions: [134_854, 17_950, 21_067, 19_001, 0, 0, 0, 0, 0],
                code: 1059,
                stack: 4380,
                alone: 200,
            },
            // blocks
            Price {
                instructions: [112_948, 27_050, 0, 4_045, 7_228, 55_576, 181, 153_900, 1_051],
                code: 1231,
                stack: 4380,
                alone: 200,
            },
            // constant fan-in
            Price {
                instructions: [137_728, 35_077, 0, 8_034, 7_993, 0, 0, 0, 0],
                code: 807,
                stack: 4380,
                alone: 200,
            },
        ],
    },
    // Cortex-M4F
    Prices {
        startup: 1224,
        floats: Frame { instructions: [0, 0, 0, 0, 0, 0, 16_997, 15_511], file: 10748, module: 0 },
        integers: Frame {
            instructions: [53_156, 7_805, 6_870, 8_639, 4_014, 5_181, 64_549, 7_955],
            file: 19452,
            module: 5589,
        },
        kernels: [
            // f32 rows
            Price {
                instructions: [84_552, 52_421, 0, 9_828, 3_941, 0, 0, 0, 0],
                code: 3976,
                stack: 2136,
                alone: 200,
            },
            // f32 rows behind a hidden layer
            Price {
                instructions: [77_981, 39_743, 13_954, 0, 34_619, 0, 0, 0, 0],
                code: 3976,
                stack: 2108,
                alone: 200,
            },
            // f32 rows
            Price {
                instructions: [84_552, 52_421, 0, 9_828, 3_941, 0, 0, 0, 0],
                code: 3976,
                stack: 2136,
                alone: 200,
            },
            // f32 rows behind a hidden layer
            Price {
                instructions: [77_981, 39_743, 13_954, 0, 34_619, 0, 0, 0, 0],
                code: 3976,
                stack: 2108,
                alone: 200,
            },
            // f32 rows
            Price {
                instructions: [84_552, 52_421, 0, 9_828, 3_941, 0, 0, 0, 0],
                code: 3976,
                stack: 2136,
                alone: 200,
            },
            // f32 rows behind a hidden layer
            Price {
                instructions: [77_981, 39_743, 13_954, 0, 34_619, 0, 0, 0, 0],
                code: 3976,
                stack: 2108,
                alone: 200,
            },
            // f32 dense
            Price {
                instructions: [71_033, 27_611, 6_783, 8_136, 13_171, 0, 0, 0, 0],
                code: 2048,
                stack: 84,
                alone: 200,
            },
            // dense
            Price {
                instructions: [163_454, 11_876, 14_529, 4_720, 14_019, 0, 0, 0, 0],
                code: 591,
                stack: 4388,
                alone: 200,
            },
            // dense, used inputs
            Price {
                instructions: [128_654, 27_730, 0, 7_994, 0, 0, 0, 0, 0],
                code: 791,
                stack: 4388,
                alone: 200,
            },
            // bitmask
            Price {
                instructions: [155_335, 18_041, 15_264, 14_061, 6_544, 0, 0, 0, 0],
                code: 1311,
                stack: 4388,
                alone: 200,
            },
            // bitmask, used inputs
            Price {
                instructions: [147_931, 22_813, 18_294, 17_077, 7_536, 0, 0, 0, 0],
                code: 1567,
                stack: 4388,
                alone: 200,
            },
            // rows
            Price {
                instructions: [125_106, 35_940, 8_861, 7_992, 0, 0, 0, 0, 0],
                code: 999,
                stack: 4388,
                alone: 200,
            },
            // distances
            Price {
                instructions: [134_375, 17_921, 21_061, 19_000, 0, 0, 0, 0, 0],
                code: 1071,
                stack: 4388,
                alone: 200,
            },
            // blocks
            Price {
                instructions: [112_820, 31_101, 0, 4_048, 7_200, 55_000, 91, 154_136, 1_050],
                code: 1247,
                stack: 4388,
                alone: 200,
            },
            // constant fan-in
            Price {
                instructions: [137_136, 34_039, 0, 8_034, 7_994, 0, 0, 0, 0],
                code: 803,
                stack: 4388,
                alone: 200,
            },
        ],
    },
    // Cortex-M7
    Prices {
        startup: 1224,
        floats: Frame { instructions: [0, 0, 0, 0, 0, 0, 16_997, 15_511], file: 10748, module: 0 },
        integers: Frame {
            instructions: [53_156, 7_805, 6_870, 8_639, 4_014, 5_181, 64_549, 7_955],
            file: 19452,
            module: 5589,
        },
        kernels: [
            // f32 rows
            Price {
                instructions: [84_552, 52_421, 0, 9_828, 3_941, 0, 0, 0, 0],
                code: 3976,
                stack: 2136,
                alone: 200,
            },
            // f32 rows behind a hidden layer
            Price {
                instructions: [77_981, 39_743, 13_954, 0, 34_619, 0, 0, 0, 0],
                code: 3976,
                stack: 2108,
                alone: 200,
            },
            // f32 rows
            Price {
                instructions: [84_552, 52_421, 0, 9_828, 3_941, 0, 0, 0, 0],
                code: 3976,
                stack: 2136,
                alone: 200,
            },
            // f32 rows behind a hidden layer
            Price {
                instructions: [77_981, 39_743, 13_954, 0, 34_619, 0, 0, 0, 0],
                code: 3976,
                stack: 2108,
                alone: 200,
            },
            // f32 rows
            Price {
                instructions: [84_552, 52_421, 0, 9_828, 3_941, 0, 0, 0, 0],
                code: 3976,
                stack: 2136,
                alone: 200,
            },
            // f32 rows behind a hidden layer
            Price {
                instructions: [77_981, 39_743, 13_954, 0, 34_619, 0, 0, 0, 0],
                code: 3976,
                stack: 2108,
                alone: 200,
            },
            // f32 dense
            Price {
                instructions: [71_033, 27_611, 6_783, 8_136, 13_171, 0, 0, 0, 0],
                code: 2048,
                stack: 84,
                alone: 200,
            },
            // dense
            Price {
                instructions: [163_454, 11_876, 14_529, 4_720, 14_019, 0, 0, 0, 0],
                code: 591,
                stack: 4388,
                alone: 200,
            },
            // dense, used inputs
            Price {
                instructions: [128_654, 27_730, 0, 7_994, 0, 0, 0, 0, 0],
                code: 791,
                stack: 4388,
                alone: 200,
            },
            // bitmask
            Price {
                instructions: [155_335, 18_041, 15_264, 14_061, 6_544, 0, 0, 0, 0],
                code: 1311,
                stack: 4388,
                alone: 200,
            },
            // bitmask, used inputs
            Price {
                instructions: [147_931, 22_813, 18_294, 17_077, 7_536, 0, 0, 0, 0],
                code: 1567,
                stack: 4388,
                alone: 200,
            },
            // rows
            Price {
                instructions: [125_106, 35_940, 8_861, 7_992, 0, 0, 0, 0, 0],
                code: 999,
                stack: 4388,
                alone: 200,
            },
            // distances
            Price {
                instructions: [134_375, 17_921, 21_061, 19_000, 0, 0, 0, 0, 0],
                code: 1071,
                stack: 4388,
                alone: 200,
            },
            // blocks
            Price {
                instructions: [112_820, 31_101, 0, 4_048, 7_200, 55_000, 91, 154_136, 1_050],
                code: 1247,
                stack: 4388,
                alone: 200,
            },
            // constant fan-in
            Price {
                instructions: [137_136, 34_039, 0, 8_034, 7_994, 0, 0, 0, 0],
                code: 803,
                stack: 4388,
                alone: 200,
            },
        ],
    },
    // Cortex-M33
    Prices {
        startup: 2184,
        floats: Frame { instructions: [0, 0, 0, 0, 0, 0, 16_974, 15_516], file: 10736, module: 0 },
        integers: Frame {
            instructions: [53_027, 8_741, 7_808, 7_696, 4_028, 5_174, 64_520, 7_936],
            file: 19460,
            module: 5594,
        },
        kernels: [
            // f32 rows
            Price {
                instructions: [84_512, 50_422, 0, 9_813, 3_992, 0, 0, 0, 0],
                code: 3964,
                stack: 2136,
                alone: 200,
            },
            // f32 rows behind a hidden layer
            Price {
                instructions: [78_024, 37_743, 13_936, 0, 34_623, 0, 0, 0, 0],
                code: 3964,
                stack: 2104,
                alone: 200,
            },
            // f32 rows
            Price {
                instructions: [84_512, 50_422, 0, 9_813, 3_992, 0, 0, 0, 0],
                code: 3964,
                stack: 2136,
                alone: 200,
            },
            // f32 rows behind a hidden layer
            Price {
                instructions: [78_024, 37_743, 13_936, 0, 34_623, 0, 0, 0, 0],
                code: 3964,
                stack: 2104,
                alone: 200,
            },
            // f32 rows
            Price {
                instructions: [84_512, 50_422, 0, 9_813, 3_992, 0, 0, 0, 0],
                code: 3964,
                stack: 2136,
                alone: 200,
            },
            // f32 rows behind a hidden layer
            Price {
                instructions: [78_024, 37_743, 13_936, 0, 34_623, 0, 0, 0, 0],
                code: 3964,
                stack: 2104,
                alone: 200,
            },
            // f32 dense
            Price {
                instructions: [71_033, 27_611, 6_783, 8_136, 13_171, 0, 0, 0, 0],
                code: 2048,
                stack: 84,
                alone: 200,
            },
            // dense
            Price {
                instructions: [164_544, 12_833, 11_623, 4_727, 14_015, 0, 0, 0, 0],
                code: 590,
                stack: 4388,
                alone: 200,
            },
            // dense, used inputs
            Price {
                instructions: [128_699, 27_791, 0, 7_994, 0, 0, 0, 0, 0],
                code: 794,
                stack: 4388,
                alone: 200,
            },
            // bitmask
            Price {
                instructions: [155_776, 17_943, 15_410, 14_060, 6_548, 0, 0, 0, 0],
                code: 1310,
                stack: 4388,
                alone: 200,
            },
            // bitmask, used inputs
            Price {
                instructions: [149_742, 22_796, 18_254, 17_068, 7_566, 0, 0, 0, 0],
                code: 1566,
                stack: 4388,
                alone: 200,
            },
            // rows
            Price {
                instructions: [125_404, 35_980, 8_859, 7_992, 0, 0, 0, 0, 0],
                code: 1002,
                stack: 4388,
                alone: 200,
            },
            // distances
            Price {
                instructions: [134_869, 17_951, 21_064, 19_002, 0, 0, 0, 0, 0],
                code: 1074,
                stack: 4388,
                alone: 200,
            },
            // blocks
            Price {
                instructions: [112_933, 28_050, 0, 4_046, 7_218, 55_588, 175, 153_954, 1_051],
                code: 1246,
                stack: 4388,
                alone: 200,
            },
            // constant fan-in
            Price {
                instructions: [137_780, 34_073, 0, 8_034, 7_993, 0, 0, 0, 0],
                code: 802,
                stack: 4388,
                alone: 200,
            },
        ],
    },
    // RV32IMAC
    Prices {
        startup: 650,
        floats: Frame { instructions: [0, 0, 0, 0, 0, 0, 0, 58_263], file: 10000, module: 0 },
        integers: Frame {
            instructions: [65_314, 14_004, 8_304, 7_026, 5_592, 8_620, 57_277, 8_168],
            file: 17696,
            module: 5265,
        },
        kernels: [
            // f32 rows
            Price {
                instructions: [26_498, 195_016, 0, 140_644, 92_240, 0, 0, 0, 0],
                code: 5300,
                stack: 2456,
                alone: 200,
            },
            // f32 rows behind a hidden layer
            Price {
                instructions: [244_750, 86_427, 75_215, 0, 417_201, 0, 0, 0, 0],
                code: 5300,
                stack: 2456,
                alone: 200,
            },
            // f32 rows
            Price {
                instructions: [26_498, 195_016, 0, 140_644, 92_240, 0, 0, 0, 0],
                code: 5300,
                stack: 2456,
                alone: 200,
            },
            // f32 rows behind a hidden layer
            Price {
                instructions: [244_750, 86_427, 75_215, 0, 417_201, 0, 0, 0, 0],
                code: 5300,
                stack: 2456,
                alone: 200,
            },
            // f32 rows
            Price {
                instructions: [26_498, 195_016, 0, 140_644, 92_240, 0, 0, 0, 0],
                code: 5300,
                stack: 2456,
                alone: 200,
            },
            // f32 rows behind a hidden layer
            Price {
                instructions: [244_750, 86_427, 75_215, 0, 417_201, 0, 0, 0, 0],
                code: 5300,
                stack: 2456,
                alone: 200,
            },
            // f32 dense
            Price {
                instructions: [0, 0, 170_579, 88_832, 486_154, 0, 0, 0, 0],
                code: 2512,
                stack: 100,
                alone: 200,
            },
            // dense
            Price {
                instructions: [188_897, 9_665, 14_300, 6_614, 19_018, 0, 0, 0, 0],
                code: 491,
                stack: 4344,
                alone: 200,
            },
            // dense, used inputs
            Price {
                instructions: [138_209, 23_827, 0, 10_994, 0, 0, 0, 0, 0],
                code: 591,
                stack: 4344,
                alone: 200,
            },
            // bitmask
            Price {
                instructions: [171_495, 12_492, 20_679, 19_064, 5_572, 0, 0, 0, 0],
                code: 887,
                stack: 4344,
                alone: 200,
            },
            // bitmask, used inputs
            Price {
                instructions: [170_619, 14_482, 22_405, 23_054, 5_825, 0, 0, 0, 0],
                code: 975,
                stack: 4344,
                alone: 200,
            },
            // rows
            Price {
                instructions: [145_902, 29_970, 13_045, 10_991, 0, 0, 0, 0, 0],
                code: 667,
                stack: 4344,
                alone: 200,
            },
            // distances
            Price {
                instructions: [151_983, 16_169, 14_936, 14_047, 0, 0, 0, 0, 0],
                code: 711,
                stack: 4344,
                alone: 200,
            },
            // blocks
            Price {
                instructions: [117_915, 47_337, 0, 5_954, 8_742, 58_163, 1_296, 266_803, 1_227],
                code: 875,
                stack: 4344,
                alone: 200,
            },
            // constant fan-in
            Price {
                instructions: [147_093, 34_057, 0, 11_041, 10_982, 0, 0, 0, 0],
                code: 711,
                stack: 4344,
                alone: 200,
            },
        ],
    },
];
