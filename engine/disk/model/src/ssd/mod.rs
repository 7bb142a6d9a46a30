//! SSDs: flash behind a translation layer that never writes in place, dies that work at once, and memory in front.

mod drive;
mod flash;
mod ftl;
mod profiles;

pub use drive::Ssd;
pub use ftl::{Collection, Ftl, Shape};
pub use profiles::{PROFILES, Profile};
