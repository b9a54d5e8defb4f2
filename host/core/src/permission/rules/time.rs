//! Times of rules: RFC 3339 in UTC, compared as text.

use std::cmp::Ordering;

/// Order of two times, or `None` if one of them has another form.
pub(super) fn compare(one: &str, other: &str) -> Option<Ordering> {
    Some(parts(one)?.cmp(&parts(other)?))
}

/// True if a time has the form that [`compare`] reads.
pub(super) fn is_time(text: &str) -> bool {
    parts(text).is_some()
}

/// Text of the whole seconds, and the digits of their fraction without zeros at the end.
fn parts(text: &str) -> Option<(&str, &str)> {
    const FORM: &str = "0000-00-00T00:00:00";
    let (seconds, fraction) = text.strip_suffix('Z')?.split_at_checked(FORM.len())?;
    let has_form = seconds.chars().zip(FORM.chars()).all(|(c, form)| match form {
        '0' => c.is_ascii_digit(),
        form => c == form,
    });
    let digits = if fraction.is_empty() { "" } else { fraction.strip_prefix('.')? };
    let is_fraction = digits.chars().all(|c| c.is_ascii_digit());
    (has_form && is_fraction).then(|| (seconds, digits.trim_end_matches('0')))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fractions_are_ordered_after_seconds() {
        let order = |one, other| compare(one, other);
        let plain = "2026-01-01T00:00:00Z";
        assert_eq!(order(plain, "2026-01-01T00:00:00.5Z"), Some(Ordering::Less));
        assert_eq!(order(plain, "2026-01-01T00:00:00.000Z"), Some(Ordering::Equal));
        assert_eq!(order("2027-01-01T00:00:00Z", plain), Some(Ordering::Greater));
        for other in ["", "2027", "2026-01-01T00:00:00+02:00", "2026-01-01T00:00:00.xZ", "ä"] {
            assert_eq!(order(other, plain), None, "{other}");
        }
    }
}
