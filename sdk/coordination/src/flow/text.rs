//! Shortened texts, and texts of durations.

/// Shortens a text to `max_bytes` bytes, and says so.
pub(super) fn cut(text: &mut String, max_bytes: usize) {
    const CUT: &str = "\n[cut]";
    if text.len() > max_bytes {
        let mut end = max_bytes.saturating_sub(CUT.len());
        while !text.is_char_boundary(end) {
            end -= 1;
        }
        text.truncate(end);
        text.push_str(CUT);
    }
}

/// First line of a text, shortened.
pub(super) fn one_line(text: &str) -> String {
    let line = text.trim().lines().next().unwrap_or_default();
    line.chars().take(200).collect()
}

/// Duration in its largest units, such as `2h 5m`.
pub(super) fn duration(ms: u64) -> String {
    let units = [("d", 86_400_000), ("h", 3_600_000), ("m", 60_000), ("s", 1_000), ("ms", 1)];
    let (mut rest, mut parts) = (ms, Vec::new());
    for (unit, size) in units {
        if rest >= size {
            parts.push(format!("{}{unit}", rest / size));
            rest %= size;
        }
    }
    if parts.is_empty() { "0s".to_owned() } else { parts.join(" ") }
}
