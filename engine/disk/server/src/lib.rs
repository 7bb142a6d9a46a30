//! `fslab-disk`: serves a modelled disk as one file, on which a loop device makes it a block device.
//!
//! What the models do is in `fslab-disk-model`; here are the kernel's side (FUSE without libfuse), time, threads and the
//! control socket. `engine/disk/PROTOCOL.md` says what programs may rely on.

mod calibrate;
mod clean;
mod clock;
mod control;
mod core;
mod device;
mod direct;
mod export;
mod file_store;
mod fuse;
mod gate;
mod guest;
mod life;
mod lines;
mod little_endian;
mod options;
mod predict;
mod recorder;
mod serve;
mod states;
mod statistics;
mod sys;
mod timed;
mod vhost_user;
mod virtio;

use std::process::ExitCode;

use clap::Parser;

/// Runs the command; the binary is nothing else.
pub fn main() -> ExitCode {
    match options::Arguments::parse().run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("fslab-disk: {error:#}");
            ExitCode::FAILURE
        }
    }
}
