//! Seek times. The time grows with the square root of the distance while the head accelerates, and linearly beyond
//! (Ruemmler, Wilkes: An introduction to disk drive modeling, IEEE Computer 27(3), 1994).
//!
//! Three values of a data sheet determine the curve: the seek to the next track, the average over all pairs of tracks,
//! and the full stroke. Both parts meet with equal value and slope.

/// A seek curve. Distances are shares of the full stroke.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Curve {
    settle: f64,
    root: f64,
    knee: f64,
    slope: f64,
}

impl Curve {
    /// Fit a curve to these times, all in the same unit. If no curve has this average, the result is the nearest one.
    pub(crate) fn fit(track: f64, average: f64, full: f64) -> Self {
        let (mut low, mut high) = (0.0, 1.0);
        for _ in 0..60 {
            let knee = f64::midpoint(low, high);
            if Self::with_knee(track, full, knee).mean() < average { low = knee } else { high = knee }
        }
        Self::with_knee(track, full, f64::midpoint(low, high))
    }

    fn with_knee(track: f64, full: f64, knee: f64) -> Self {
        let knee: f64 = knee.max(1e-6);
        // At the knee: value = settle + root √knee, slope = root / (2 √knee). At 1: value + slope (1 − knee) = full.
        let root = (full - track) / (knee.sqrt() / 2.0 + 1.0 / (2.0 * knee.sqrt()));
        Self { settle: track, root, knee, slope: root / (2.0 * knee.sqrt()) }
    }

    /// Return the time of a seek over this share of the full stroke, which must be above 0.
    pub(crate) fn time(&self, share: f64) -> f64 {
        if share <= self.knee {
            self.settle + self.root * share.sqrt()
        } else {
            self.settle + self.root * self.knee.sqrt() + self.slope * (share - self.knee)
        }
    }

    /// Return the mean time between two random positions. Distances have the density 2 (1 − x).
    fn mean(&self) -> f64 {
        const STEPS: u32 = 2000;
        let step = 1.0 / f64::from(STEPS);
        (0..STEPS)
            .map(|index| (f64::from(index) + 0.5) * step)
            .map(|share| 2.0 * (1.0 - share) * self.time(share) * step)
            .sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn meets_its_three_figures() {
        for (track, average, full) in [(0.8, 8.5, 18.0), (0.4, 2.9, 7.3), (1.0, 12.0, 25.0)] {
            let curve = Curve::fit(track, average, full);
            assert!((curve.time(1e-9) - track).abs() < 0.01, "{curve:?}");
            assert!((curve.time(1.0) - full).abs() < 1e-6, "{curve:?}");
            assert!((curve.mean() - average).abs() / average < 0.01, "{curve:?} {}", curve.mean());
        }
    }

    #[test]
    fn never_falls() {
        let curve = Curve::fit(0.8, 8.5, 18.0);
        let times: Vec<f64> = (1..1000).map(|index| curve.time(f64::from(index) / 1000.0)).collect();
        assert!(times.is_sorted());
    }
}
