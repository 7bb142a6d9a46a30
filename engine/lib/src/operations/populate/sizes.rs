//! File sizes around a mean. They are the same on any machine, because they come from a table and not from the
//! logarithm function of a libm.

use serde::{Deserialize, Serialize};

use crate::random::Stream;

/// Distribution of the sizes around their mean.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Distribution {
    /// All sizes equal the mean.
    Fixed,
    /// Uniform from 0.5 to 1.5 times the mean.
    Uniform,
    /// Log-normal with σ = 1, from 0.03 to 12 times the mean: many small files and a few much larger ones, as in real
    /// trees.
    #[default]
    Lognormal,
}

impl Distribution {
    /// Draw a size in bytes.
    pub(super) fn draw(self, mean: u64, stream: &mut Stream) -> u64 {
        match self {
            Self::Fixed => mean,
            Self::Uniform => mean / 2 + stream.below(mean.max(1)),
            Self::Lognormal => {
                let quantile = usize::try_from(stream.below(256)).unwrap_or(0);
                // A factor from 0.9 to 1.1, so that there are more than 256 different sizes.
                let factor = (u64::from(LOGNORMAL[quantile]) * (58_982 + stream.below(13_108))) >> 16;
                u64::try_from((u128::from(mean) * u128::from(factor)) >> 16).unwrap_or(u64::MAX)
            }
        }
    }
}

/// Medians of 256 parts of equal probability of the log-normal distribution with σ = 1, scaled to a mean of 65,536.
#[rustfmt::skip]
const LOGNORMAL: [u32; 256] = [
    2_233, 3_217, 3_872, 4_404, 4_867, 5_286, 5_673, 6_037, 6_381, 6_711, 7_029, 7_336,
    7_635, 7_926, 8_211, 8_490, 8_764, 9_034, 9_299, 9_562, 9_821, 10_077, 10_332, 10_583,
    10_833, 11_082, 11_328, 11_573, 11_817, 12_060, 12_302, 12_543, 12_783, 13_023, 13_262, 13_501,
    13_739, 13_977, 14_215, 14_453, 14_690, 14_928, 15_166, 15_403, 15_641, 15_880, 16_118, 16_357,
    16_596, 16_835, 17_075, 17_316, 17_557, 17_798, 18_041, 18_284, 18_527, 18_772, 19_017, 19_263,
    19_509, 19_757, 20_006, 20_255, 20_506, 20_757, 21_010, 21_264, 21_518, 21_774, 22_031, 22_290,
    22_549, 22_810, 23_073, 23_336, 23_601, 23_867, 24_135, 24_404, 24_675, 24_947, 25_221, 25_497,
    25_774, 26_053, 26_333, 26_616, 26_900, 27_186, 27_473, 27_763, 28_055, 28_348, 28_644, 28_941,
    29_241, 29_543, 29_847, 30_153, 30_461, 30_772, 31_085, 31_400, 31_718, 32_039, 32_361, 32_687,
    33_015, 33_345, 33_679, 34_015, 34_354, 34_695, 35_040, 35_388, 35_738, 36_092, 36_449, 36_809,
    37_172, 37_539, 37_909, 38_282, 38_659, 39_040, 39_424, 39_812, 40_204, 40_599, 40_999, 41_402,
    41_810, 42_222, 42_638, 43_059, 43_484, 43_913, 44_347, 44_786, 45_230, 45_679, 46_133, 46_592,
    47_056, 47_525, 48_000, 48_481, 48_967, 49_460, 49_958, 50_463, 50_973, 51_491, 52_014, 52_545,
    53_082, 53_627, 54_179, 54_738, 55_305, 55_879, 56_462, 57_053, 57_652, 58_260, 58_876, 59_502,
    60_137, 60_782, 61_436, 62_101, 62_776, 63_462, 64_158, 64_866, 65_586, 66_318, 67_062, 67_819,
    68_589, 69_372, 70_169, 70_981, 71_808, 72_650, 73_508, 74_382, 75_274, 76_182, 77_110, 78_055,
    79_021, 80_007, 81_013, 82_042, 83_093, 84_167, 85_266, 86_391, 87_542, 88_721, 89_928, 91_166,
    92_435, 93_737, 95_073, 96_445, 97_855, 99_305, 100_796, 102_331, 103_911, 105_540, 107_221, 108_955,
    110_746, 112_598, 114_514, 116_498, 118_554, 120_688, 122_904, 125_208, 127_607, 130_107, 132_716, 135_444,
    138_299, 141_293, 144_437, 147_746, 151_235, 154_922, 158_828, 162_977, 167_396, 172_119, 177_183, 182_635,
    188_531, 194_937, 201_938, 209_639, 218_172, 227_712, 238_490, 250_820, 265_149, 282_135, 302_801, 328_855,
    363_449, 413_351, 497_485, 716_733,
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mean_is_kept() {
        assert_eq!(LOGNORMAL.iter().map(|&value| u64::from(value)).sum::<u64>(), 256 * 65_536);
        for distribution in [Distribution::Fixed, Distribution::Uniform, Distribution::Lognormal] {
            let mut stream = Stream::new(1, 1);
            let sum: u64 = (0..200_000).map(|_| distribution.draw(32_768, &mut stream)).sum();
            let mean = sum as f64 / 200_000.0;
            assert!((mean / 32_768.0 - 1.0).abs() < 0.02, "{distribution:?}: {mean}");
        }
    }
}
