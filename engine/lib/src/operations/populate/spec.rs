//! The specification of a data set, as the user writes it.

use serde::{Deserialize, Serialize};

use super::sizes::Distribution;
use crate::error::{Error, Result};

/// A data set. The same spec gives the same tree, byte for byte, on any machine.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Spec {
    /// Seed of all random numbers.
    pub seed: u64,
    /// Factor on the number of files of each class.
    pub scale: f64,
    /// The size classes.
    pub classes: Vec<Class>,
    /// Number of files per directory.
    pub files_per_directory: u64,
    /// Number of subdirectories per directory. The depth of the tree follows from it.
    pub fanout: u64,
    /// Share of the contents that is compressible, from 0 to 1.
    pub compressibility: f64,
    /// Share of the files that are exact copies of others, from 0 to 1.
    pub duplicates: f64,
    /// Texts that are inserted into the contents.
    pub patterns: Vec<Planted>,
    /// Time from which ages are computed, in seconds since the Unix epoch.
    pub now: i64,
    /// Maximum age of a file in days.
    pub maximum_age_days: u64,
    /// Number of owners. Only root can set them; with 0, all files belong to the current user.
    pub owners: u32,
}

/// Files of about the same size.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Class {
    /// Name of the class.
    pub name: String,
    /// Number of files at scale 1.
    pub files: u64,
    /// Mean size in bytes.
    pub mean_bytes: u64,
    /// Distribution of the sizes around the mean.
    #[serde(default)]
    pub distribution: Distribution,
}

/// A text that is inserted into the contents of some files, on lines of its own.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Planted {
    /// The text.
    pub text: String,
    /// Share of the files that contain it, from 0 to 1.
    pub share: f64,
    /// Number of occurrences in each of these files.
    #[serde(default = "one")]
    pub hits: u64,
}

fn one() -> u64 {
    1
}

/// Minimum size of a file in bytes: enough for its signature and its unique line.
pub(super) const SMALLEST_FILE: u64 = 128;
const SHORTEST_PATTERN: usize = 6;
const LONGEST_PATTERN: usize = 100;

impl Default for Spec {
    /// Return the data set of the file-management study at scale 1.
    fn default() -> Self {
        let class = |name: &str, files, mean_bytes| Class {
            name: name.to_owned(),
            files,
            mean_bytes,
            distribution: Distribution::Lognormal,
        };
        Self {
            seed: 1,
            scale: 1.0,
            classes: vec![
                class("small", 450_000, 32 << 10),
                class("medium", 50_000, 4 << 20),
                class("large", 1_000, 100 << 20),
            ],
            files_per_directory: 100,
            fanout: 10,
            compressibility: 0.5,
            duplicates: 0.1,
            patterns: vec![Planted { text: "fslab-needle".to_owned(), share: 0.05, hits: 3 }],
            now: 1_700_000_000,
            maximum_age_days: 1_500,
            owners: 0,
        }
    }
}

impl Spec {
    /// Return the number of files of a class.
    pub(super) fn files_of(&self, class: &Class) -> u64 {
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "checked to be in range")]
        let count = (class.files as f64 * self.scale).round() as u64;
        count
    }

    /// Return an error if a value is out of range.
    pub(super) fn check(&self) -> Result<()> {
        let is_share = |value: f64| (0.0..=1.0).contains(&value);
        let wrong = |message: String| Err(Error::Invalid(message));
        if !(self.scale > 0.0 && self.scale <= 1e6) {
            return wrong(format!("scale {} must be above 0 and at most 1000000", self.scale));
        }
        if !is_share(self.compressibility) || !is_share(self.duplicates) {
            return wrong("compressibility and duplicates are shares from 0 to 1".to_owned());
        }
        if self.files_per_directory == 0 || self.fanout < 2 {
            return wrong("files_per_directory must be at least 1, and fanout at least 2".to_owned());
        }
        for Planted { text, share, hits } in &self.patterns {
            let lengths = SHORTEST_PATTERN..=LONGEST_PATTERN;
            if !is_share(*share) || *hits == 0 || !lengths.contains(&text.len()) || text.contains('\n') {
                return wrong(format!(
                    "pattern '{text}': 6 to 100 bytes of one line, a share from 0 to 1 and at least one hit"
                ));
            }
        }
        for (number, one) in self.patterns.iter().enumerate() {
            let mut others = self.patterns.iter().enumerate().filter(|(other, _)| *other != number);
            if let Some((_, other)) = others.find(|(_, other)| other.text.contains(&one.text)) {
                return wrong(format!(
                    "pattern '{}' is in pattern '{}': the hits of both would be counted for it",
                    one.text, other.text
                ));
            }
        }
        let files = self.classes.iter().map(|class| self.files_of(class)).fold(0, u64::saturating_add);
        match files {
            0 => wrong("the specification gives no files: raise the scale or the number of files".to_owned()),
            count if count > u64::from(u32::MAX) => {
                wrong(format!("{count} files are too many: at most 4294967295"))
            }
            _ => Ok(()),
        }
    }
}
