//! Lines from untrusted input. They may contain any bytes. Their length is limited to bound memory use.

use std::io::{self, BufRead, Read};

/// Maximum length of a line in bytes. A request contains rows of a log, or a path.
const LONGEST: u64 = 16 << 20;

/// Iterate over the lines, without their ends. A line that is too long gives an error and ends the iteration.
pub(crate) fn bounded(reader: impl BufRead) -> impl Iterator<Item = io::Result<Vec<u8>>> {
    up_to(LONGEST, reader)
}

fn up_to(longest: u64, mut reader: impl BufRead) -> impl Iterator<Item = io::Result<Vec<u8>>> {
    let mut ended = false;
    std::iter::from_fn(move || {
        let mut line = Vec::new();
        if ended {
            return None;
        }
        let read = reader.by_ref().take(longest).read_until(b'\n', &mut line);
        let ended_line = line.last() == Some(&b'\n');
        line.truncate(line.len() - usize::from(ended_line));
        let whole = ended_line || (line.len() as u64) < longest;
        ended = read.is_err() || !whole;
        match read {
            Err(error) => Some(Err(error)),
            Ok(0) => None,
            Ok(_) if whole => Some(Ok(line)),
            Ok(_) => Some(Err(io::Error::other(format!("a line has more than {longest} bytes")))),
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(bytes: &[u8]) -> Vec<Option<Vec<u8>>> {
        up_to(4, bytes).map(Result::ok).collect()
    }

    #[test]
    fn a_line_has_a_bound() {
        let line = |bytes: &[u8]| Some(bytes.to_vec());
        assert_eq!(read(b"ab\n\n\xff"), [line(b"ab"), line(b""), line(b"\xff")]);
        assert_eq!(read(b"abc\nabcd\nx\n"), [line(b"abc"), None]);
        assert_eq!(read(b""), []);
    }
}
