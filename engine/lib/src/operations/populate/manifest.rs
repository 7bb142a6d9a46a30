//! The ground truth of a data set: what each operation must find in it.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::plan::{Plan, TYPES};
use super::spec::Spec;
use crate::operations::duplicates::{DuplicateSet, SetSummary};

/// Return the manifest, with the same keys as the answers of the operations.
pub(super) fn manifest(plan: &Plan<'_>, owners: bool) -> Value {
    let bytes: u64 = plan.files.iter().map(|file| file.size).sum();
    json!({
        "spec": plan.spec,
        "files": plan.files.len(),
        "directories": plan.all_directories(),
        "apparent_bytes": bytes,
        "classes": classes(plan.spec, plan),
        "by_content": by_kind(plan),
        "by_extension": by_extension(plan),
        "by_owner": owners.then(|| by_owner(plan)),
        "duplicates": duplicates(plan),
        "patterns": patterns(plan),
    })
}

fn classes(spec: &Spec, plan: &Plan<'_>) -> Vec<Value> {
    let mut totals = vec![(0u64, 0u64); spec.classes.len()];
    for file in &plan.files {
        let (files, bytes) = &mut totals[usize::from(file.class)];
        *files += 1;
        *bytes += file.size;
    }
    let rows = spec.classes.iter().zip(totals);
    rows.map(|(class, (files, bytes))| json!({ "name": class.name, "files": files, "apparent_bytes": bytes }))
        .collect()
}

fn by_kind(plan: &Plan<'_>) -> BTreeMap<&'static str, u64> {
    let mut counts: BTreeMap<_, _> = crate::kinds::Kind::ALL.iter().map(|kind| (kind.name(), 0)).collect();
    for file in &plan.files {
        *counts.entry(TYPES[usize::from(file.kind)].kind.name()).or_default() += 1;
    }
    counts
}

fn by_extension(plan: &Plan<'_>) -> Vec<Value> {
    let mut totals: BTreeMap<&str, (u64, u64)> = BTreeMap::new();
    for file in &plan.files {
        let (files, bytes) = totals.entry(TYPES[usize::from(file.kind)].extension).or_default();
        *files += 1;
        *bytes += file.size;
    }
    let row = |(extension, (files, bytes))| json!({ "extension": extension, "files": files, "apparent_bytes": bytes });
    totals.into_iter().map(row).collect()
}

fn by_owner(plan: &Plan<'_>) -> Vec<Value> {
    let mut totals: BTreeMap<u32, (u64, u64)> = BTreeMap::new();
    for (file, index) in plan.files.iter().zip(0u32..) {
        let (_, owner) = plan.time_and_owner(index);
        let (files, bytes) = totals.entry(super::FIRST_OWNER + owner).or_default();
        *files += 1;
        *bytes += file.size;
    }
    let row = |(uid, (files, bytes))| json!({ "uid": uid, "files": files, "apparent_bytes": bytes });
    totals.into_iter().map(row).collect()
}

fn duplicates(plan: &Plan<'_>) -> Value {
    let mut by_identity: Vec<(u32, u32)> =
        plan.files.iter().zip(0u32..).map(|(file, index)| (file.identity, index)).collect();
    by_identity.sort_unstable();
    let path = |index: u32| {
        let directory = u64::from(index) / plan.spec.files_per_directory;
        let around = plan.directory_paths(directory).pop().unwrap_or_default();
        format!("{around}/{}", plan.name(index)).into_bytes()
    };
    let groups = by_identity.chunk_by(|a, b| a.0 == b.0).filter(|group| group.len() > 1);
    let sets: Vec<DuplicateSet> = groups
        .map(|group| {
            let size = plan.files[group[0].0 as usize].size;
            DuplicateSet::new(size, group.iter().map(|&(_, index)| path(index)).collect())
        })
        .collect();
    SetSummary::of(&sets).value()
}

fn patterns(plan: &Plan<'_>) -> Vec<Value> {
    let rows = plan.spec.patterns.iter().enumerate();
    rows.map(|(index, pattern)| {
        let hits =
            plan.files.iter().map(|file| plan.places(index, file).len() as u64).filter(|&hits| hits > 0);
        let (files, lines) = hits.fold((0u64, 0u64), |(files, lines), hits| (files + 1, lines + hits));
        json!({ "text": pattern.text, "files_matched": files, "lines_matched": lines })
    })
    .collect()
}
