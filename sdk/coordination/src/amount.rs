//! Whole numbers in place of fractions: sums of them do not depend on the order of their parts.

/// Parts of one: a confidence of 1 has 1,000,000 millionths.
pub(crate) const ONE: u64 = 1_000_000;

/// Highest value that counts; larger ones are taken for it.
const MAX_VALUE: f64 = 1_000_000.0;

/// Number in millionths; what is below 0 or no number counts as 0.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "the value lies between 0 and 10^12"
)]
pub(crate) fn millionths(number: f64) -> u64 {
    if number.is_nan() { 0 } else { (number.clamp(0.0, MAX_VALUE) * 1e6).round() as u64 }
}

/// Share between 0 and 1 in millionths.
pub(crate) fn share(number: f64) -> u64 {
    millionths(number).min(ONE)
}

/// Number of millionths as a fraction.
#[expect(clippy::cast_precision_loss, reason = "a number to show; decisions use the whole number")]
pub(crate) fn fraction(millionths: u64) -> f64 {
    millionths as f64 / 1e6
}
