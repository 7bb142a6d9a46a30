//! Tests that run the commands, and what they are made of. They are one program, because each would be linked for itself.

#![allow(clippy::unwrap_used, reason = "a test may")]

mod answers;
#[path = "../common/mod.rs"]
mod common;
mod contents;
mod golden;
mod inputs;
mod iozone;
mod measures;
mod mirror;
mod populate;
mod room;
mod safety;
mod small_files;
mod terminal;
mod wml;
mod wml_hostile;
mod wml_limits;
mod wml_parser;
mod wml_told;
