//! What every model is: it takes requests, and says when they are done and what is on the medium.

use serde::{Deserialize, Serialize};

use crate::Nanos;

/// What is asked of a drive.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Op {
    /// Data to the host.
    Read,
    /// Data from the host.
    Write,
    /// Everything written before it onto the medium.
    Flush,
    /// These sectors are no longer needed.
    Discard,
}

/// One request. Numbers rise in the order of arrival.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Request {
    /// The request's number.
    pub id: u64,
    /// What is asked.
    pub op: Op,
    /// First sector; 0 for a flush.
    pub sector: u64,
    /// Number of sectors; 0 for a flush.
    pub sectors: u64,
}

impl Request {
    /// The sector behind the last.
    pub fn end(&self) -> u64 {
        self.sector + self.sectors
    }
}

/// What happened in a drive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Event {
    /// A request is done, as the host sees it.
    Done {
        /// Its number.
        id: u64,
        /// When.
        at: Nanos,
    },
    /// What requests up to `id` wrote to these sectors is on the medium.
    Persisted {
        /// First sector.
        sector: u64,
        /// Number of sectors.
        sectors: u64,
        /// Later writes are not included.
        id: u64,
    },
}

/// How written data is kept until it is on the medium.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Cache {
    /// In memory that a power cut empties.
    Volatile,
    /// Not at all: a write is done when it is on the medium.
    None,
    /// In memory that a battery or capacitors save: a flush has nothing to do.
    Protected,
}

/// A drive in virtual time.
pub trait Drive: Send {
    /// Takes a request that arrives at `now`. These times never fall, but one can be somewhat before the last `advance`: a
    /// server looks ahead by the time that its answers are under way.
    fn submit(&mut self, now: Nanos, request: &Request);

    /// Whether it has no command for zeros, so that they are written like all else.
    fn writes_zeros(&self) -> bool {
        false
    }

    /// When something happens next if nothing more arrives.
    fn next_event(&self) -> Option<Nanos>;

    /// Lets time pass until `now` and appends what happened, in order.
    fn advance(&mut self, now: Nanos, events: &mut Vec<Event>);

    /// Power goes: forgets every request and everything cached.
    fn cut(&mut self);

    /// The model's own counters.
    fn report(&self) -> serde_json::Value;

    /// Back to the state in which the drive was made.
    fn reset(&mut self);
}
