//! The operations, one module each.

pub mod analyze;
pub mod classify;
pub mod delete;
pub mod duplicates;
pub mod iozone;
pub mod meta;
pub mod populate;
pub mod search;
pub mod small_files;
pub mod sync_read;
pub mod sync_write;
