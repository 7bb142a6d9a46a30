//! Classification of files by name and by their first bytes.

use serde::Serialize;

use crate::names::Extension;

/// Number of bytes at the start of a file that are sufficient to classify it.
pub const SNIFF_BYTES: usize = 512;

/// The kind of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
#[expect(missing_docs, reason = "the names say it")]
pub enum Kind {
    Text,
    Image,
    Audio,
    Video,
    Document,
    Archive,
    Executable,
    Database,
    Data,
    Empty,
}

impl Kind {
    /// All kinds, in their order.
    pub const ALL: [Self; 10] = [
        Self::Text,
        Self::Image,
        Self::Audio,
        Self::Video,
        Self::Document,
        Self::Archive,
        Self::Executable,
        Self::Database,
        Self::Data,
        Self::Empty,
    ];

    /// Return the name used in the protocol.
    pub fn name(self) -> &'static str {
        match self {
            Self::Text => "text",
            Self::Image => "image",
            Self::Audio => "audio",
            Self::Video => "video",
            Self::Document => "document",
            Self::Archive => "archive",
            Self::Executable => "executable",
            Self::Database => "database",
            Self::Data => "data",
            Self::Empty => "empty",
        }
    }

    /// Classify by the extension of a name. Returns `Data` if the extension is unknown or missing.
    pub fn by_name(name: &[u8]) -> Self {
        let extension = Extension::of(name);
        match extension.as_str() {
            "txt" | "md" | "rst" | "csv" | "tsv" | "json" | "xml" | "html" | "htm" | "css" | "js" | "ts"
            | "c" | "h" | "cc" | "cpp" | "hpp" | "rs" | "py" | "pl" | "pm" | "rb" | "go" | "java" | "sh"
            | "yaml" | "yml" | "toml" | "ini" | "conf" | "cfg" | "log" | "tex" | "sql" | "svg" | "po"
            | "patch" | "diff" => Self::Text,
            "jpg" | "jpeg" | "png" | "gif" | "bmp" | "webp" | "tif" | "tiff" | "ico" | "heic" | "avif" => {
                Self::Image
            }
            "mp3" | "flac" | "ogg" | "oga" | "opus" | "wav" | "m4a" | "aac" => Self::Audio,
            "mp4" | "m4v" | "mkv" | "webm" | "avi" | "mov" | "mpg" | "mpeg" => Self::Video,
            "pdf" | "ps" | "eps" | "doc" | "docx" | "xls" | "xlsx" | "ppt" | "pptx" | "odt" | "ods"
            | "epub" => Self::Document,
            "zip" | "gz" | "tgz" | "bz2" | "xz" | "zst" | "7z" | "tar" | "rar" | "jar" | "deb" | "rpm"
            | "whl" | "lz4" => Self::Archive,
            "so" | "exe" | "dll" | "o" | "a" | "ko" | "class" | "wasm" | "elf" => Self::Executable,
            "db" | "sqlite" | "sqlite3" | "mdb" => Self::Database,
            _ => Self::Data,
        }
    }

    /// Classify by the first bytes of a file. At most [`SNIFF_BYTES`] of them are examined.
    pub fn by_content(head: &[u8]) -> Self {
        if head.is_empty() {
            return Self::Empty;
        }
        let signature =
            SIGNATURES.iter().find(|(at, magic, _)| head.get(*at..).is_some_and(|h| h.starts_with(magic)));
        match signature {
            Some((.., kind)) => *kind,
            None if is_bitmap(head) => Self::Image,
            None if is_text(head) => Self::Text,
            None => Self::Data,
        }
    }
}

/// Offset, bytes and kind of each signature. The first match applies, so more specific signatures come first.
const SIGNATURES: [(usize, &[u8], Kind); 40] = [
    (0, b"\x7fELF", Kind::Executable),
    (0, b"\x89PNG\r\n\x1a\n", Kind::Image),
    (0, b"\xff\xd8\xff", Kind::Image),
    (0, b"GIF87a", Kind::Image),
    (0, b"GIF89a", Kind::Image),
    (0, b"%PDF-", Kind::Document),
    (0, b"%!PS", Kind::Document),
    (0, b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", Kind::Document),
    (0, b"PK\x03\x04", Kind::Archive),
    (0, b"PK\x05\x06", Kind::Archive),
    (0, b"\x1f\x8b", Kind::Archive),
    (0, b"BZh", Kind::Archive),
    (0, b"\xfd7zXZ\0", Kind::Archive),
    (0, b"\x28\xb5\x2f\xfd", Kind::Archive),
    (0, b"7z\xbc\xaf\x27\x1c", Kind::Archive),
    (0, b"Rar!\x1a\x07", Kind::Archive),
    (0, b"\x04\x22\x4d\x18", Kind::Archive),
    (0, b"\xed\xab\xee\xdb", Kind::Archive),
    (0, b"!<arch>\ndebian-binary", Kind::Archive),
    (0, b"!<arch>\n", Kind::Executable),
    (257, b"ustar", Kind::Archive),
    (0, b"ID3", Kind::Audio),
    (0, b"\xff\xfb", Kind::Audio),
    (0, b"fLaC", Kind::Audio),
    (0, b"OggS", Kind::Audio),
    (8, b"WAVE", Kind::Audio),
    (4, b"ftypM4A", Kind::Audio),
    (4, b"ftyphei", Kind::Image),
    (4, b"ftypavif", Kind::Image),
    (4, b"ftyp", Kind::Video),
    (0, b"\x1a\x45\xdf\xa3", Kind::Video),
    (0, b"\0\0\x01\xba", Kind::Video),
    (8, b"AVI ", Kind::Video),
    (8, b"WEBP", Kind::Image),
    (0, b"II*\0", Kind::Image),
    (0, b"MM\0*", Kind::Image),
    (0, b"\0asm", Kind::Executable),
    (0, b"\xca\xfe\xba\xbe", Kind::Executable),
    (0, b"MZ", Kind::Executable),
    (0, b"SQLite format 3\0", Kind::Database),
];

/// Return whether the bytes begin a BMP file: "BM", the size of the file, and four reserved bytes, which are 0.
fn is_bitmap(head: &[u8]) -> bool {
    head.starts_with(b"BM") && head.get(6..10).is_some_and(|reserved| reserved == [0; 4])
}

/// Return whether the bytes are UTF-8 without control characters, except those common in text. An incomplete character
/// at the end is accepted, because the file may continue there.
fn is_text(head: &[u8]) -> bool {
    let head = &head[..head.len().min(SNIFF_BYTES)];
    let is_control = |&byte: &u8| byte < 0x20 && !matches!(byte, b'\t' | b'\n' | b'\r' | 0x0c | 0x1b | 0x08);
    if head.iter().any(is_control) {
        return false;
    }
    match std::str::from_utf8(head) {
        Ok(_) => true,
        Err(error) => error.error_len().is_none(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_contents() {
        assert_eq!(Kind::by_name(b"a.JPG"), Kind::Image);
        assert_eq!(Kind::by_name(b"Makefile"), Kind::Data);
        assert_eq!(Kind::by_content(b""), Kind::Empty);
        assert_eq!(Kind::by_content(b"hello\n"), Kind::Text);
        assert_eq!(Kind::by_content("Grüße".as_bytes()), Kind::Text);
        assert_eq!(Kind::by_content(&"ü".as_bytes()[..1]), Kind::Text, "cut off within a character");
        assert_eq!(Kind::by_content(b"\xff\xfe\0"), Kind::Data);
        assert_eq!(Kind::by_content(b"\x7fELF\x02"), Kind::Executable);
        assert_eq!(Kind::by_content(b"....ftypisom"), Kind::Video);
        assert_eq!(Kind::by_content(b"BM\x8a\x7f\x01\0\0\0\0\0\x8a\0"), Kind::Image);
        assert_eq!(Kind::by_content(b"BMW and others\n"), Kind::Text);
    }
}
