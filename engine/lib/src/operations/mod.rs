//! One file per operation.

pub mod small_files;
