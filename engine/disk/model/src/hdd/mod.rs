//! Hard disks: layout of sectors, seek times, the drive's queue and cache, and shingled tracks.

mod cache;
mod drive;
mod geometry;
mod profiles;
mod runs;
mod seek;
mod shingled;

pub use drive::Hdd;
pub use profiles::{PROFILES, Profile, Shingles};
pub use shingled::Shingled;
