//! `fslab-disk`: a block device in software. Everything is in the crate of that name; the binary is here so that one
//! wheel ships both commands.

use std::process::ExitCode;

fn main() -> ExitCode {
    fslab_disk::main()
}
