//! The `fslab-disk` binary: a modelled disk. The code is in the crate of the same name; the binary is built here so
//! that one wheel ships both commands.

use std::process::ExitCode;

fn main() -> ExitCode {
    fslab_disk::main()
}
