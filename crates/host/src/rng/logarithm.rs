//! A logarithm that is quick and nearly exact.
//!
//! What is drawn has to be the same on every machine, to the nanosecond. The logarithm of
//! `libm` is, and takes most of the time of a draw. This one is quick and off by less than
//! [`ERROR`]: where that cannot matter, the exact one need not be asked.

/// Bits of the table's index.
const INDEX_BITS: u32 = 8;
const ENTRIES: usize = 1 << INDEX_BITS;

/// By how much [`negative_log`] is off at most: the first term of the series that is left out
/// is below 2^-9 to the fifth, over five; rounding adds less than 2^-46.
pub(super) const ERROR: f64 = 1.0 / (1_u64 << 45) as f64;

const LN_2: f64 = core::f64::consts::LN_2;

/// Of the middle of each part of [1, 2): its reciprocal, and the logarithm of that one.
static TABLE: [(f64, f64); ENTRIES] = table();

const fn table() -> [(f64, f64); ENTRIES] {
    let mut table = [(0.0, 0.0); ENTRIES];
    let mut i = 0;
    while i < ENTRIES {
        let middle = 1.0 + (i as f64 + 0.5) / ENTRIES as f64;
        let reciprocal = 1.0 / middle;
        table[i] = (reciprocal, -log_by_series(reciprocal));
        i += 1;
    }
    table
}

/// The logarithm of a number from a half to 1, when the program is compiled: twice the
/// inverse hyperbolic tangent of (x - 1) / (x + 1).
const fn log_by_series(x: f64) -> f64 {
    let z = (x - 1.0) / (x + 1.0);
    let (mut power, mut sum, mut n) = (z, 0.0, 1);
    // The quotient is below a third: forty terms are far below what a number can hold.
    while n < 80 {
        sum += power / n as f64;
        power *= z * z;
        n += 2;
    }
    2.0 * sum
}

/// Minus the logarithm of a number from 2^-53 to 1, off by less than [`ERROR`].
#[inline]
pub(super) fn negative_log(x: f64) -> f64 {
    let bits = x.to_bits();
    let exponent = (bits >> 52) as i64 - 1_023;
    let mantissa = f64::from_bits(bits & ((1 << 52) - 1) | 1_023 << 52);
    let index = (bits >> (52 - INDEX_BITS)) as usize % ENTRIES;
    let (reciprocal, log) = TABLE[index];
    // Below 2^-9: the number over the middle of its part, less one.
    let r = mantissa * reciprocal - 1.0;
    let series = r - r * r * (0.5 - r * (1.0 / 3.0 - r * 0.25));
    -(exponent as f64 * LN_2 + log + series)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn is_near(bits: u64) -> Result<(), TestCaseError> {
        let x = bits as f64 * (1.0 / (1_u64 << 53) as f64);
        let (quick, exact) = (negative_log(x), -libm::log(x));
        prop_assert!(
            (quick - exact).abs() < ERROR,
            "{x:e}: {quick} for {exact}, off by {:e}",
            quick - exact
        );
        Ok(())
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(20_000))]

        #[test]
        fn it_is_near_the_exact_one(bits in 1_u64..=1 << 53, shift in 0_u32..53) {
            is_near(bits)?;
            is_near((bits >> shift).max(1))?;
            is_near((1 << 53) - (bits >> shift))?;
        }
    }

    #[test]
    fn it_is_near_at_the_ends_of_each_part() {
        for i in 0..=ENTRIES as u64 {
            let end = (1 << 52) + (i << (52 - INDEX_BITS));
            for bits in [end - 1, end, (end + 1).min(1 << 53)] {
                is_near(bits).expect("at the end of a part");
            }
        }
    }
}
