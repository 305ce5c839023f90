//! Generated: prices in thousandths of an instruction, code and stack in bytes, one entry for each of `Core::ALL`.
//!
//! Made by `cargo ci costs (rustc 1.95.0)`.
//! Do not edit: run that again.
//!
//! - a prediction: prediction, byte, number, own factor, bias, ReLU, sum, sign
//! - a layer: layer, row, first weight, weight, group, window, output, short row, copied byte

use super::{Frame, Price, Prices};

pub(super) static TABLE: [Prices; 6] = [
    // Cortex-M0
    Prices {
        startup: 352,
        floats: Frame { instructions: [238_305, 0, 0, 0, 0, 0, 464_413, 111_493], file: 11428, module: 0 },
        integers: Frame {
            instructions: [79_257, 58_200, 48_847, 9_426, 3_882, 7_832, 54_269, 9_290],
            file: 20060,
            module: 6204,
        },
        kernels: [
            // f32 rows
            Price {
                instructions: [0, 106_456, 160_990, 230_021, 245_158, 0, 0, 0, 0],
                code: 6180,
                stack: 2804,
            },
            // f32 dense
            Price {
                instructions: [148_918, 182_125, 0, 179_760, 897_208, 0, 0, 0, 0],
                code: 4292,
                stack: 228,
            },
            // dense
            Price { instructions: [230_561, 16_798, 0, 15_169, 33_600, 0, 0, 0, 0], code: 560, stack: 5052 },
            // dense, used inputs
            Price { instructions: [225_321, 39_460, 0, 13_000, 0, 0, 0, 0, 0], code: 680, stack: 5052 },
            // bitmask
            Price {
                instructions: [251_970, 31_368, 29_249, 33_126, 9_492, 0, 0, 0, 0],
                code: 1344,
                stack: 5052,
            },
            // bitmask, used inputs
            Price {
                instructions: [254_774, 28_642, 43_926, 41_822, 11_375, 0, 0, 0, 0],
                code: 1480,
                stack: 5052,
            },
            // rows
            Price { instructions: [139_586, 58_682, 16_668, 13_001, 0, 0, 0, 0, 0], code: 976, stack: 5052 },
            // distances
            Price { instructions: [175_414, 29_290, 28_214, 25_000, 0, 0, 0, 0, 0], code: 1028, stack: 5052 },
            // blocks
            Price {
                instructions: [182_946, 46_149, 0, 4_946, 18_547, 45_853, 1_300, 130_763, 1_215],
                code: 1140,
                stack: 5052,
            },
            // constant fan-in
            Price { instructions: [371_982, 50_156, 0, 13_497, 12_985, 0, 0, 0, 0], code: 856, stack: 5052 },
        ],
    },
    // Cortex-M3
    Prices {
        startup: 1196,
        floats: Frame { instructions: [128_969, 0, 0, 0, 0, 0, 0, 80_317], file: 11232, module: 0 },
        integers: Frame {
            instructions: [52_268, 8_760, 7_461, 7_553, 4_487, 5_568, 64_140, 7_876],
            file: 19272,
            module: 5597,
        },
        kernels: [
            // f32 rows
            Price {
                instructions: [0, 81_598, 93_171, 133_221, 149_669, 0, 0, 0, 0],
                code: 4640,
                stack: 2224,
            },
            // f32 dense
            Price { instructions: [0, 2_478, 0, 132_812, 530_002, 0, 0, 0, 0], code: 3916, stack: 168 },
            // dense
            Price { instructions: [139_295, 15_251, 0, 5_965, 14_117, 0, 0, 0, 0], code: 571, stack: 4380 },
            // dense, used inputs
            Price { instructions: [127_905, 28_467, 0, 8_003, 0, 0, 0, 0, 0], code: 783, stack: 4380 },
            // bitmask
            Price {
                instructions: [156_253, 19_020, 14_363, 14_089, 6_435, 0, 0, 0, 0],
                code: 1311,
                stack: 4380,
            },
            // bitmask, used inputs
            Price {
                instructions: [159_955, 21_979, 18_569, 16_953, 7_696, 0, 0, 0, 0],
                code: 1559,
                stack: 4380,
            },
            // rows
            Price { instructions: [117_224, 37_678, 8_667, 7_994, 0, 0, 0, 0, 0], code: 995, stack: 4380 },
            // distances
            Price { instructions: [142_166, 17_969, 20_789, 19_009, 0, 0, 0, 0, 0], code: 1059, stack: 4380 },
            // blocks
            Price {
                instructions: [131_522, 28_971, 0, 3_529, 10_563, 50_389, 429, 130_536, 1_160],
                code: 1231,
                stack: 4380,
            },
            // constant fan-in
            Price { instructions: [134_623, 35_023, 0, 8_077, 8_018, 0, 0, 0, 0], code: 807, stack: 4380 },
        ],
    },
    // Cortex-M4F
    Prices {
        startup: 1224,
        floats: Frame { instructions: [0, 0, 0, 0, 0, 0, 63_570, 14_050], file: 10748, module: 0 },
        integers: Frame {
            instructions: [52_723, 7_952, 6_530, 8_457, 4_558, 5_634, 64_299, 7_803],
            file: 19452,
            module: 5589,
        },
        kernels: [
            // f32 rows
            Price {
                instructions: [72_924, 41_302, 11_896, 8_639, 7_442, 0, 0, 0, 0],
                code: 3976,
                stack: 2136,
            },
            // f32 dense
            Price { instructions: [41_975, 32_043, 0, 3_227, 13_334, 0, 0, 0, 0], code: 2048, stack: 84 },
            // dense
            Price { instructions: [132_672, 15_292, 0, 6_667, 14_131, 0, 0, 0, 0], code: 591, stack: 4388 },
            // dense, used inputs
            Price { instructions: [126_778, 27_417, 0, 8_002, 0, 0, 0, 0, 0], code: 791, stack: 4388 },
            // bitmask
            Price {
                instructions: [155_385, 18_921, 14_369, 14_090, 6_426, 0, 0, 0, 0],
                code: 1311,
                stack: 4388,
            },
            // bitmask, used inputs
            Price {
                instructions: [158_760, 21_818, 18_675, 16_941, 7_706, 0, 0, 0, 0],
                code: 1567,
                stack: 4388,
            },
            // rows
            Price { instructions: [116_118, 36_686, 8_558, 7_994, 0, 0, 0, 0, 0], code: 999, stack: 4388 },
            // distances
            Price { instructions: [141_609, 17_952, 20_667, 19_009, 0, 0, 0, 0, 0], code: 1071, stack: 4388 },
            // blocks
            Price {
                instructions: [134_133, 33_359, 0, 3_443, 11_176, 48_736, 214, 128_047, 1_164],
                code: 1247,
                stack: 4388,
            },
            // constant fan-in
            Price { instructions: [133_529, 33_928, 0, 8_077, 8_021, 0, 0, 0, 0], code: 803, stack: 4388 },
        ],
    },
    // Cortex-M7
    Prices {
        startup: 1224,
        floats: Frame { instructions: [0, 0, 0, 0, 0, 0, 63_570, 14_050], file: 10748, module: 0 },
        integers: Frame {
            instructions: [52_723, 7_952, 6_530, 8_457, 4_558, 5_634, 64_299, 7_803],
            file: 19452,
            module: 5589,
        },
        kernels: [
            // f32 rows
            Price {
                instructions: [72_924, 41_302, 11_896, 8_639, 7_442, 0, 0, 0, 0],
                code: 3976,
                stack: 2136,
            },
            // f32 dense
            Price { instructions: [41_975, 32_043, 0, 3_227, 13_334, 0, 0, 0, 0], code: 2048, stack: 84 },
            // dense
            Price { instructions: [132_672, 15_292, 0, 6_667, 14_131, 0, 0, 0, 0], code: 591, stack: 4388 },
            // dense, used inputs
            Price { instructions: [126_778, 27_417, 0, 8_002, 0, 0, 0, 0, 0], code: 791, stack: 4388 },
            // bitmask
            Price {
                instructions: [155_385, 18_921, 14_369, 14_090, 6_426, 0, 0, 0, 0],
                code: 1311,
                stack: 4388,
            },
            // bitmask, used inputs
            Price {
                instructions: [158_760, 21_818, 18_675, 16_941, 7_706, 0, 0, 0, 0],
                code: 1567,
                stack: 4388,
            },
            // rows
            Price { instructions: [116_118, 36_686, 8_558, 7_994, 0, 0, 0, 0, 0], code: 999, stack: 4388 },
            // distances
            Price { instructions: [141_609, 17_952, 20_667, 19_009, 0, 0, 0, 0, 0], code: 1071, stack: 4388 },
            // blocks
            Price {
                instructions: [134_133, 33_359, 0, 3_443, 11_176, 48_736, 214, 128_047, 1_164],
                code: 1247,
                stack: 4388,
            },
            // constant fan-in
            Price { instructions: [133_529, 33_928, 0, 8_077, 8_021, 0, 0, 0, 0], code: 803, stack: 4388 },
        ],
    },
    // Cortex-M33
    Prices {
        startup: 2184,
        floats: Frame { instructions: [0, 0, 0, 0, 0, 0, 63_832, 14_046], file: 10736, module: 0 },
        integers: Frame {
            instructions: [52_238, 8_763, 7_466, 7_550, 4_481, 5_567, 64_171, 7_872],
            file: 19460,
            module: 5594,
        },
        kernels: [
            // f32 rows
            Price {
                instructions: [72_866, 39_322, 11_867, 8_644, 7_431, 0, 0, 0, 0],
                code: 3964,
                stack: 2136,
            },
            // f32 dense
            Price { instructions: [41_975, 32_043, 0, 3_227, 13_334, 0, 0, 0, 0], code: 2048, stack: 84 },
            // dense
            Price { instructions: [139_387, 15_243, 0, 5_967, 14_117, 0, 0, 0, 0], code: 590, stack: 4388 },
            // dense, used inputs
            Price { instructions: [127_956, 27_462, 0, 8_003, 0, 0, 0, 0, 0], code: 794, stack: 4388 },
            // bitmask
            Price {
                instructions: [156_284, 19_024, 14_358, 14_089, 6_435, 0, 0, 0, 0],
                code: 1310,
                stack: 4388,
            },
            // bitmask, used inputs
            Price {
                instructions: [159_946, 21_989, 18_560, 16_953, 7_695, 0, 0, 0, 0],
                code: 1566,
                stack: 4388,
            },
            // rows
            Price { instructions: [117_244, 36_676, 8_674, 7_994, 0, 0, 0, 0, 0], code: 1002, stack: 4388 },
            // distances
            Price { instructions: [142_184, 17_966, 20_792, 19_009, 0, 0, 0, 0, 0], code: 1074, stack: 4388 },
            // blocks
            Price {
                instructions: [131_553, 29_968, 0, 3_530, 10_557, 50_393, 432, 130_497, 1_160],
                code: 1246,
                stack: 4388,
            },
            // constant fan-in
            Price { instructions: [134_628, 34_022, 0, 8_077, 8_018, 0, 0, 0, 0], code: 802, stack: 4388 },
        ],
    },
    // RV32IMAC
    Prices {
        startup: 650,
        floats: Frame { instructions: [140_736, 0, 0, 0, 0, 0, 512_408, 59_027], file: 10000, module: 0 },
        integers: Frame {
            instructions: [65_483, 13_960, 8_830, 7_005, 5_054, 8_638, 51_298, 8_808],
            file: 17696,
            module: 5265,
        },
        kernels: [
            // f32 rows
            Price {
                instructions: [0, 116_396, 75_239, 131_611, 109_759, 0, 0, 0, 0],
                code: 5300,
                stack: 2456,
            },
            // f32 dense
            Price {
                instructions: [132_343, 160_690, 0, 82_477, 480_854, 0, 0, 0, 0],
                code: 2512,
                stack: 100,
            },
            // dense
            Price { instructions: [190_746, 12_143, 0, 8_650, 19_036, 0, 0, 0, 0], code: 491, stack: 4344 },
            // dense, used inputs
            Price { instructions: [152_779, 22_806, 0, 10_996, 0, 0, 0, 0, 0], code: 591, stack: 4344 },
            // bitmask
            Price {
                instructions: [179_459, 12_142, 21_129, 19_080, 5_488, 0, 0, 0, 0],
                code: 887,
                stack: 4344,
            },
            // bitmask, used inputs
            Price {
                instructions: [176_322, 14_793, 22_142, 23_064, 5_517, 0, 0, 0, 0],
                code: 975,
                stack: 4344,
            },
            // rows
            Price { instructions: [139_199, 31_227, 12_095, 10_972, 0, 0, 0, 0, 0], code: 667, stack: 4344 },
            // distances
            Price { instructions: [172_030, 13_752, 16_888, 13_962, 0, 0, 0, 0, 0], code: 711, stack: 4344 },
            // blocks
            Price {
                instructions: [131_646, 47_823, 0, 5_666, 10_756, 58_077, 2_097, 249_203, 1_316],
                code: 875,
                stack: 4344,
            },
            // constant fan-in
            Price { instructions: [149_942, 33_568, 0, 11_072, 11_039, 0, 0, 0, 0], code: 711, stack: 4344 },
        ],
    },
];
