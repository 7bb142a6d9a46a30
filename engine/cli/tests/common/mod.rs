//! Running the binary and reading what it says.

#![allow(dead_code, missing_docs, unreachable_pub, clippy::unwrap_used)] // each test file uses a part of this

use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;

pub fn engine() -> Command {
    Command::new(env!("CARGO_BIN_EXE_fslab-engine"))
}

/// Runs the engine with `--json`; the document and the exit status.
pub fn run(arguments: &[&str]) -> (Value, Option<i32>) {
    document(&engine().args(arguments).arg("--json").output().unwrap())
}

/// Runs the engine with `--json` and insists on success.
pub fn succeed(arguments: &[&str]) -> Value {
    let (document, status) = run(arguments);
    assert_eq!(status, Some(0), "{arguments:?}: {document:#}");
    document
}

pub fn document(output: &Output) -> (Value, Option<i32>) {
    let document = serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(&output.stderr)));
    (document, output.status.code())
}

/// Runs a shell script as root with mounts of its own, which go away with it; `None` where that is
/// not allowed. `$ENGINE` is the binary and `$DIR` the given directory.
pub fn with_own_mounts(directory: &Path, script: &str) -> Option<Output> {
    let allowed = Command::new("unshare").args(["--mount", "true"]).output().ok()?.status.success();
    let run = || {
        let mut shell = Command::new("unshare");
        shell.args(["--mount", "sh", "-ec", script]);
        shell.env("ENGINE", env!("CARGO_BIN_EXE_fslab-engine")).env("DIR", directory).output().unwrap()
    };
    allowed.then(run)
}

/// The golden document of this name.
pub fn golden(name: &str) -> Value {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../golden").join(name);
    serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

/// Fails unless both documents have the same keys everywhere, with values of the same type. `null`
/// matches anything, and of an array only the first element counts.
pub fn assert_same_shape(found: &Value, expected: &Value, place: &str) {
    match (found, expected) {
        (Value::Null, _) | (_, Value::Null) => {}
        (Value::Object(found), Value::Object(expected)) => {
            let keys = |object: &serde_json::Map<String, Value>| object.keys().cloned().collect::<Vec<_>>();
            assert_eq!(keys(found), keys(expected), "keys of {place}");
            for (key, value) in found {
                assert_same_shape(value, &expected[key], &format!("{place}.{key}"));
            }
        }
        (Value::Array(found), Value::Array(expected)) => {
            for (found, expected) in found.iter().zip(expected).take(1) {
                assert_same_shape(found, expected, &format!("{place}[0]"));
            }
        }
        _ => assert_eq!(
            std::mem::discriminant(found),
            std::mem::discriminant(expected),
            "type of {place}: {found}"
        ),
    }
}
