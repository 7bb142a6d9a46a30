//! The totals of an analysis and their JSON form.

use std::hash::Hash;

use rustix::fs::FileType;
use serde_json::{Value, json};

use super::Branch;
use crate::attributes::Attributes;
use crate::fast_map::FastMap;
use crate::names::{self, Extension};
use crate::walk::Troubles;

const DAY: i64 = 86_400;
/// Upper bounds of the age classes in days, exclusive. The last class has no upper bound.
const AGES: [i64; 4] = [1, 7, 30, 365];

/// Number of files, and their apparent and allocated size in bytes.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Totals {
    files: u64,
    apparent: u64,
    allocated: u64,
}

impl Totals {
    fn add(&mut self, other: Self) {
        self.files += other.files;
        self.apparent += other.apparent;
        self.allocated += other.allocated;
    }

    fn to_json(self, label: &str, key: &Value) -> Value {
        json!({ label: key, "files": self.files, "apparent_bytes": self.apparent, "allocated_bytes": self.allocated })
    }
}

/// Totals by key. Consecutive files mostly have the same key, so the last key is checked before the map.
#[derive(Debug)]
struct Tally<K> {
    places: FastMap<K, usize>,
    totals: Vec<Totals>,
    last: Option<(K, usize)>,
}

impl<K> Default for Tally<K> {
    fn default() -> Self {
        Self { places: FastMap::default(), totals: Vec::new(), last: None }
    }
}

impl<K: Copy + Eq + Hash> Tally<K> {
    #[inline]
    fn of(&mut self, key: K) -> &mut Totals {
        let place = match self.last {
            Some((last, place)) if last == key => place,
            _ => self.find(key),
        };
        &mut self.totals[place]
    }

    fn find(&mut self, key: K) -> usize {
        let next = self.totals.len();
        let place = *self.places.entry(key).or_insert(next);
        if place == next {
            self.totals.push(Totals::default());
        }
        self.last = Some((key, place));
        place
    }

    fn merge(&mut self, other: &Self) {
        for (key, totals) in other.rows() {
            self.of(key).add(totals);
        }
    }

    fn rows(&self) -> impl Iterator<Item = (K, Totals)> {
        self.places.iter().map(|(&key, &place)| (key, self.totals[place]))
    }
}

/// The counts of one thread.
#[derive(Debug, Default)]
pub(super) struct Counts {
    all: Totals,
    directories: u64,
    symlinks: u64,
    others: u64,
    pub(super) hard_links: u64,
    by_branch: Vec<Totals>,
    by_extension: Tally<Extension>,
    by_owner: Tally<u32>,
    by_age: [Totals; AGES.len() + 1],
}

impl Counts {
    pub(super) fn add_directory(&mut self, branch: usize, attributes: &Attributes) {
        let totals = Totals { files: 0, apparent: 0, allocated: attributes.allocated };
        self.directories += 1;
        self.all.add(totals);
        self.branch(branch).add(totals);
    }

    pub(super) fn add_file(&mut self, branch: usize, name: &[u8], attributes: &Attributes, now: i64) {
        let regular = attributes.kind == FileType::RegularFile;
        let apparent = if regular { attributes.size } else { 0 };
        let totals = Totals { files: u64::from(regular), apparent, allocated: attributes.allocated };
        self.all.add(totals);
        self.branch(branch).add(totals);
        match attributes.kind {
            FileType::RegularFile => {
                let age = now.saturating_sub(attributes.modified.0) / DAY;
                let class = AGES.iter().position(|&bound| age < bound).unwrap_or(AGES.len());
                self.by_age[class].add(totals);
                self.by_extension.of(Extension::of(name)).add(totals);
                self.by_owner.of(attributes.uid).add(totals);
            }
            FileType::Symlink => self.symlinks += 1,
            _ => self.others += 1,
        }
    }

    fn branch(&mut self, branch: usize) -> &mut Totals {
        if self.by_branch.len() <= branch {
            self.by_branch.resize(branch + 1, Totals::default());
        }
        &mut self.by_branch[branch]
    }

    pub(super) fn merge(&mut self, other: Self) {
        self.all.add(other.all);
        self.directories += other.directories;
        self.symlinks += other.symlinks;
        self.others += other.others;
        self.hard_links += other.hard_links;
        for (branch, totals) in other.by_branch.into_iter().enumerate() {
            self.branch(branch).add(totals);
        }
        self.by_extension.merge(&other.by_extension);
        self.by_owner.merge(&other.by_owner);
        for (mine, theirs) in self.by_age.iter_mut().zip(other.by_age) {
            mine.add(theirs);
        }
    }
}

/// The data from which the answer is made.
pub(super) struct Report {
    pub(super) counts: Counts,
    pub(super) branches: Vec<Branch>,
    pub(super) top: usize,
}

impl Report {
    pub(super) fn to_json(&self, troubles: &Troubles) -> Value {
        let counts = &self.counts;
        let extensions = counts.by_extension.rows().map(|(key, totals)| (Value::from(key.as_str()), totals));
        let owners = counts.by_owner.rows().map(|(key, totals)| (Value::from(key), totals));
        let ages = AGES.iter().map(|&days| Value::from(days)).chain([Value::Null]).zip(counts.by_age);
        json!({
            "files": counts.all.files,
            "directories": counts.directories,
            "symlinks": counts.symlinks,
            "others": counts.others,
            "hard_links": counts.hard_links,
            "apparent_bytes": counts.all.apparent,
            "allocated_bytes": counts.all.allocated,
            "by_directory": self.list("path", self.branch_totals()),
            "by_extension": self.list("extension", extensions.collect()),
            "by_owner": self.list("uid", owners.collect()),
            "by_age": ages.map(|(days, totals)| totals.to_json("younger_than_days", &days)).collect::<Vec<_>>(),
            "troubles": troubles,
        })
    }

    /// Return the totals of each branch with everything below it, without the top directory. A branch always has a
    /// higher index than its parent.
    fn branch_totals(&self) -> Vec<(Value, Totals)> {
        let mut totals = self.counts.by_branch.clone();
        totals.resize(self.branches.len(), Totals::default());
        for (index, branch) in self.branches.iter().enumerate().rev() {
            if let Some(parent) = branch.parent {
                let below = totals[index];
                totals[parent].add(below);
            }
        }
        let rows = self.branches.iter().zip(totals).skip(1);
        rows.map(|(branch, totals)| (names::to_json(&branch.path), totals)).collect()
    }

    /// Return the first `top` rows in descending order of allocated bytes and number of files, then by key, so that the
    /// order is deterministic.
    fn list(&self, label: &str, mut lines: Vec<(Value, Totals)>) -> Vec<Value> {
        lines.sort_by_cached_key(|(key, totals)| {
            (std::cmp::Reverse((totals.allocated, totals.files)), key.to_string())
        });
        let limit = if self.top == 0 { lines.len() } else { self.top };
        lines.into_iter().take(limit).map(|(key, totals)| totals.to_json(label, &key)).collect()
    }
}
