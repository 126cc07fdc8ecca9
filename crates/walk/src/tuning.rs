//! Delays after which a walk gets more workers.

use std::time::Duration;

use bc_pool::Metering;

/// Time for which the caller's thread walks before it starts others: about the cost of starting a
/// thread, so a small tree never does and a large one loses nothing that counts.
const ALONE: Duration = Duration::from_micros(250);

/// Delays after which a walk gets more workers. Only its duration depends on them.
pub(crate) struct Tuning {
    /// Time for which the caller's thread is alone.
    pub(crate) alone: Duration,
    /// Measurement of the time that workers wait for storage.
    pub(crate) metering: Metering,
}

impl Default for Tuning {
    fn default() -> Tuning {
        Tuning {
            alone: ALONE,
            metering: Metering::default(),
        }
    }
}
