//! How many files and connections this process may have open, and what each part of the server gets of them.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// For the runtime, the ledger, the log, the lock, and short-lived reads of files and folders.
const RESERVE: usize = 64;

/// An upload has its file, and while that is flushed, or moved into place, another descriptor.
const OF_UPLOAD: usize = 2;

/// Connections of each listener, where there are not enough for all: with fewer, some slow clients keep all others out.
const FEW: usize = 32;

/// Bundles that are open for downloads, where there are not enough for all.
const FEW_BUNDLES: usize = 16;

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

/// The limit of open files is too low for a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "the limit of open files is {limit}, and this server needs {least} at least: raise the limit (ulimit -n, LimitNOFILE), \
     or lower --max-concurrent-uploads, of which each takes {OF_UPLOAD}"
)]
pub struct TooFew {
    /// What there is.
    pub limit: usize,
    /// What is needed.
    pub least: usize,
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

    /// With fewer than these the server is of no use.
    fn least(&self) -> usize {
        let few = FEW.min(self.connections) + self.operations() + FEW_BUNDLES.min(self.downloads);
        self.fixed().saturating_add(few)
    }

    /// Connections of probes and admins, where there are not enough for all.
    fn operations(&self) -> usize {
        if self.has_operations { FEW.min(self.connections) } else { 0 }
    }

    /// Allots `limit` descriptors: with fewer than all of it needs, connections and bundles get less, so that what was
    /// let in finds what it needs.
    pub fn allot(&self, limit: usize) -> Result<Allotment, TooFew> {
        if self.descriptors() <= limit {
            let Self { connections, downloads, .. } = *self;
            return Ok(Allotment { connections, operations: connections, bundles: downloads });
        }
        let least = self.least();
        if limit < least {
            return Err(TooFew { limit, least });
        }
        let operations = self.operations();
        let left = limit - self.fixed() - operations;
        // Many connections often download the same bundle.
        let bundles = (left / 3).max(left.saturating_sub(self.connections)).min(self.downloads);
        let connections = (left - bundles).min(self.connections);
        Ok(Allotment { connections, operations, bundles })
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

/// How many files this process has open, and how many it may have; `None` without a limit, or where that cannot be found out.
/// Blocks for about a millisecond for a thousand of them.
pub fn in_use() -> Option<(usize, usize)> {
    let limit = usize::try_from(getrlimit(Resource::Nofile).current?).ok()?;
    // The folder itself is open while it is read.
    let open = std::fs::read_dir("/proc/self/fd").ok()?.count().saturating_sub(1);
    Some((open, limit))
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
        assert_eq!(DEFAULTS.allot(2752), Ok(all));
        assert_eq!(Demand { has_operations: true, ..DEFAULTS }.allot(2752 + 2048), Ok(all));
    }

    #[test]
    fn with_fewer_what_is_let_in_fits_into_the_limit() {
        for demand in [DEFAULTS, Demand { has_operations: true, watches: 60, ..DEFAULTS }] {
            for limit in [332, 512, 1024, 2000] {
                let Allotment { connections, operations, bundles } = demand.allot(limit).unwrap();
                assert_eq!(demand.fixed() + connections + operations + bundles, limit);
            }
        }
        assert!(DEFAULTS.allot(1024).unwrap().connections > 500);
    }

    #[test]
    fn with_too_few_for_a_server_of_use_there_is_none() {
        for (demand, least) in [
            (DEFAULTS, 240),
            (Demand { has_operations: true, ..DEFAULTS }, 272),
            (Demand { uploads: 1, watches: 6, ..DEFAULTS }, 120),
            (Demand { connections: 1, ..DEFAULTS }, 209),
            (Demand { downloads: 1, ..DEFAULTS }, 225),
        ] {
            assert_eq!(demand.allot(least - 1), Err(TooFew { limit: least - 1, least }));
            let Allotment { connections, bundles, .. } = demand.allot(least).unwrap();
            let few = (demand.connections.min(FEW), demand.downloads.min(FEW_BUNDLES));
            assert_eq!((connections, bundles), few, "{demand:?}");
        }
    }
}
