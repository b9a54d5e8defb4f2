//! Durations on the command line: `5s` or `2m`; a bare number counts the option's own unit.

/// Parses a duration in whole milliseconds, at least one. A bare number counts milliseconds.
///
/// # Errors
/// If it is no duration.
pub fn milliseconds(typed: &str) -> Result<u64, String> {
    let millis = parsed(typed, 1)?;
    if millis == 0 { Err("give at least 1 ms".to_owned()) } else { Ok(millis) }
}

/// Parses a duration in seconds, rounded up. A bare number counts seconds.
///
/// # Errors
/// If it is no duration.
pub fn seconds(typed: &str) -> Result<u64, String> {
    Ok(parsed(typed, 1_000)?.div_ceil(1_000))
}

/// Parses a duration to milliseconds; a bare number is multiplied by `bare`.
fn parsed(typed: &str, bare: u64) -> Result<u64, String> {
    let end = typed.find(|c: char| !c.is_ascii_digit()).unwrap_or(typed.len());
    let (count, unit) = typed.split_at(end);
    let factor = match unit {
        "" => bare,
        "ms" => 1,
        "s" => 1_000,
        "m" | "min" => 60_000,
        "h" => 3_600_000,
        "d" => 86_400_000,
        _ => return Err(why(typed)),
    };
    let count: u64 = count.parse().map_err(|_| why(typed))?;
    count.checked_mul(factor).ok_or_else(|| why(typed))
}

fn why(typed: &str) -> String {
    format!("`{typed}` is not a duration: give one such as 500ms, 5s, 2m or 1h")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bare_number_keeps_option_unit() {
        let all =
            ["5", "5s", "2m", "1500ms", "1h", "2min", "1d"].map(|it| milliseconds(it).unwrap());
        assert_eq!(all, [5, 5_000, 120_000, 1_500, 3_600_000, 120_000, 86_400_000]);
        let all = ["0", "5", "5s", "1500ms", "2m"].map(|it| seconds(it).unwrap());
        assert_eq!(all, [0, 5, 5, 2, 120]);
        for wrong in ["", "s", "5 s", "-1s", "1.5s", "5y", "99999999999999999999s", "1ü", "0"] {
            assert!(milliseconds(wrong).is_err(), "{wrong}");
        }
    }
}
