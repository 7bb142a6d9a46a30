//! The directory tree of a fileset. The width and the depth of each directory are drawn from gamma distributions. Only
//! directories without subdirectories contain files.
//!
//! The tree depends on the fileset alone and not on the seed of the run, so that files of an earlier run fit (`reuse`).
//! Random variables that take their randomness from the kernel (`randsrc`) are an exception: they differ in each run.

use std::sync::Arc;

use crate::program::FilesetSpec;
use crate::random::{Distribution, Number, Origin, Sampler, Shape};
use fslab_engine::random::mix;

/// Maximum depth of a directory. 200 names of nine bytes, including the slash, are far shorter than `PATH_MAX` (4096).
const DEEPEST: f64 = 200.0;

/// The place of a file or directory: the number of its parent directory in [`TreeShape::directories`], and the number
/// that is its name there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) parent: u32,
    pub(crate) serial: u32,
}

/// A file with its size in bytes, or a leaf directory (size 0).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Leaf {
    pub(crate) place: Place,
    pub(crate) size: u64,
}

/// All directories, files and leaf directories of a fileset. A leaf directory is one that stays empty.
#[derive(Debug, Default)]
pub(crate) struct TreeShape {
    /// All directories except leaf directories. Directory 0 is the root of the fileset and its own parent.
    pub(crate) directories: Vec<Place>,
    pub(crate) files: Vec<Leaf>,
    pub(crate) leaf_directories: Vec<Leaf>,
}

struct Builder<'a> {
    spec: &'a FilesetSpec,
    sampler: Sampler,
    tree: TreeShape,
    width: Number,
    depth: Number,
    size: Number,
}

/// Compute the tree of a fileset.
pub(crate) fn shape(spec: &FilesetSpec, distributions: &[Arc<Distribution>]) -> TreeShape {
    let seed = spec.name.bytes().fold(0, |seed, byte| mix(seed ^ u64::from(byte)));
    let entries = (spec.entries + spec.leaf_directories).max(1) as f64;
    let width = spec.width.mean();
    let flat = width < 1.0;
    let depth = if width > 1.0 { entries.ln() / width.ln() } else { 1.0 };
    let spread = |mean: f64| if flat { Number::Fixed(mean) } else { around(mean, spec.gamma) };
    let mut builder = Builder {
        spec,
        sampler: Sampler::new(distributions, seed, u64::MAX),
        tree: TreeShape::default(),
        width: match &spec.width {
            Number::Random(_) => spec.width.clone(),
            Number::Fixed(_) => spread(if flat { entries } else { width }),
        },
        depth: spec.depth.clone().unwrap_or_else(|| spread(if flat { 1.0 } else { depth })),
        size: match &spec.size {
            Number::Fixed(size) => around(*size, spec.size_gamma),
            Number::Random(_) => spec.size.clone(),
        },
    };
    builder.grow();
    builder.tree
}

/// Return a gamma distribution with this mean and shape, or the constant mean if one of them is not positive.
fn around(mean: f64, shape: f64) -> Number {
    if shape <= 0.0 || mean <= 0.0 {
        return Number::Fixed(mean);
    }
    let shape = Shape::Gamma { lower: 0.0, mean, shape };
    let (min, max) = (0.0, f64::INFINITY);
    let number = usize::MAX;
    Number::Random(Arc::new(Distribution {
        number,
        shape,
        min,
        max,
        round: 0.0,
        seed: 0,
        origin: Origin::Seed,
    }))
}

impl Builder<'_> {
    /// Add subtrees below the root until there are enough files, then more until there are enough leaf directories.
    fn grow(&mut self) {
        self.tree.directories.push(Place { parent: 0, serial: 0 });
        let mut serial = 0;
        while !self.enough(false) {
            serial += 1;
            self.directory(Place { parent: 0, serial }, 2.0, false);
        }
        while !self.enough(true) {
            serial += 1;
            self.directory(Place { parent: 0, serial }, 2.0, true);
        }
    }

    fn enough(&self, leaves: bool) -> bool {
        if leaves {
            self.tree.leaf_directories.len() as u64 >= self.spec.leaf_directories
        } else {
            self.tree.files.len() as u64 >= self.spec.entries
        }
    }

    /// Add a directory at this depth and its contents, recursively. The root has depth 1. `leaves` selects leaf
    /// directories instead of files.
    fn directory(&mut self, place: Place, depth: f64, leaves: bool) {
        let number = u32::try_from(self.tree.directories.len()).unwrap_or(u32::MAX);
        self.tree.directories.push(place);
        let deepest = self.sampler.draw(&self.depth).floor().clamp(1.0, DEEPEST);
        let width = self.sampler.draw(&self.width);
        let bottom = depth >= deepest;
        let mut serial = 0_u32;
        while (serial == 0 || f64::from(serial) < width) && !self.enough(leaves) {
            serial += 1;
            let place = Place { parent: number, serial };
            if !bottom {
                self.directory(place, depth + 1.0, leaves);
            } else if leaves {
                self.tree.leaf_directories.push(Leaf { place, size: 0 });
            } else {
                let size = self.sampler.whole(&self.size);
                self.tree.files.push(Leaf { place, size });
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::program::Access;

    fn spec(entries: u64, width: f64, gamma: f64) -> FilesetSpec {
        FilesetSpec {
            name: "set".into(),
            place: String::new(),
            entries,
            leaf_directories: 0,
            size: Number::Fixed(100.0),
            size_gamma: 0.0,
            width: Number::Fixed(width),
            gamma,
            depth: None,
            prealloc: 100.0,
            parallel: false,
            reuse: false,
            trust: false,
            access: Access::ReadWrite,
            cached: None,
        }
    }

    #[test]
    fn without_gamma_all_directories_are_alike() {
        // The depth is ln 1000 / ln 10 = 3: the root, directories with subdirectories, and directories with files.
        let tree = shape(&spec(1000, 10.0, 0.0), &[]);
        assert_eq!(tree.files.len(), 1000);
        // 100 directories with 10 files each, in 10 directories: 111 with the root. If rounding makes the quotient of
        // the logarithms smaller than 3, the 10 directories are missing.
        let bottom: std::collections::BTreeSet<u32> =
            tree.files.iter().map(|file| file.place.parent).collect();
        assert_eq!(bottom.len(), 100);
        assert!(tree.directories.len() == 111 || tree.directories.len() == 101, "{}", tree.directories.len());
    }

    #[test]
    fn no_width_is_one_directory() {
        let tree = shape(&spec(500, 0.0, 1.5), &[]);
        assert_eq!((tree.files.len(), tree.directories.len()), (500, 2));
    }

    #[test]
    fn with_gamma_the_tree_is_uneven_but_complete_and_always_the_same() {
        let tree = shape(&spec(10_000, 20.0, 1.5), &[]);
        assert_eq!(tree.files.len(), 10_000);
        let again = shape(&spec(10_000, 20.0, 1.5), &[]);
        assert_eq!(tree.files, again.files);
        assert!(tree.directories.len() > 300, "{}", tree.directories.len());
        let mut places: Vec<(u32, u32)> =
            tree.files.iter().map(|f| (f.place.parent, f.place.serial)).collect();
        places.sort_unstable();
        places.dedup();
        assert_eq!(places.len(), 10_000);
    }

    #[test]
    fn empty_directories_have_names_of_their_own() {
        let tree = shape(&FilesetSpec { leaf_directories: 300, ..spec(300, 5.0, 1.5) }, &[]);
        assert_eq!((tree.files.len(), tree.leaf_directories.len()), (300, 300));
        let mut tops: Vec<u32> =
            tree.directories[1..].iter().filter(|d| d.parent == 0).map(|d| d.serial).collect();
        let before = tops.len();
        tops.dedup();
        assert_eq!(tops.len(), before);
    }

    #[test]
    fn a_width_of_one_comes_to_an_end() {
        let tree = shape(&spec(50, 1.0, 0.0), &[]);
        assert_eq!((tree.files.len(), tree.directories.len()), (50, 51));
    }
}
