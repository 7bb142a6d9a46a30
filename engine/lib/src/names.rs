//! File names: their representation in JSON, and their extensions. A file name is a sequence of bytes, not of
//! characters.

use serde_json::{Value, json};

const LONGEST_EXTENSION: usize = 16;

/// Return a path as the protocol writes it: a string, or `{"hex": …}` if the bytes are not UTF-8.
pub fn to_json(bytes: &[u8]) -> Value {
    match std::str::from_utf8(bytes) {
        Ok(text) => Value::from(text),
        Err(_) => json!({ "hex": to_hex(bytes) }),
    }
}

/// Return bytes as lower-case hexadecimal digits.
pub fn to_hex(bytes: &[u8]) -> String {
    let digit = |value: u8| char::from_digit(u32::from(value), 16).unwrap_or('0');
    bytes.iter().flat_map(|byte| [digit(byte >> 4), digit(byte & 15)]).collect()
}

/// An extension of up to 16 ASCII letters and digits in lower case, padded with zero bytes; empty if there is none.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Extension([u8; LONGEST_EXTENSION]);

impl Extension {
    /// Return the part of a name after its last dot. The extension is empty if this dot is the first character, or if
    /// the part is longer than 16 bytes or contains other characters than ASCII letters and digits.
    #[inline]
    pub fn of(name: &[u8]) -> Self {
        let tail = &name[name.len().saturating_sub(LONGEST_EXTENSION + 1)..];
        let Some(dot) = tail.iter().rposition(|&byte| byte == b'.') else { return Self::default() };
        let text = &tail[dot + 1..];
        if tail.len() - dot == name.len() || !text.iter().all(u8::is_ascii_alphanumeric) {
            return Self::default();
        }
        let mut packed = [0; LONGEST_EXTENSION];
        for (place, byte) in packed.iter_mut().zip(text) {
            *place = byte.to_ascii_lowercase();
        }
        Self(packed)
    }

    /// Return the extension as text.
    pub fn as_str(&self) -> &str {
        let length = self.0.iter().position(|&byte| byte == 0).unwrap_or(LONGEST_EXTENSION);
        std::str::from_utf8(&self.0[..length]).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn extensions() {
        let cases: [(&[u8], &str); 9] = [
            (b"a.txt", "txt"),
            (b"A.TXT", "txt"),
            (b"a.tar.gz", "gz"),
            (b".bashrc", ""),
            (b"a.", ""),
            (b"a", ""),
            (b"a.b c", ""),
            (b"a.0123456789abcdef", "0123456789abcdef"),
            (b"a.0123456789abcdefg", ""),
        ];
        for (name, extension) in cases {
            assert_eq!(Extension::of(name).as_str(), extension, "{}", String::from_utf8_lossy(name));
        }
    }

    #[test]
    fn names_that_are_not_text_are_kept() {
        assert_eq!(to_json(b"a\nb"), json!("a\nb"));
        assert_eq!(to_json(b"\xff/a"), json!({"hex": "ff2f61"}));
    }
}
