//! Running texts of workloads and reading what came of them.

use std::path::Path;

use serde_json::Value;

use super::{run, snapshot, succeed};

/// Runs the text of a workload in `root`.
pub fn script(root: &Path, text: &str, more: &[&str]) -> Value {
    let dir = root.to_str().unwrap();
    succeed(&[&["wml", "--script", text, "--dir", dir], more].concat())
}

/// What is said of a workload that is not accepted.
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

/// All regular files below `root`, with their lengths.
pub fn files(root: &Path) -> Vec<(String, usize)> {
    let all = snapshot(root).into_iter().filter(|(_, (kind, _))| *kind == 'f');
    all.map(|(path, (_, contents))| (path.to_string_lossy().into_owned(), contents.len())).collect()
}
