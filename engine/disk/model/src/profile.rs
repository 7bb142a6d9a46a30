//! All drives that are known, by name.

use serde_json::{Value, json};

use crate::Nanos;
use crate::drive::{Cache, Drive};
use crate::hdd::{self, Hdd};
use crate::plain::Plain;
use crate::ssd::{self, Collection, Ssd};

/// What is asked of a drive beside its profile. None: as the profile has it.
#[derive(Debug, Clone, Copy)]
pub struct Setup {
    /// Size.
    pub bytes: u64,
    /// Write cache.
    pub cache: Option<Cache>,
    /// Its size; an SSD's is the profile's.
    pub cache_bytes: Option<u64>,
    /// Of everything random.
    pub seed: u64,
    /// How an SSD collects garbage.
    pub collection: Collection,
    /// Whether an SSD has been filled and written over.
    pub steady: bool,
}

/// A drive, and what a server must know of it.
pub struct Built {
    /// The drive.
    pub drive: Box<dyn Drive>,
    /// How it caches writes.
    pub cache: Cache,
    /// The least time of a request; None: at once.
    pub fastest: Option<Nanos>,
}

/// Makes a drive; None if no profile has this name. Without a name: one that answers at once.
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
    let drive = Box::new(Ssd::new(profile, setup.bytes, cache, setup.collection, setup.steady, setup.seed));
    Some(Built { drive, cache, fastest: Some(Ssd::fastest(profile)) })
}

/// Names of all profiles.
pub fn names() -> impl Iterator<Item = &'static str> {
    let hdds = hdd::PROFILES.iter().map(|profile| profile.name);
    hdds.chain(ssd::PROFILES.iter().map(|profile| profile.name))
}

/// All profiles with their figures.
pub fn list() -> Value {
    json!({"hdd": hdd::PROFILES, "ssd": ssd::PROFILES})
}
