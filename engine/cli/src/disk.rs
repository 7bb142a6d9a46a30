//! `fslab-disk`: a block device in software. Everything is in the crate of that name; the binary is here so that one
//! wheel ships both commands.

mod allocator;

use std::process::ExitCode;

fn main() -> ExitCode {
    allocator::install(false);
    fslab_disk::main()
}
