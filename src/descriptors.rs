//! How many files and connections this process may have open, and what each part of the server gets of them.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// For the runtime, the ledger, the log, the lock, and short-lived reads of files and folders.
const RESERVE: usize = 64;

/// An upload has its file, and while that is flushed, or moved into place, another descriptor.
const OF_UPLOAD: usize = 2;

/// Connections of probes and admins, where there are not enough for all.
const FEW: usize = 32;

/// What the flags come to, at the most.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Demand {
    /// Connections of each listener.
    pub connections: usize,
    /// Whether probes and metrics have a listener of their own.
    pub has_operations: bool,
    /// Uploads at once.
    pub uploads: usize,
    /// Downloads at once, each of another bundle.
    pub downloads: usize,
    /// Connections to the API server.
    pub watches: usize,
}

/// What there is of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Allotment {
    /// Connections of the main listener.
    pub connections: usize,
    /// Connections of the listener of probes and metrics.
    pub operations: usize,
    /// Bundles that are open for downloads; one that is downloaded many times at once is open once.
    pub bundles: usize,
}

impl Demand {
    /// Descriptors for all of it.
    pub fn descriptors(&self) -> usize {
        let listeners = 1 + usize::from(self.has_operations);
        self.fixed().saturating_add(self.downloads).saturating_add(self.connections.saturating_mul(listeners))
    }

    /// What cannot wait.
    fn fixed(&self) -> usize {
        RESERVE.saturating_add(self.watches).saturating_add(self.uploads.saturating_mul(OF_UPLOAD))
    }

    /// Allots `limit` descriptors: with fewer than all of it needs, connections and bundles get less, so that what was
    /// let in finds what it needs.
    pub fn allot(&self, limit: usize) -> Allotment {
        if self.descriptors() <= limit {
            let Self { connections, downloads, .. } = *self;
            return Allotment { connections, operations: connections, bundles: downloads };
        }
        let operations = if self.has_operations { FEW.min(self.connections) } else { 0 };
        let left = limit.saturating_sub(self.fixed() + operations);
        // Many connections often download the same bundle.
        let bundles = (left / 3).clamp(1, self.downloads);
        let connections = left.saturating_sub(bundles).clamp(1, self.connections);
        Allotment { connections, operations, bundles }
    }
}

/// Raises the soft limit of open files to the hard one, and returns what it is then; `None` without any limit.
pub fn raise() -> Option<usize> {
    let limit = getrlimit(Resource::Nofile);
    let raised = Rlimit { current: limit.maximum, maximum: limit.maximum };
    let current = match setrlimit(Resource::Nofile, raised) {
        Ok(()) => limit.maximum,
        Err(_) => limit.current,
    };
    current.map(|current| usize::try_from(current).unwrap_or(usize::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    const DEFAULTS: Demand =
        Demand { connections: 2048, has_operations: false, uploads: 64, downloads: 512, watches: 0 };

    #[test]
    fn with_enough_of_them_everything_is_as_the_flags_say() {
        assert_eq!(DEFAULTS.descriptors(), 2752);
        let all = Allotment { connections: 2048, operations: 2048, bundles: 512 };
        assert_eq!(DEFAULTS.allot(2752), all);
        assert_eq!(Demand { has_operations: true, ..DEFAULTS }.allot(2752 + 2048), all);
    }

    #[test]
    fn with_fewer_what_is_let_in_fits_into_the_limit() {
        for demand in [DEFAULTS, Demand { has_operations: true, watches: 60, ..DEFAULTS }] {
            for limit in [512, 1024, 2000] {
                let allotment = demand.allot(limit);
                let all = demand.fixed() + allotment.connections + allotment.operations + allotment.bundles;
                assert!(all <= limit && all + 1 >= limit, "{allotment:?} of {limit} are {all}");
            }
        }
        assert!(DEFAULTS.allot(1024).connections > 500);
    }

    #[test]
    fn with_next_to_none_there_is_still_one_of_each() {
        assert_eq!(DEFAULTS.allot(3), Allotment { connections: 1, operations: 0, bundles: 1 });
    }
}
