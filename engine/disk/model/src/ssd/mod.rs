//! SSDs: flash behind a translation layer that never overwrites in place, dies that work in parallel, and a write
//! buffer.

mod drive;
mod flash;
mod ftl;
mod profiles;

pub use drive::{Ssd, fits};
pub use ftl::{Ftl, Shape};
pub use profiles::{PROFILES, Profile};
