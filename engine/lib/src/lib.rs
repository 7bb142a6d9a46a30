//! Measured file-management operations on any directory.
//!
//! An operation takes a directory, its parameters and the measurement options. It runs on several threads that start at
//! one barrier, and returns a [`document::Outcome`]: its measurements, its answer and its warnings. No code in this
//! crate prints or ends the process.

pub mod attributes;
pub mod buffer;
pub mod contents;
pub mod direct;
pub mod document;
pub mod error;
pub mod fast_map;
pub mod guard;
pub mod input;
pub mod kinds;
pub mod measure;
pub mod memory;
pub mod mounts;
pub mod names;
pub mod numbered;
pub mod operations;
pub mod plain;
pub mod random;
pub mod room;
pub mod stop;
pub mod sys;
pub mod units;
pub mod walk;
pub mod workset;

pub use error::{Error, Kind, Result};

/// Version of the library and of the binary, as reported in the protocol.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");
