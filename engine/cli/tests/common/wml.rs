//! Helpers that run workloads and read their results.

use std::path::Path;

use serde_json::Value;

use super::{run, snapshot, succeed};

/// Run a workload, given as text, in `root`. Return the document; panic unless the exit status is 0.
pub fn script(root: &Path, text: &str, more: &[&str]) -> Value {
    let dir = root.to_str().unwrap();
    succeed(&[&["wml", "--script", text, "--dir", dir], more].concat())
}

/// Return the error message for a workload that is invalid; panic if it is accepted.
pub fn refused(text: &str, more: &[&str]) -> String {
    let (found, status) = run(&[&["wml", "--script", text, "--check"], more].concat());
    assert_eq!((status, &found["error"]["kind"]), (Some(1), &"invalid".into()), "{text}: {found:#}");
    found["error"]["message"].as_str().unwrap().to_owned()
}

pub fn flowop<'a>(found: &'a Value, name: &str) -> &'a Value {
    let flowops = found["answer"]["runs"][0]["flowops"].as_array().unwrap();
    flowops.iter().find(|one| one["name"] == name).unwrap_or_else(|| panic!("no {name} in {found:#}"))
}

pub fn count(found: &Value, name: &str) -> u64 {
    flowop(found, name)["count"].as_u64().unwrap()
}

/// Return all regular files below `root` with their lengths in bytes.
pub fn files(root: &Path) -> Vec<(String, usize)> {
    let all = snapshot(root).into_iter().filter(|(_, (kind, _))| *kind == 'f');
    all.map(|(path, (_, contents))| (path.to_string_lossy().into_owned(), contents.len())).collect()
}
