//! All drive profiles, by name.

use serde_json::{Value, json};

use crate::Nanos;
use crate::drive::{Cache, Drive};
use crate::hdd::{self, Hdd};
use crate::plain::Plain;
use crate::ssd::{self, Ssd};

/// Parameters of a drive beside its profile. An option that is `None` takes the profile's value.
#[derive(Debug, Clone, Copy)]
pub struct Setup {
    /// Size in bytes.
    pub bytes: u64,
    /// Kind of write cache.
    pub cache: Option<Cache>,
    /// Bytes of the write cache. Ignored for an SSD, which always uses the profile's size.
    pub cache_bytes: Option<u64>,
    /// Seed of all random numbers.
    pub seed: u64,
    /// Whether an SSD starts filled and overwritten at random.
    pub steady: bool,
}

/// A drive, and its properties that a server needs.
pub struct Built {
    /// The drive.
    pub drive: Box<dyn Drive>,
    /// The kind of write cache in use.
    pub cache: Cache,
    /// The shortest possible time of a request; `None` if requests complete at once.
    pub fastest: Option<Nanos>,
}

/// Build a drive; `None` if no profile has this name. Without a name, build a drive that completes requests at once.
pub fn build(name: Option<&str>, setup: &Setup) -> Option<Built> {
    let Some(name) = name else {
        let cache = setup.cache.unwrap_or(Cache::None);
        let drive = Box::new(Plain::new(cache, setup.cache_bytes.unwrap_or(64 << 20)));
        return Some(Built { drive, cache, fastest: None });
    };
    if let Some(profile) = hdd::PROFILES.iter().find(|profile| profile.name == name) {
        let cache = setup.cache.unwrap_or(profile.cache);
        let bytes = setup.cache_bytes.unwrap_or(profile.buffer / 2);
        let drive = Box::new(Hdd::new(profile, setup.bytes, cache, bytes, setup.seed));
        return Some(Built { drive, cache, fastest: Some(Hdd::fastest(profile)) });
    }
    let profile = ssd::PROFILES.iter().find(|profile| profile.name == name)?;
    let cache = setup.cache.unwrap_or(profile.cache);
    let drive = Box::new(Ssd::new(profile, setup.bytes, cache, setup.steady, setup.seed));
    Some(Built { drive, cache, fastest: Some(Ssd::fastest(profile)) })
}

/// Return why the model of this name cannot have a disk of `bytes` bytes; `None` if it can, and for unknown names.
pub fn refuses(name: &str, bytes: u64) -> Option<String> {
    let profile = ssd::PROFILES.iter().find(|profile| profile.name == name)?;
    let large = !ssd::fits(profile, bytes);
    large.then(|| {
        format!("size {bytes} is too large for the model of an SSD, whose map has 2^32 pages of 4 KiB")
    })
}

/// Return the names of all profiles.
pub fn names() -> impl Iterator<Item = &'static str> {
    let hdds = hdd::PROFILES.iter().map(|profile| profile.name);
    hdds.chain(ssd::PROFILES.iter().map(|profile| profile.name))
}

/// Return all profiles with their parameters, as JSON.
pub fn list() -> Value {
    json!({"hdd": hdd::PROFILES, "ssd": ssd::PROFILES})
}
