//! File names made of numbers.

use std::ffi::CStr;

/// A name of one letter and ten decimal digits, terminated by NUL. It needs no heap allocation.
#[derive(Debug, Clone, Copy)]
pub struct Name([u8; 12]);

impl Name {
    /// Create the name of a letter and a number. Only the last ten digits of the number are used.
    #[inline]
    pub fn new(letter: u8, mut number: u64) -> Self {
        let mut bytes = *b"f0000000000\0";
        bytes[0] = letter;
        for digit in bytes[1..11].iter_mut().rev() {
            *digit += u8::try_from(number % 10).unwrap_or(0);
            number /= 10;
        }
        Self(bytes)
    }

    /// Return the name as a system call takes it.
    #[inline]
    pub fn as_c_str(&self) -> &CStr {
        CStr::from_bytes_with_nul(&self.0).expect("digits hold no NUL")
    }
}

impl std::fmt::Display for Name {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&String::from_utf8_lossy(&self.0[..11]))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_have_ten_digits() {
        assert_eq!(Name::new(b'f', 1_234_567_890).to_string(), "f1234567890");
        assert_eq!(Name::new(b'd', 0).as_c_str(), c"d0000000000");
    }
}
