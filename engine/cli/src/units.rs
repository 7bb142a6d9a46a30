//! Numbers and times as the table shows them.

/// Format a number: `12345678.9` as `12,345,679`, fractions below 10 with two decimals, and values below 0.1 with two
/// significant digits.
pub(crate) fn count(value: f64) -> String {
    if value > 0.0 && value < 0.1 {
        // Two significant digits.
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "from 2 to 325")]
        let decimals = (1.0 - value.log10().floor()) as usize;
        return format!("{value:.decimals$}");
    }
    if value < 10.0 && value.fract() != 0.0 {
        return format!("{value:.2}");
    }
    let digits = format!("{value:.0}");
    let mut text = String::new();
    for (position, digit) in digits.chars().enumerate() {
        if position > 0 && (digits.len() - position) % 3 == 0 {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// Format nanoseconds in ns, µs, ms or s.
pub(crate) fn nanoseconds(value: f64) -> String {
    match value {
        v if v < 1e3 => format!("{v:.0} ns"),
        v if v < 1e6 => format!("{:.1} µs", v / 1e3),
        v if v < 1e9 => format!("{:.1} ms", v / 1e6),
        v => format!("{:.2} s", v / 1e9),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_for_people() {
        assert_eq!(count(1_234_567.0), "1,234,567");
        assert_eq!(count(0.5), "0.50");
        assert_eq!(
            ["0.003", "0.00025", "0.0999", "0"].map(|v| count(v.parse().unwrap())),
            ["0.0030", "0.00025", "0.100", "0"]
        );
        assert_eq!(nanoseconds(1_234.0), "1.2 µs");
    }
}
