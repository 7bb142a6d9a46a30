//! Sizes and times as users write them.

/// Parse a size in bytes, such as `4096`, `4k`, `1m` or `2GiB`. Units are powers of 1024, in upper or lower case.
pub fn parse_size(text: &str) -> Result<u64, String> {
    let lower = text.trim().to_ascii_lowercase();
    let digits = lower.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let factor: u64 = match &lower[digits.len()..] {
        "" | "b" => 1,
        "k" | "kb" | "kib" => 1 << 10,
        "m" | "mb" | "mib" => 1 << 20,
        "g" | "gb" | "gib" => 1 << 30,
        "t" | "tb" | "tib" => 1 << 40,
        unit => return Err(format!("unknown unit '{unit}'; use k, m, g or t")),
    };
    let number: u64 =
        digits.trim().parse().map_err(|_| format!("'{text}' is not a size such as 4k or 1m"))?;
    number.checked_mul(factor).ok_or_else(|| format!("'{text}' is too large"))
}

/// Parse a size in bytes that must fit in `usize`.
pub fn parse_length(text: &str) -> Result<usize, String> {
    usize::try_from(parse_size(text)?).map_err(|_| format!("'{text}' is too large"))
}

/// Parse a time such as `100ms`, `1s` or `2m` (minutes) into nanoseconds. The default unit is seconds; 0 is an error.
pub fn parse_duration_ns(text: &str) -> Result<u64, String> {
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let factor: u64 = match &text[digits.len()..] {
        "ms" => 1_000_000,
        "" | "s" => 1_000_000_000,
        "m" => 60_000_000_000,
        unit => return Err(format!("unknown unit '{unit}'; use ms, s or m")),
    };
    let number: u64 = digits.parse().map_err(|_| format!("'{text}' is not a time such as 100ms or 1s"))?;
    match number.checked_mul(factor) {
        Some(0) | None => Err(format!("'{text}' is out of range")),
        Some(nanoseconds) => Ok(nanoseconds),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes() {
        assert_eq!(parse_size("4096"), Ok(4096));
        assert_eq!(parse_size("4k"), Ok(4096));
        assert_eq!(parse_size("2GiB"), Ok(2 << 30));
        assert!(parse_size("4q").is_err());
        assert!(parse_size("k").is_err());
        assert!(parse_size("99999999t").is_err());
    }

    #[test]
    fn durations() {
        assert_eq!(parse_duration_ns("100ms"), Ok(100_000_000));
        assert_eq!(parse_duration_ns("2"), Ok(2_000_000_000));
        assert!(parse_duration_ns("0s").is_err());
    }
}
