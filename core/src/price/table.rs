//! Generated: prices in thousandths of an instruction, code and stack in bytes, one entry for each of `Core::ALL`.
//!
//! Made by `cargo ci costs (rustc 1.95.0)`.
//! Do not edit: run that again.
//!
//! - a prediction: prediction, byte, number, own factor, bias, relu, sum, sign, sum of the scratch, its sign, relu of the scratch
//! - a layer: layer, row, first weight, weight, group, window, output, short row, copied byte

use super::{Frame, Price, Prices};

pub(super) static TABLE: [Prices; 6] = [
    // Cortex-M0
    Prices {
        startup: 380,
        floats: Frame {
            instructions: [0, 0, 0, 0, 0, 0, 22_816, 380_739, 217_803, 89_980, 33_959],
            file: 13320,
            module: 2828,
        },
        integers: Frame {
            instructions: [81_777, 58_932, 78_475, 7_326, 5_374, 8_375, 81_237, 12_023, 0, 0, 0],
            file: 17604,
            module: 1484,
        },
        kernels: [
            // f32 rows
            Price {
                instructions: [146_443, 99_276, 176_885, 242_896, 217_540, 0, 0, 0, 0],
                code: 784,
                stack: 1284,
                alone: 444,
            },
            // f32 rows under a sum
            Price {
                instructions: [0, 0, 0, 243_004, 218_384, 0, 0, 0, 0],
                code: 784,
                stack: 1228,
                alone: 268,
            },
            // f32 rows behind a hidden layer
            Price {
                instructions: [300_481, 75_370, 130_082, 168_226, 181_510, 0, 0, 0, 0],
                code: 784,
                stack: 1284,
                alone: 444,
            },
            // f32 windows
            Price {
                instructions: [0, 44_598, 141_256, 247_827, 173_980, 88_382, 34_666, 0, 0],
                code: 904,
                stack: 1228,
                alone: 364,
            },
            // f32 windows behind a hidden layer
            Price {
                instructions: [0, 0, 0, 107_758, 361_578, 0, 251_699, 0, 0],
                code: 904,
                stack: 1228,
                alone: 364,
            },
            // f32 short window
            Price {
                instructions: [204_039, 39_378, 174_419, 238_680, 0, 0, 0, 0, 0],
                code: 904,
                stack: 1228,
                alone: 364,
            },
            // f32 short window behind a hidden layer
            Price {
                instructions: [430_345, 75_644, 14_241, 167_196, 0, 0, 0, 0, 0],
                code: 904,
                stack: 1228,
                alone: 364,
            },
            // f32 dense
            Price {
                instructions: [431_654, 56_246, 248_916, 208_863, 903_116, 0, 0, 0, 0],
                code: 2492,
                stack: 236,
                alone: 180,
            },
            // dense
            Price {
                instructions: [212_439, 43_061, 12_550, 8_707, 29_937, 0, 0, 0, 0],
                code: 476,
                stack: 2512,
                alone: 244,
            },
            // dense, used inputs
            Price {
                instructions: [194_474, 37_114, 0, 13_010, 0, 0, 0, 0, 0],
                code: 404,
                stack: 2512,
                alone: 228,
            },
            // bitmask
            Price {
                instructions: [257_360, 28_313, 29_849, 33_100, 9_286, 0, 0, 0, 0],
                code: 684,
                stack: 2512,
                alone: 288,
            },
            // bitmask, used inputs
            Price {
                instructions: [254_994, 27_113, 39_323, 42_045, 12_522, 0, 0, 0, 0],
                code: 684,
                stack: 2512,
                alone: 288,
            },
            // rows
            Price {
                instructions: [110_803, 59_629, 13_681, 13_070, 0, 0, 0, 0, 0],
                code: 0,
                stack: 2512,
                alone: 228,
            },
            // distances
            Price {
                instructions: [155_245, 32_620, 21_336, 25_068, 0, 0, 0, 0, 0],
                code: 36,
                stack: 2512,
                alone: 240,
            },
            // blocks
            Price {
                instructions: [158_457, 20_722, 0, 7_415, 0, 69_358, 0, 50_522, 2_893],
                code: 680,
                stack: 2512,
                alone: 508,
            },
            // constant fan-in
            Price {
                instructions: [397_403, 47_457, 0, 13_167, 13_147, 0, 0, 0, 0],
                code: 660,
                stack: 2512,
                alone: 228,
            },
        ],
    },
    // Cortex-M3
    Prices {
        startup: 1232,
        floats: Frame {
            instructions: [0, 0, 0, 0, 0, 0, 0, 255_796, 126_958, 71_482, 27_699],
            file: 12932,
            module: 2716,
        },
        integers: Frame {
            instructions: [44_112, 10_004, 20_598, 3_386, 4_915, 5_636, 63_868, 10_158, 0, 0, 0],
            file: 16276,
            module: 1284,
        },
        kernels: [
            // f32 rows
            Price {
                instructions: [97_494, 79_564, 97_296, 138_083, 138_141, 0, 0, 0, 0],
                code: 648,
                stack: 1112,
                alone: 280,
            },
            // f32 rows under a sum
            Price {
                instructions: [0, 0, 0, 140_143, 132_438, 0, 0, 0, 0],
                code: 648,
                stack: 1112,
                alone: 184,
            },
            // f32 rows behind a hidden layer
            Price {
                instructions: [181_383, 71_718, 84_228, 104_334, 123_987, 0, 0, 0, 0],
                code: 648,
                stack: 1112,
                alone: 280,
            },
            // f32 windows
            Price {
                instructions: [105_537, 40_294, 39_939, 140_575, 115_119, 41_867, 42_589, 0, 0],
                code: 896,
                stack: 1112,
                alone: 200,
            },
            // f32 windows behind a hidden layer
            Price {
                instructions: [461_501, 0, 0, 94_617, 145_901, 0, 146_659, 0, 0],
                code: 896,
                stack: 1112,
                alone: 200,
            },
            // f32 short window
            Price {
                instructions: [157_826, 31_889, 96_245, 139_451, 0, 0, 0, 0, 0],
                code: 896,
                stack: 1112,
                alone: 200,
            },
            // f32 short window behind a hidden layer
            Price {
                instructions: [265_909, 45_657, 41_056, 109_404, 0, 0, 0, 0, 0],
                code: 896,
                stack: 1112,
                alone: 200,
            },
            // f32 dense
            Price {
                instructions: [43_393, 0, 130_826, 137_285, 530_738, 0, 0, 0, 0],
                code: 1852,
                stack: 168,
                alone: 120,
            },
            // dense
            Price {
                instructions: [132_318, 33_753, 11_151, 5_931, 13_974, 0, 0, 0, 0],
                code: 184,
                stack: 2332,
                alone: 220,
            },
            // dense, used inputs
            Price {
                instructions: [119_062, 28_658, 0, 8_009, 0, 0, 0, 0, 0],
                code: 108,
                stack: 2332,
                alone: 168,
            },
            // bitmask
            Price {
                instructions: [155_481, 19_509, 14_617, 14_049, 6_417, 0, 0, 0, 0],
                code: 284,
                stack: 2332,
                alone: 200,
            },
            // bitmask, used inputs
            Price {
                instructions: [163_515, 22_194, 16_955, 17_027, 8_125, 0, 0, 0, 0],
                code: 288,
                stack: 2332,
                alone: 204,
            },
            // rows
            Price {
                instructions: [110_585, 37_861, 8_285, 8_034, 0, 0, 0, 0, 0],
                code: 108,
                stack: 2332,
                alone: 168,
            },
            // distances
            Price {
                instructions: [140_773, 20_053, 17_617, 19_026, 0, 0, 0, 0, 0],
                code: 184,
                stack: 2332,
                alone: 192,
            },
            // blocks
            Price {
                instructions: [176_245, 11_866, 0, 5_084, 0, 27_009, 2_694, 4_592, 917],
                code: 784,
                stack: 2388,
                alone: 476,
            },
            // constant fan-in
            Price {
                instructions: [136_003, 34_438, 0, 8_017, 7_971, 0, 0, 0, 0],
                code: 284,
                stack: 2332,
                alone: 168,
            },
        ],
    },
    // Cortex-M4F
    Prices {
        startup: 1256,
        floats: Frame {
            instructions: [0, 0, 0, 0, 0, 168, 111_991, 67_253, 143_830, 8_608, 8_008],
            file: 12388,
            module: 1744,
        },
        integers: Frame {
            instructions: [45_468, 9_012, 20_619, 3_357, 4_911, 5_624, 64_427, 10_177, 0, 0, 0],
            file: 16260,
            module: 1280,
        },
        kernels: [
            // f32 rows
            Price {
                instructions: [91_674, 38_329, 16_487, 11_447, 3_191, 0, 0, 0, 0],
                code: 1012,
                stack: 1120,
                alone: 72,
            },
            // f32 rows under a sum
            Price { instructions: [0, 16, 0, 9_160, 5_818, 0, 0, 0, 0], code: 1012, stack: 1120, alone: 84 },
            // f32 rows behind a hidden layer
            Price {
                instructions: [139_933, 35_905, 14_021, 11_322, 417, 0, 0, 0, 0],
                code: 1012,
                stack: 1120,
                alone: 72,
            },
            // f32 windows
            Price {
                instructions: [122_230, 28_477, 8_805, 7_704, 0, 43_783, 0, 0, 0],
                code: 868,
                stack: 1120,
                alone: 104,
            },
            // f32 windows behind a hidden layer
            Price {
                instructions: [0, 26_879, 3_772, 6_902, 2_442, 53_908, 10_174, 0, 0],
                code: 868,
                stack: 1120,
                alone: 104,
            },
            // f32 short window
            Price {
                instructions: [168_149, 23_320, 14_880, 12_007, 0, 0, 0, 0, 0],
                code: 868,
                stack: 1120,
                alone: 104,
            },
            // f32 short window behind a hidden layer
            Price {
                instructions: [190_954, 25_379, 13_457, 11_950, 0, 0, 0, 0, 0],
                code: 868,
                stack: 1120,
                alone: 104,
            },
            // f32 dense
            Price {
                instructions: [54_366, 13_605, 11_366, 4_540, 16_009, 0, 0, 0, 0],
                code: 760,
                stack: 96,
                alone: 48,
            },
            // dense
            Price {
                instructions: [132_911, 33_742, 11_172, 5_910, 13_975, 0, 0, 0, 0],
                code: 188,
                stack: 2332,
                alone: 220,
            },
            // dense, used inputs
            Price {
                instructions: [118_678, 27_647, 0, 8_010, 0, 0, 0, 0, 0],
                code: 104,
                stack: 2332,
                alone: 168,
            },
            // bitmask
            Price {
                instructions: [155_165, 19_499, 14_620, 14_049, 6_417, 0, 0, 0, 0],
                code: 284,
                stack: 2332,
                alone: 200,
            },
            // bitmask, used inputs
            Price {
                instructions: [163_423, 22_174, 16_958, 17_026, 8_126, 0, 0, 0, 0],
                code: 284,
                stack: 2332,
                alone: 204,
            },
            // rows
            Price {
                instructions: [109_331, 36_870, 8_276, 8_033, 0, 0, 0, 0, 0],
                code: 108,
                stack: 2332,
                alone: 168,
            },
            // distances
            Price {
                instructions: [142_357, 20_039, 17_650, 19_026, 0, 0, 0, 0, 0],
                code: 180,
                stack: 2332,
                alone: 192,
            },
            // blocks
            Price {
                instructions: [174_342, 11_848, 0, 5_084, 0, 27_269, 2_723, 5_775, 919],
                code: 788,
                stack: 2388,
                alone: 476,
            },
            // constant fan-in
            Price {
                instructions: [135_683, 33_422, 0, 8_018, 7_973, 0, 0, 0, 0],
                code: 284,
                stack: 2332,
                alone: 168,
            },
        ],
    },
    // Cortex-M7
    Prices {
        startup: 1256,
        floats: Frame {
            instructions: [0, 0, 0, 0, 0, 168, 111_991, 67_253, 143_830, 8_608, 8_008],
            file: 12388,
            module: 1744,
        },
        integers: Frame {
            instructions: [45_468, 9_012, 20_619, 3_357, 4_911, 5_624, 64_427, 10_177, 0, 0, 0],
            file: 16260,
            module: 1280,
        },
        kernels: [
            // f32 rows
            Price {
                instructions: [91_674, 38_329, 16_487, 11_447, 3_191, 0, 0, 0, 0],
                code: 1012,
                stack: 1120,
                alone: 72,
            },
            // f32 rows under a sum
            Price { instructions: [0, 16, 0, 9_160, 5_818, 0, 0, 0, 0], code: 1012, stack: 1120, alone: 84 },
            // f32 rows behind a hidden layer
            Price {
                instructions: [139_933, 35_905, 14_021, 11_322, 417, 0, 0, 0, 0],
                code: 1012,
                stack: 1120,
                alone: 72,
            },
            // f32 windows
            Price {
                instructions: [122_230, 28_477, 8_805, 7_704, 0, 43_783, 0, 0, 0],
                code: 868,
                stack: 1120,
                alone: 104,
            },
            // f32 windows behind a hidden layer
            Price {
                instructions: [0, 26_879, 3_772, 6_902, 2_442, 53_908, 10_174, 0, 0],
                code: 868,
                stack: 1120,
                alone: 104,
            },
            // f32 short window
            Price {
                instructions: [168_149, 23_320, 14_880, 12_007, 0, 0, 0, 0, 0],
                code: 868,
                stack: 1120,
                alone: 104,
            },
            // f32 short window behind a hidden layer
            Price {
                instructions: [190_954, 25_379, 13_457, 11_950, 0, 0, 0, 0, 0],
                code: 868,
                stack: 1120,
                alone: 104,
            },
            // f32 dense
            Price {
                instructions: [54_366, 13_605, 11_366, 4_540, 16_009, 0, 0, 0, 0],
                code: 760,
                stack: 96,
                alone: 48,
            },
            // dense
            Price {
                instructions: [132_911, 33_742, 11_172, 5_910, 13_975, 0, 0, 0, 0],
                code: 188,
                stack: 2332,
                alone: 220,
            },
            // dense, used inputs
            Price {
                instructions: [118_678, 27_647, 0, 8_010, 0, 0, 0, 0, 0],
                code: 104,
                stack: 2332,
                alone: 168,
            },
            // bitmask
            Price {
                instructions: [155_165, 19_499, 14_620, 14_049, 6_417, 0, 0, 0, 0],
                code: 284,
                stack: 2332,
                alone: 200,
            },
            // bitmask, used inputs
            Price {
                instructions: [163_423, 22_174, 16_958, 17_026, 8_126, 0, 0, 0, 0],
                code: 284,
                stack: 2332,
                alone: 204,
            },
            // rows
            Price {
                instructions: [109_331, 36_870, 8_276, 8_033, 0, 0, 0, 0, 0],
                code: 108,
                stack: 2332,
                alone: 168,
            },
            // distances
            Price {
                instructions: [142_357, 20_039, 17_650, 19_026, 0, 0, 0, 0, 0],
                code: 180,
                stack: 2332,
                alone: 192,
            },
            // blocks
            Price {
                instructions: [174_342, 11_848, 0, 5_084, 0, 27_269, 2_723, 5_775, 919],
                code: 788,
                stack: 2388,
                alone: 476,
            },
            // constant fan-in
            Price {
                instructions: [135_683, 33_422, 0, 8_018, 7_973, 0, 0, 0, 0],
                code: 284,
                stack: 2332,
                alone: 168,
            },
        ],
    },
    // Cortex-M33
    Prices {
        startup: 2216,
        floats: Frame {
            instructions: [0, 0, 0, 0, 0, 166, 112_001, 65_248, 141_492, 8_649, 8_022],
            file: 12380,
            module: 1760,
        },
        integers: Frame {
            instructions: [46_997, 9_991, 20_604, 3_369, 4_915, 5_638, 63_748, 10_183, 0, 0, 0],
            file: 16252,
            module: 1284,
        },
        kernels: [
            // f32 rows
            Price {
                instructions: [91_678, 37_336, 16_477, 11_439, 3_218, 0, 0, 0, 0],
                code: 988,
                stack: 1120,
                alone: 72,
            },
            // f32 rows under a sum
            Price { instructions: [0, 16, 0, 9_146, 5_865, 0, 0, 0, 0], code: 988, stack: 1120, alone: 84 },
            // f32 rows behind a hidden layer
            Price {
                instructions: [139_887, 34_920, 14_012, 11_330, 388, 0, 0, 0, 0],
                code: 988,
                stack: 1120,
                alone: 72,
            },
            // f32 windows
            Price {
                instructions: [122_586, 28_427, 8_950, 7_703, 0, 43_725, 17, 0, 0],
                code: 868,
                stack: 1120,
                alone: 104,
            },
            // f32 windows behind a hidden layer
            Price {
                instructions: [0, 26_999, 3_308, 6_894, 2_465, 52_928, 10_409, 0, 0],
                code: 868,
                stack: 1120,
                alone: 104,
            },
            // f32 short window
            Price {
                instructions: [168_041, 23_313, 14_881, 12_007, 0, 0, 0, 0, 0],
                code: 868,
                stack: 1120,
                alone: 104,
            },
            // f32 short window behind a hidden layer
            Price {
                instructions: [190_985, 25_385, 13_434, 11_949, 0, 0, 0, 0, 0],
                code: 868,
                stack: 1120,
                alone: 104,
            },
            // f32 dense
            Price {
                instructions: [54_366, 13_607, 11_366, 4_540, 16_009, 0, 0, 0, 0],
                code: 760,
                stack: 96,
                alone: 48,
            },
            // dense
            Price {
                instructions: [133_512, 33_751, 11_163, 5_922, 13_974, 0, 0, 0, 0],
                code: 188,
                stack: 2332,
                alone: 220,
            },
            // dense, used inputs
            Price {
                instructions: [120_179, 27_658, 0, 8_010, 0, 0, 0, 0, 0],
                code: 104,
                stack: 2332,
                alone: 168,
            },
            // bitmask
            Price {
                instructions: [156_546, 19_509, 14_624, 14_049, 6_418, 0, 0, 0, 0],
                code: 284,
                stack: 2332,
                alone: 200,
            },
            // bitmask, used inputs
            Price {
                instructions: [164_660, 22_183, 16_963, 17_026, 8_129, 0, 0, 0, 0],
                code: 288,
                stack: 2332,
                alone: 204,
            },
            // rows
            Price {
                instructions: [110_551, 36_870, 8_284, 8_035, 0, 0, 0, 0, 0],
                code: 108,
                stack: 2332,
                alone: 168,
            },
            // distances
            Price {
                instructions: [143_842, 20_047, 17_635, 19_026, 0, 0, 0, 0, 0],
                code: 184,
                stack: 2332,
                alone: 192,
            },
            // blocks
            Price {
                instructions: [177_166, 11_857, 0, 5_085, 0, 27_101, 2_702, 4_835, 916],
                code: 788,
                stack: 2388,
                alone: 476,
            },
            // constant fan-in
            Price {
                instructions: [135_231, 33_431, 0, 8_019, 7_972, 0, 0, 0, 0],
                code: 280,
                stack: 2332,
                alone: 168,
            },
        ],
    },
    // RV32IMAC
    Prices {
        startup: 698,
        floats: Frame {
            instructions: [0, 0, 0, 0, 0, 0, 52_209, 253_898, 181_206, 59_594, 24_241],
            file: 11992,
            module: 3248,
        },
        integers: Frame {
            instructions: [70_520, 14_510, 19_991, 3_718, 6_118, 8_278, 59_094, 11_340, 0, 0, 0],
            file: 15208,
            module: 1346,
        },
        kernels: [
            // f32 rows
            Price {
                instructions: [129_332, 100_138, 94_460, 135_625, 104_984, 0, 0, 0, 0],
                code: 796,
                stack: 1064,
                alone: 264,
            },
            // f32 rows under a sum
            Price {
                instructions: [0, 0, 0, 140_517, 91_369, 0, 0, 0, 0],
                code: 796,
                stack: 1056,
                alone: 152,
            },
            // f32 rows behind a hidden layer
            Price {
                instructions: [217_421, 86_067, 68_503, 105_786, 67_405, 0, 0, 0, 0],
                code: 796,
                stack: 1064,
                alone: 264,
            },
            // f32 windows
            Price {
                instructions: [0, 37_615, 88_971, 140_523, 72_177, 69_789, 7_162, 0, 0],
                code: 396,
                stack: 1056,
                alone: 180,
            },
            // f32 windows behind a hidden layer
            Price {
                instructions: [42_082, 14_107, 0, 69_817, 179_660, 59_822, 123_620, 0, 0],
                code: 396,
                stack: 1056,
                alone: 180,
            },
            // f32 short window
            Price {
                instructions: [195_197, 29_910, 91_461, 131_222, 0, 0, 0, 0, 0],
                code: 396,
                stack: 1056,
                alone: 180,
            },
            // f32 short window behind a hidden layer
            Price {
                instructions: [341_174, 49_265, 0, 97_183, 0, 0, 0, 0, 0],
                code: 396,
                stack: 1056,
                alone: 180,
            },
            // f32 dense
            Price {
                instructions: [347_768, 68_055, 143_409, 102_178, 481_497, 0, 0, 0, 0],
                code: 2512,
                stack: 132,
                alone: 84,
            },
            // dense
            Price {
                instructions: [124_209, 37_391, 9_976, 8_079, 18_975, 0, 0, 0, 0],
                code: 186,
                stack: 2288,
                alone: 172,
            },
            // dense, used inputs
            Price {
                instructions: [98_366, 25_167, 0, 11_008, 0, 0, 0, 0, 0],
                code: 114,
                stack: 2288,
                alone: 120,
            },
            // bitmask
            Price {
                instructions: [138_788, 14_677, 20_228, 19_060, 5_342, 0, 0, 0, 0],
                code: 358,
                stack: 2288,
                alone: 156,
            },
            // bitmask, used inputs
            Price {
                instructions: [148_746, 13_374, 23_004, 23_029, 6_133, 0, 0, 0, 0],
                code: 366,
                stack: 2288,
                alone: 156,
            },
            // rows
            Price {
                instructions: [95_633, 33_869, 10_916, 11_012, 0, 0, 0, 0, 0],
                code: 122,
                stack: 2288,
                alone: 120,
            },
            // distances
            Price {
                instructions: [125_272, 18_502, 11_871, 14_034, 0, 0, 0, 0, 0],
                code: 114,
                stack: 2288,
                alone: 144,
            },
            // blocks
            Price {
                instructions: [151_285, 15_046, 0, 7_252, 0, 24_951, 1_453, 534_128, 2_674],
                code: 1014,
                stack: 2324,
                alone: 420,
            },
            // constant fan-in
            Price {
                instructions: [107_235, 36_154, 0, 11_038, 10_986, 0, 0, 0, 0],
                code: 278,
                stack: 2288,
                alone: 120,
            },
        ],
    },
];
