//! Positions of sectors. Zones of tracks hold fewer sectors from the outside in. Successive tracks use all heads of a
//! cylinder before the next cylinder. Each track starts slightly later in the revolution than the previous one, so that
//! the head arrives in time.

use crate::hdd::profiles::Profile;
use crate::hdd::seek::Curve;
use crate::{Nanos, SECTOR};

#[derive(Debug, Clone, Copy)]
struct Zone {
    first_sector: u64,
    first_cylinder: u64,
    per_track: u64,
}

/// Position of a sector.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Place {
    pub(crate) cylinder: u64,
    pub(crate) head: u64,
    /// Sectors from here to the end of the track, including this one.
    left: u64,
    per_track: u64,
    /// Angle at which the sector begins, as a share of a revolution.
    angle: f64,
}

/// The mechanics of a drive.
#[derive(Debug, Clone)]
pub(crate) struct Geometry {
    zones: Vec<Zone>,
    heads: u64,
    cylinders: u64,
    revolution: f64,
    head_switch: f64,
    head_skew: f64,
    cylinder_skew: f64,
    read: Curve,
    write: Curve,
    phase: f64,
}

const ZONES: u64 = 24;

#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // positive, far below 2^63
fn whole(value: f64) -> u64 {
    value as u64
}

impl Geometry {
    /// Create a drive of this profile with at least `sectors` sectors. A small disk uses the outer tracks of the whole
    /// drive, as a partition would. `phase` is the rotational position at time 0, as a share of a revolution.
    pub(crate) fn new(profile: &Profile, sectors: u64, phase: f64) -> Self {
        let revolution = 60e9 / profile.rpm;
        let head_switch = profile.head_switch_ms * 1e6;
        let skew = |time: f64| (time / revolution) + 0.01;
        let (head_skew, cylinder_skew) =
            (skew(head_switch), skew((profile.track_ms + profile.write_extra_ms) * 1e6));
        let heads = profile.heads as f64;
        let skews = ((heads - 1.0) * head_skew + cylinder_skew) / heads;
        let per_track = |rate: f64| rate * 1e6 * (revolution * (1.0 + skews)) / 1e9 / SECTOR as f64;
        let (outer, inner) = (per_track(profile.outer_mb_s), per_track(profile.inner_mb_s));
        let total = sectors.max(profile.capacity / SECTOR);
        let mean = f64::midpoint(outer, inner) * heads;
        let per_zone = whole(total as f64 / mean / ZONES as f64 * 1.001) + 1;
        let mut zones = Vec::new();
        let mut first_sector = 0;
        for index in 0..ZONES {
            let share = (index as f64 + 0.5) / ZONES as f64;
            let per_track = whole(outer + (inner - outer) * share);
            zones.push(Zone { first_sector, first_cylinder: index * per_zone, per_track });
            first_sector += per_zone * profile.heads * per_track;
        }
        let curve = |extra: f64| {
            let time = |ms: f64| (ms + extra) * 1e6;
            Curve::fit(time(profile.track_ms), time(profile.average_ms), time(profile.full_ms))
        };
        Self {
            zones,
            heads: profile.heads,
            cylinders: per_zone * ZONES,
            revolution,
            head_switch,
            head_skew,
            cylinder_skew,
            read: curve(0.0),
            write: curve(profile.write_extra_ms),
            phase,
        }
    }

    /// Return the position of a sector.
    pub(crate) fn place(&self, sector: u64) -> Place {
        let index = self.zones.partition_point(|zone| zone.first_sector <= sector) - 1;
        let zone = self.zones[index];
        let inside = sector - zone.first_sector;
        let (track, offset) = (inside / zone.per_track, inside % zone.per_track);
        let (cylinder, head) = (zone.first_cylinder + track / self.heads, track % self.heads);
        let switches = cylinder * (self.heads - 1) + head;
        let start = switches as f64 * self.head_skew + cylinder as f64 * self.cylinder_skew;
        Place {
            cylinder,
            head,
            left: zone.per_track - offset,
            per_track: zone.per_track,
            angle: (start + offset as f64 / zone.per_track as f64).fract(),
        }
    }

    /// Return the time in ns to move from one track to another, without rotation.
    fn movement(&self, from: (u64, u64), to: &Place, write: bool) -> f64 {
        let distance = from.0.abs_diff(to.cylinder);
        if distance > 0 {
            let curve = if write { &self.write } else { &self.read };
            curve.time(distance as f64 / self.cylinders as f64)
        } else if from.1 == to.head {
            0.0
        } else {
            self.head_switch
        }
    }

    /// Return the time at which the head is over `to` if it leaves `from` at `now`. A seek that arrives less than
    /// `margin` ns before its sector waits for another revolution.
    pub(crate) fn arrival(
        &self,
        now: Nanos,
        from: (u64, u64),
        to: &Place,
        write: bool,
        margin: f64,
    ) -> Nanos {
        let movement = self.movement(from, to, write);
        let there = now as f64 + movement;
        let mut turn = to.angle - (there / self.revolution + self.phase).fract();
        if turn < -1e-4 {
            turn += 1.0;
        } else if turn > 1.0 - 1e-4 {
            turn -= 1.0;
        }
        let mut wait = turn.max(0.0) * self.revolution;
        if movement > 0.0 && wait < margin && from.0 != to.cylinder {
            wait += self.revolution;
        }
        whole((there + wait).round()).max(now)
    }

    /// Return the time at which `sectors` sectors have passed under the head, and the head's track then. At `now` the
    /// head is over the first of them.
    pub(crate) fn transfer(&self, now: Nanos, sector: u64, sectors: u64, write: bool) -> (Nanos, (u64, u64)) {
        let (mut now, mut sector, mut left) = (now, sector, sectors);
        loop {
            let place = self.place(sector);
            let part = left.min(place.left);
            now += whole((part as f64 / place.per_track as f64 * self.revolution).round());
            left -= part;
            sector += part;
            let at = (place.cylinder, place.head);
            if left == 0 {
                return (now, at);
            }
            now = self.arrival(now, at, &self.place(sector), write, 0.0);
        }
    }

    /// Return the first sector of a track.
    pub(crate) fn first_sector(&self, track: (u64, u64)) -> u64 {
        let index = self.zones.partition_point(|zone| zone.first_cylinder <= track.0) - 1;
        let zone = self.zones[index];
        zone.first_sector + ((track.0 - zone.first_cylinder) * self.heads + track.1) * zone.per_track
    }

    /// Return the time of one revolution.
    pub(crate) fn revolution(&self) -> Nanos {
        whole(self.revolution)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hdd::profiles::PROFILES;

    fn geometry() -> (&'static Profile, Geometry) {
        (&PROFILES[0], Geometry::new(&PROFILES[0], 0, 0.0))
    }

    #[test]
    fn places_follow_one_another() {
        let (profile, geometry) = geometry();
        assert_eq!(geometry.place(0).cylinder, 0);
        let last = geometry.place(profile.capacity / SECTOR - 1);
        assert!(last.cylinder < geometry.cylinders && last.cylinder > geometry.cylinders * 9 / 10);
        let track = geometry.place(0).per_track;
        assert_eq!(geometry.place(track).head, 1);
        assert_eq!(geometry.place(track * profile.heads).cylinder, 1);
    }

    #[test]
    fn sequential_rates_are_the_data_sheets() {
        let (profile, geometry) = geometry();
        for (first, rate) in
            [(0, profile.outer_mb_s), (profile.capacity / SECTOR - (1 << 20), profile.inner_mb_s)]
        {
            let start = geometry.arrival(0, (0, 0), &geometry.place(first), false, 0.0);
            let (end, _) = geometry.transfer(start, first, 200_000, false);
            let measured = 200_000.0 * 512.0 / (end - start) as f64 * 1e3;
            assert!((measured / rate - 1.0).abs() < 0.03, "{measured} MB/s instead of {rate}");
        }
    }

    #[test]
    fn a_transfer_in_parts_takes_as_long_as_at_once() {
        let (_, geometry) = geometry();
        let start = geometry.arrival(0, (0, 0), &geometry.place(1000), false, 0.0);
        let whole = geometry.transfer(start, 1000, 20_000, false).0;
        let (mut now, mut at) = (start, (0, 0));
        for part in 0..200 {
            let place = geometry.place(1000 + part * 100);
            if part > 0 {
                now = geometry.arrival(now, at, &place, false, 0.0);
            }
            (now, at) = geometry.transfer(now, 1000 + part * 100, 100, false);
        }
        assert!(now.abs_diff(whole) < 200_000, "{now} {whole}");
    }
}
