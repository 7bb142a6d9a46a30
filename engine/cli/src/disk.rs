//! The `fslab-disk` binary: a modelled disk. The code is in the crate of the same name; the binary is built here so
//! that one wheel ships both commands.

mod allocator;

use std::process::ExitCode;

fn main() -> ExitCode {
    allocator::install(false);
    fslab_disk::main()
}
