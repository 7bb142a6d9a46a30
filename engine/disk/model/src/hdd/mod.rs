//! Hard disks: layout of sectors, seek times and the drive's queue and cache.

mod cache;
mod drive;
mod geometry;
mod profiles;
mod seek;

pub use drive::Hdd;
pub use profiles::{PROFILES, Profile};
