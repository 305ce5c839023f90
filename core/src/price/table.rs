//! Generated: prices in thousandths of an instruction, code and stack in bytes, one entry for each of `Core::ALL`.
//!
//! Made by `cargo ci costs (rustc 1.95.0)`.
//! Do not edit: run that again.
//!
//! - a prediction: prediction, byte, number, own factor, bias, relu, sum, sign, sum of the scratch, its sign, relu of the scratch
//! - a layer: layer, row, first weight, weight, group, window, output, short row, copied byte

use super::ways::Ways;
use super::{Frame, Price, Prices};

pub(super) static TABLE: [Prices; 6] = [
    // Cortex-M0
    Prices {
        startup: 380,
        plain: 1000,
        ways: Ways {
            floats: [[1000, 100]; 16],
            float_file: [[10000, 1000]; 4],
            integers: [[1000, 100]; 36],
            besides: [[10, 0]; 5],
            integer_file: [14000, 1700],
            straight: [[1000; 12]; 2],
            rust: [[0, 0]; 2],
            c_floats: [[1000, 100]; 16],
            c_integers: [[1000, 100]; 36],
            c_besides: [[10, 0]; 5],
        },
        floats: Frame { instructions: [0, 0, 0, 0, 0, 0, 23_825, 380_740, 219_829, 89_978, 33_962] },
        integers: Frame {
            instructions: [109_079, 83_501, 74_784, 1_988, 3_934, 7_763, 63_115, 9_212, 0, 0, 0],
        },
        kernels: [
            // f32 rows
            Price {
                instructions: [142_447, 99_275, 176_886, 242_891, 217_559, 0, 0, 0, 0],
                stack: 1292,
                alone: 452,
            },
            // f32 rows under a sum
            Price { instructions: [0, 0, 0, 243_003, 218_387, 0, 0, 0, 0], stack: 1228, alone: 276 },
            // f32 rows behind a hidden layer
            Price {
                instructions: [299_477, 75_375, 130_083, 168_219, 181_532, 0, 0, 0, 0],
                stack: 1292,
                alone: 452,
            },
            // f32 windows
            Price {
                instructions: [0, 44_842, 140_293, 247_839, 173_949, 85_920, 35_086, 0, 0],
                stack: 1228,
                alone: 372,
            },
            // f32 windows behind a hidden layer
            Price { instructions: [0, 0, 0, 107_774, 361_531, 0, 251_738, 0, 0], stack: 1228, alone: 372 },
            // f32 short window
            Price {
                instructions: [199_080, 39_380, 174_407, 238_681, 0, 0, 0, 0, 0],
                stack: 1228,
                alone: 372,
            },
            // f32 short window behind a hidden layer
            Price {
                instructions: [429_311, 75_633, 14_271, 167_195, 0, 0, 0, 0, 0],
                stack: 1228,
                alone: 372,
            },
            // f32 dense
            Price {
                instructions: [431_654, 56_246, 248_916, 208_863, 903_116, 0, 0, 0, 0],
                stack: 236,
                alone: 180,
            },
            // dense
            Price {
                instructions: [243_442, 13_533, 33_669, 9_986, 32_807, 0, 0, 0, 0],
                stack: 2512,
                alone: 288,
            },
            // dense, used inputs
            Price { instructions: [161_219, 42_328, 0, 13_000, 0, 0, 0, 0, 0], stack: 2512, alone: 192 },
            // bitmask
            Price {
                instructions: [216_393, 30_735, 31_654, 33_112, 9_420, 0, 0, 0, 0],
                stack: 2512,
                alone: 280,
            },
            // bitmask, used inputs
            Price {
                instructions: [211_352, 30_764, 41_681, 42_001, 12_247, 0, 0, 0, 0],
                stack: 2512,
                alone: 280,
            },
            // rows
            Price { instructions: [72_949, 63_128, 16_145, 13_058, 0, 0, 0, 0, 0], stack: 2512, alone: 192 },
            // distances
            Price { instructions: [115_248, 33_540, 26_924, 25_011, 0, 0, 0, 0, 0], stack: 2512, alone: 232 },
            // blocks
            Price {
                instructions: [77_533, 41_666, 0, 5_796, 12_526, 76_620, 5_398, 132_229, 2_971],
                stack: 2512,
                alone: 524,
            },
            // constant fan-in
            Price { instructions: [362_995, 51_221, 0, 13_182, 13_194, 0, 0, 0, 0], stack: 2512, alone: 192 },
        ],
    },
    // Cortex-M3
    Prices {
        startup: 1232,
        plain: 1000,
        ways: Ways {
            floats: [[1000, 100]; 16],
            float_file: [[10000, 1000]; 4],
            integers: [[1000, 100]; 36],
            besides: [[10, 0]; 5],
            integer_file: [14000, 1700],
            straight: [[1000; 12]; 2],
            rust: [[0, 0]; 2],
            c_floats: [[1000, 100]; 16],
            c_integers: [[1000, 100]; 36],
            c_besides: [[10, 0]; 5],
        },
        floats: Frame { instructions: [0, 0, 0, 0, 0, 0, 0, 255_657, 126_973, 71_481, 27_699] },
        integers: Frame { instructions: [69_593, 25_273, 23_542, 0, 4_277, 5_254, 57_380, 8_070, 0, 0, 0] },
        kernels: [
            // f32 rows
            Price {
                instructions: [96_490, 79_563, 97_299, 138_081, 138_147, 0, 0, 0, 0],
                stack: 1112,
                alone: 280,
            },
            // f32 rows under a sum
            Price { instructions: [0, 0, 0, 140_271, 132_048, 0, 0, 0, 0], stack: 1112, alone: 184 },
            // f32 rows behind a hidden layer
            Price {
                instructions: [181_394, 71_717, 84_230, 104_328, 123_997, 0, 0, 0, 0],
                stack: 1112,
                alone: 280,
            },
            // f32 windows
            Price {
                instructions: [104_500, 40_288, 40_060, 140_579, 115_107, 41_876, 42_475, 0, 0],
                stack: 1112,
                alone: 200,
            },
            // f32 windows behind a hidden layer
            Price {
                instructions: [462_062, 0, 0, 94_619, 145_895, 0, 146_655, 0, 0],
                stack: 1112,
                alone: 200,
            },
            // f32 short window
            Price {
                instructions: [156_829, 31_891, 96_241, 139_451, 0, 0, 0, 0, 0],
                stack: 1112,
                alone: 200,
            },
            // f32 short window behind a hidden layer
            Price {
                instructions: [265_918, 45_654, 41_065, 109_404, 0, 0, 0, 0, 0],
                stack: 1112,
                alone: 200,
            },
            // f32 dense
            Price {
                instructions: [43_393, 0, 130_826, 137_285, 530_738, 0, 0, 0, 0],
                stack: 168,
                alone: 120,
            },
            // dense
            Price {
                instructions: [126_965, 14_610, 10_507, 6_609, 13_996, 0, 0, 0, 0],
                stack: 2332,
                alone: 192,
            },
            // dense, used inputs
            Price { instructions: [87_409, 30_518, 0, 8_000, 0, 0, 0, 0, 0], stack: 2332, alone: 160 },
            // bitmask
            Price {
                instructions: [120_547, 20_122, 15_182, 14_060, 6_454, 0, 0, 0, 0],
                stack: 2332,
                alone: 192,
            },
            // bitmask, used inputs
            Price {
                instructions: [123_766, 23_996, 17_784, 17_020, 7_781, 0, 0, 0, 0],
                stack: 2332,
                alone: 196,
            },
            // rows
            Price { instructions: [85_590, 38_657, 8_811, 8_002, 0, 0, 0, 0, 0], stack: 2332, alone: 160 },
            // distances
            Price { instructions: [106_168, 19_255, 21_098, 19_000, 0, 0, 0, 0, 0], stack: 2332, alone: 184 },
            // blocks
            Price {
                instructions: [74_181, 27_014, 0, 3_905, 7_899, 61_253, 1_909, 120_320, 992],
                stack: 2416,
                alone: 504,
            },
            // constant fan-in
            Price { instructions: [100_018, 35_526, 0, 8_040, 8_006, 0, 0, 0, 0], stack: 2332, alone: 160 },
        ],
    },
    // Cortex-M4F
    Prices {
        startup: 1256,
        plain: 1000,
        ways: Ways {
            floats: [[1000, 100]; 16],
            float_file: [[10000, 1000]; 4],
            integers: [[1000, 100]; 36],
            besides: [[10, 0]; 5],
            integer_file: [14000, 1700],
            straight: [[1000; 12]; 2],
            rust: [[0, 0]; 2],
            c_floats: [[1000, 100]; 16],
            c_integers: [[1000, 100]; 36],
            c_besides: [[10, 0]; 5],
        },
        floats: Frame { instructions: [0, 0, 0, 0, 0, 132, 106_677, 68_721, 143_838, 8_608, 8_008] },
        integers: Frame { instructions: [70_548, 26_272, 23_542, 0, 4_274, 5_248, 55_341, 8_074, 0, 0, 0] },
        kernels: [
            // f32 rows
            Price {
                instructions: [90_690, 38_336, 16_509, 11_438, 3_219, 0, 0, 0, 0],
                stack: 1120,
                alone: 72,
            },
            // f32 rows under a sum
            Price { instructions: [0, 14, 0, 9_570, 4_661, 0, 0, 0, 0], stack: 1120, alone: 92 },
            // f32 rows behind a hidden layer
            Price {
                instructions: [140_059, 35_913, 14_005, 11_344, 372, 0, 0, 0, 0],
                stack: 1120,
                alone: 72,
            },
            // f32 windows
            Price {
                instructions: [121_212, 28_477, 8_806, 7_704, 0, 43_791, 0, 0, 0],
                stack: 1120,
                alone: 104,
            },
            // f32 windows behind a hidden layer
            Price {
                instructions: [0, 26_884, 3_758, 6_902, 2_443, 53_859, 10_179, 0, 0],
                stack: 1120,
                alone: 104,
            },
            // f32 short window
            Price { instructions: [167_141, 23_321, 14_879, 12_007, 0, 0, 0, 0, 0], stack: 1120, alone: 104 },
            // f32 short window behind a hidden layer
            Price { instructions: [190_955, 25_380, 13_456, 11_949, 0, 0, 0, 0, 0], stack: 1120, alone: 104 },
            // f32 dense
            Price { instructions: [54_366, 13_641, 11_366, 4_540, 16_009, 0, 0, 0, 0], stack: 96, alone: 48 },
            // dense
            Price {
                instructions: [124_294, 13_683, 13_433, 6_584, 13_996, 0, 0, 0, 0],
                stack: 2332,
                alone: 196,
            },
            // dense, used inputs
            Price { instructions: [84_454, 29_518, 0, 8_000, 0, 0, 0, 0, 0], stack: 2332, alone: 160 },
            // bitmask
            Price {
                instructions: [117_551, 20_130, 15_173, 14_060, 6_455, 0, 0, 0, 0],
                stack: 2332,
                alone: 192,
            },
            // bitmask, used inputs
            Price {
                instructions: [120_835, 23_998, 17_785, 17_020, 7_781, 0, 0, 0, 0],
                stack: 2332,
                alone: 196,
            },
            // rows
            Price { instructions: [82_579, 37_662, 8_807, 8_003, 0, 0, 0, 0, 0], stack: 2332, alone: 160 },
            // distances
            Price { instructions: [103_218, 19_254, 21_101, 19_000, 0, 0, 0, 0, 0], stack: 2332, alone: 184 },
            // blocks
            Price {
                instructions: [71_444, 30_996, 0, 3_912, 7_849, 60_140, 1_924, 121_120, 993],
                stack: 2424,
                alone: 512,
            },
            // constant fan-in
            Price { instructions: [97_109, 34_524, 0, 8_040, 8_005, 0, 0, 0, 0], stack: 2332, alone: 160 },
        ],
    },
    // Cortex-M7
    Prices {
        startup: 1256,
        plain: 1000,
        ways: Ways {
            floats: [[1000, 100]; 16],
            float_file: [[10000, 1000]; 4],
            integers: [[1000, 100]; 36],
            besides: [[10, 0]; 5],
            integer_file: [14000, 1700],
            straight: [[1000; 12]; 2],
            rust: [[0, 0]; 2],
            c_floats: [[1000, 100]; 16],
            c_integers: [[1000, 100]; 36],
            c_besides: [[10, 0]; 5],
        },
        floats: Frame { instructions: [0, 0, 0, 0, 0, 132, 106_677, 68_721, 143_838, 8_608, 8_008] },
        integers: Frame { instructions: [70_548, 26_272, 23_542, 0, 4_274, 5_248, 55_341, 8_074, 0, 0, 0] },
        kernels: [
            // f32 rows
            Price {
                instructions: [90_690, 38_336, 16_509, 11_438, 3_219, 0, 0, 0, 0],
                stack: 1120,
                alone: 72,
            },
            // f32 rows under a sum
            Price { instructions: [0, 14, 0, 9_570, 4_661, 0, 0, 0, 0], stack: 1120, alone: 92 },
            // f32 rows behind a hidden layer
            Price {
                instructions: [140_059, 35_913, 14_005, 11_344, 372, 0, 0, 0, 0],
                stack: 1120,
                alone: 72,
            },
            // f32 windows
            Price {
                instructions: [121_212, 28_477, 8_806, 7_704, 0, 43_791, 0, 0, 0],
                stack: 1120,
                alone: 104,
            },
            // f32 windows behind a hidden layer
            Price {
                instructions: [0, 26_884, 3_758, 6_902, 2_443, 53_859, 10_179, 0, 0],
                stack: 1120,
                alone: 104,
            },
            // f32 short window
            Price { instructions: [167_141, 23_321, 14_879, 12_007, 0, 0, 0, 0, 0], stack: 1120, alone: 104 },
            // f32 short window behind a hidden layer
            Price { instructions: [190_955, 25_380, 13_456, 11_949, 0, 0, 0, 0, 0], stack: 1120, alone: 104 },
            // f32 dense
            Price { instructions: [54_366, 13_641, 11_366, 4_540, 16_009, 0, 0, 0, 0], stack: 96, alone: 48 },
            // dense
            Price {
                instructions: [124_294, 13_683, 13_433, 6_584, 13_996, 0, 0, 0, 0],
                stack: 2332,
                alone: 196,
            },
            // dense, used inputs
            Price { instructions: [84_454, 29_518, 0, 8_000, 0, 0, 0, 0, 0], stack: 2332, alone: 160 },
            // bitmask
            Price {
                instructions: [117_551, 20_130, 15_173, 14_060, 6_455, 0, 0, 0, 0],
                stack: 2332,
                alone: 192,
            },
            // bitmask, used inputs
            Price {
                instructions: [120_835, 23_998, 17_785, 17_020, 7_781, 0, 0, 0, 0],
                stack: 2332,
                alone: 196,
            },
            // rows
            Price { instructions: [82_579, 37_662, 8_807, 8_003, 0, 0, 0, 0, 0], stack: 2332, alone: 160 },
            // distances
            Price { instructions: [103_218, 19_254, 21_101, 19_000, 0, 0, 0, 0, 0], stack: 2332, alone: 184 },
            // blocks
            Price {
                instructions: [71_444, 30_996, 0, 3_912, 7_849, 60_140, 1_924, 121_120, 993],
                stack: 2424,
                alone: 512,
            },
            // constant fan-in
            Price { instructions: [97_109, 34_524, 0, 8_040, 8_005, 0, 0, 0, 0], stack: 2332, alone: 160 },
        ],
    },
    // Cortex-M33
    Prices {
        startup: 2216,
        plain: 1000,
        ways: Ways {
            floats: [[1000, 100]; 16],
            float_file: [[10000, 1000]; 4],
            integers: [[1000, 100]; 36],
            besides: [[10, 0]; 5],
            integer_file: [14000, 1700],
            straight: [[1000; 12]; 2],
            rust: [[0, 0]; 2],
            c_floats: [[1000, 100]; 16],
            c_integers: [[1000, 100]; 36],
            c_besides: [[10, 0]; 5],
        },
        floats: Frame { instructions: [0, 0, 0, 0, 0, 130, 106_696, 66_710, 141_498, 8_649, 8_022] },
        integers: Frame { instructions: [68_585, 25_274, 23_541, 0, 4_276, 5_253, 57_359, 8_071, 0, 0, 0] },
        kernels: [
            // f32 rows
            Price {
                instructions: [90_694, 37_342, 16_499, 11_430, 3_245, 0, 0, 0, 0],
                stack: 1120,
                alone: 72,
            },
            // f32 rows under a sum
            Price { instructions: [0, 13, 0, 9_562, 4_689, 0, 0, 0, 0], stack: 1120, alone: 92 },
            // f32 rows behind a hidden layer
            Price {
                instructions: [140_013, 34_928, 13_996, 11_352, 342, 0, 0, 0, 0],
                stack: 1120,
                alone: 72,
            },
            // f32 windows
            Price {
                instructions: [121_568, 28_426, 8_951, 7_703, 0, 43_732, 17, 0, 0],
                stack: 1120,
                alone: 104,
            },
            // f32 windows behind a hidden layer
            Price {
                instructions: [0, 27_004, 3_293, 6_894, 2_465, 52_878, 10_415, 0, 0],
                stack: 1120,
                alone: 104,
            },
            // f32 short window
            Price { instructions: [167_033, 23_314, 14_881, 12_007, 0, 0, 0, 0, 0], stack: 1120, alone: 104 },
            // f32 short window behind a hidden layer
            Price { instructions: [190_985, 25_386, 13_434, 11_949, 0, 0, 0, 0, 0], stack: 1120, alone: 104 },
            // f32 dense
            Price { instructions: [54_366, 13_643, 11_366, 4_540, 16_009, 0, 0, 0, 0], stack: 96, alone: 48 },
            // dense
            Price {
                instructions: [126_982, 14_609, 10_507, 6_609, 13_996, 0, 0, 0, 0],
                stack: 2332,
                alone: 192,
            },
            // dense, used inputs
            Price { instructions: [87_426, 29_518, 0, 8_000, 0, 0, 0, 0, 0], stack: 2332, alone: 160 },
            // bitmask
            Price {
                instructions: [120_556, 20_123, 15_180, 14_060, 6_454, 0, 0, 0, 0],
                stack: 2332,
                alone: 192,
            },
            // bitmask, used inputs
            Price {
                instructions: [123_779, 23_998, 17_782, 17_020, 7_781, 0, 0, 0, 0],
                stack: 2332,
                alone: 196,
            },
            // rows
            Price { instructions: [85_573, 37_659, 8_809, 8_003, 0, 0, 0, 0, 0], stack: 2332, alone: 160 },
            // distances
            Price { instructions: [106_181, 19_256, 21_098, 19_000, 0, 0, 0, 0, 0], stack: 2332, alone: 184 },
            // blocks
            Price {
                instructions: [74_255, 28_009, 0, 3_907, 7_885, 61_219, 1_913, 120_254, 992],
                stack: 2420,
                alone: 508,
            },
            // constant fan-in
            Price { instructions: [100_037, 34_525, 0, 8_040, 8_006, 0, 0, 0, 0], stack: 2332, alone: 160 },
        ],
    },
    // RV32IMAC
    Prices {
        startup: 698,
        plain: 1000,
        ways: Ways {
            floats: [[1000, 100]; 16],
            float_file: [[10000, 1000]; 4],
            integers: [[1000, 100]; 36],
            besides: [[10, 0]; 5],
            integer_file: [14000, 1700],
            straight: [[1000; 12]; 2],
            rust: [[0, 0]; 2],
            c_floats: [[1000, 100]; 16],
            c_integers: [[1000, 100]; 36],
            c_besides: [[10, 0]; 5],
        },
        floats: Frame { instructions: [0, 0, 0, 0, 0, 0, 53_220, 253_898, 183_115, 59_606, 24_246] },
        integers: Frame { instructions: [97_560, 26_818, 20_821, 872, 5_312, 8_121, 44_631, 9_246, 0, 0, 0] },
        kernels: [
            // f32 rows
            Price {
                instructions: [131_320, 100_136, 94_468, 135_624, 104_985, 0, 0, 0, 0],
                stack: 1064,
                alone: 264,
            },
            // f32 rows under a sum
            Price { instructions: [0, 0, 0, 140_516, 91_372, 0, 0, 0, 0], stack: 1056, alone: 152 },
            // f32 rows behind a hidden layer
            Price {
                instructions: [219_459, 86_058, 68_511, 105_772, 67_423, 0, 0, 0, 0],
                stack: 1064,
                alone: 264,
            },
            // f32 windows
            Price {
                instructions: [0, 37_523, 89_207, 140_513, 72_204, 70_820, 7_120, 0, 0],
                stack: 1056,
                alone: 180,
            },
            // f32 windows behind a hidden layer
            Price {
                instructions: [42_270, 14_102, 0, 69_813, 179_671, 59_800, 123_639, 0, 0],
                stack: 1056,
                alone: 180,
            },
            // f32 short window
            Price {
                instructions: [197_167, 29_904, 91_468, 131_222, 0, 0, 0, 0, 0],
                stack: 1056,
                alone: 180,
            },
            // f32 short window behind a hidden layer
            Price { instructions: [343_137, 49_265, 0, 97_182, 0, 0, 0, 0, 0], stack: 1056, alone: 180 },
            // f32 dense
            Price {
                instructions: [347_768, 68_055, 143_409, 102_178, 481_497, 0, 0, 0, 0],
                stack: 132,
                alone: 84,
            },
            // dense
            Price {
                instructions: [119_299, 12_854, 13_367, 6_933, 18_996, 0, 0, 0, 0],
                stack: 2288,
                alone: 148,
            },
            // dense, used inputs
            Price { instructions: [70_753, 27_988, 0, 11_000, 0, 0, 0, 0, 0], stack: 2288, alone: 112 },
            // bitmask
            Price {
                instructions: [107_174, 15_514, 20_298, 19_070, 5_404, 0, 0, 0, 0],
                stack: 2288,
                alone: 140,
            },
            // bitmask, used inputs
            Price {
                instructions: [112_220, 15_137, 23_771, 23_009, 5_824, 0, 0, 0, 0],
                stack: 2288,
                alone: 140,
            },
            // rows
            Price { instructions: [71_628, 35_740, 11_286, 10_992, 0, 0, 0, 0, 0], stack: 2288, alone: 112 },
            // distances
            Price { instructions: [92_481, 17_937, 15_045, 14_002, 0, 0, 0, 0, 0], stack: 2288, alone: 128 },
            // blocks
            Price {
                instructions: [66_237, 47_519, 0, 6_025, 8_041, 58_522, 2_396, 236_435, 2_745],
                stack: 2360,
                alone: 456,
            },
            // constant fan-in
            Price { instructions: [76_386, 38_127, 0, 11_053, 10_997, 0, 0, 0, 0], stack: 2288, alone: 112 },
        ],
    },
];
