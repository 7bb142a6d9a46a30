//! The interface of all models. A model takes requests and reports when they complete and what is on the medium.

use serde::{Deserialize, Serialize};

use crate::Nanos;

/// Operation of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Op {
    /// Transfers data to the host.
    Read,
    /// Transfers data from the host.
    Write,
    /// Makes all earlier writes durable.
    Flush,
    /// Declares that the data of these sectors is no longer needed.
    Discard,
}

/// One request. Numbers increase in the order of arrival.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Request {
    /// Number of the request.
    pub id: u64,
    /// Operation.
    pub op: Op,
    /// First sector; 0 for a flush.
    pub sector: u64,
    /// Number of sectors; 0 for a flush.
    pub sectors: u64,
}

impl Request {
    /// Return the sector after the last.
    pub fn end(&self) -> u64 {
        self.sector + self.sectors
    }
}

/// Event in a drive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Event {
    /// A request completed, as the host sees it.
    Done {
        /// Number of the request.
        id: u64,
        /// Time of completion.
        at: Nanos,
    },
    /// The data that requests up to `id` wrote to these sectors is on the medium.
    Persisted {
        /// First sector.
        sector: u64,
        /// Number of sectors.
        sectors: u64,
        /// The last request that is included. Later writes are not.
        id: u64,
    },
}

/// Kind of write cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Cache {
    /// Memory that loses its contents when power is cut.
    Volatile,
    /// No cache: a write completes when it is on the medium.
    None,
    /// Memory that a battery or capacitors protect: a flush has nothing to do.
    Protected,
}

/// A drive in virtual time.
pub trait Drive: Send {
    /// Accept a request that arrives at `now`. These times never decrease, but one can be slightly earlier than the
    /// last `advance`: a server looks ahead by the delay of its answers.
    fn submit(&mut self, now: Nanos, request: &Request);

    /// Return whether the drive has no command for writing zeros, so that it writes them like other data.
    fn writes_zeros(&self) -> bool {
        false
    }

    /// Return whether its speed depends on what was written before, so that its state is more than its contents.
    fn remembers(&self) -> bool {
        false
    }

    /// Return the time of the next event if no further request arrives.
    fn next_event(&self) -> Option<Nanos>;

    /// Advance time to `now` and append the events until then, in order.
    fn advance(&mut self, now: Nanos, events: &mut Vec<Event>);

    /// Cut power: drop all requests and all cached data.
    fn cut(&mut self);

    /// Return the model's counters.
    fn report(&self) -> serde_json::Value;

    /// Return to the state in which the drive was created.
    fn reset(&mut self);
}
