//! Hard disks: where sectors lie, how long the head takes to them, and what the drive's queue and cache make of that.

mod cache;
mod drive;
mod geometry;
mod profiles;
mod seek;

pub use drive::Hdd;
pub use profiles::{PROFILES, Profile};
