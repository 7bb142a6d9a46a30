//! `fslab-disk` serves a modelled disk as one file. A loop device makes the file a block device.
//!
//! The models are in `fslab-disk-model`. This crate contains the kernel interface (FUSE without libfuse), time, threads
//! and the control socket. `engine/disk/PROTOCOL.md` specifies the interface for other programs.

mod calibrate;
mod clean;
mod clock;
mod control;
mod core;
mod device;
mod direct;
mod fuse;
mod gate;
mod guest;
mod kept;
mod life;
mod lines;
mod little_endian;
mod options;
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
use fslab_engine::plain;

/// Run the command. The binary only calls this function.
pub fn main() -> ExitCode {
    match options::Arguments::try_parse() {
        Ok(arguments) => match arguments.run() {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => {
                eprintln!("fslab-disk: {}", plain::text(&format!("{error:#}")));
                ExitCode::FAILURE
            }
        },
        Err(error) => {
            let Some(said) = plain::refusal(&error) else { error.exit() };
            eprint!("{said}");
            ExitCode::from(2)
        }
    }
}
