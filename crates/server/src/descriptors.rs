//! How many files and connections this process may have open, and how many of them each part of the server gets.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Descriptors for the runtime, the ledger, the log, the lock, and short-lived reads of files and folders.
const RESERVE: usize = 64;

/// Descriptors of one upload: its file, and a second one while the file is flushed or moved into place.
const OF_UPLOAD: usize = 2;

/// The fewest connections of a listener when descriptors are scarce. With fewer, some slow clients keep all others out.
const FEW: usize = 32;

/// The fewest bundles that are open for downloads when descriptors are scarce.
const FEW_BUNDLES: usize = 16;

/// Accepted connections that wait for a place, and the fewest of them when descriptors are scarce.
const WAITING: usize = 128;
const FEW_WAITING: usize = 8;

/// When descriptors are scarce, one in so many is for connections that wait.
const SCARCE_WAITING: usize = 16;

/// The most that the server's flags allow at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Demand {
    pub connections: usize,
    /// Whether probes and metrics have a listener of their own.
    pub has_operations: bool,
    pub uploads: usize,
    /// Downloads at once, each of another bundle.
    pub downloads: usize,
    /// Connections to the API server.
    pub watches: usize,
}

/// How the descriptors are shared out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Allotment {
    /// Connections of the main listener.
    pub connections: usize,
    /// Connections of the listener of probes and metrics.
    pub operations: usize,
    /// Bundles that are open for downloads. A bundle that is downloaded many times at once is open only once.
    pub bundles: usize,
    /// Accepted connections that wait for a place, on each listener.
    pub waiting: usize,
}

/// The limit of open files is too low for this server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "the limit of open files is {limit}, and this server needs {least} at least: raise the limit (ulimit -n, LimitNOFILE), \
     or lower --max-concurrent-uploads, of which each takes {OF_UPLOAD}"
)]
pub struct TooFew {
    pub limit: usize,
    /// The least that the server needs.
    pub least: usize,
}

impl Demand {
    /// Number of descriptors if everything that the flags allow is used at once.
    pub fn descriptors(&self) -> usize {
        let of_listeners = self.connections.saturating_add(WAITING).saturating_mul(self.listeners());
        self.fixed().saturating_add(self.downloads).saturating_add(of_listeners)
    }

    fn listeners(&self) -> usize {
        1 + usize::from(self.has_operations)
    }

    /// Descriptors of the parts that cannot wait for a free one.
    fn fixed(&self) -> usize {
        RESERVE.saturating_add(self.watches).saturating_add(self.uploads.saturating_mul(OF_UPLOAD))
    }

    /// With fewer descriptors than this the server is of no use.
    fn least(&self) -> usize {
        let few = FEW.min(self.connections) + self.operations() + FEW_BUNDLES.min(self.downloads);
        self.fixed().saturating_add(few).saturating_add(FEW_WAITING * self.listeners())
    }

    /// Connections of probes and admins when descriptors are scarce.
    fn operations(&self) -> usize {
        if self.has_operations { FEW.min(self.connections) } else { 0 }
    }

    /// Shares out `limit` descriptors. If they are too few for everything, connections and bundles get fewer, so that
    /// each request that the server lets in finds the descriptors that it needs.
    pub fn allot(&self, limit: usize) -> Result<Allotment, TooFew> {
        if self.descriptors() <= limit {
            let Self { connections, downloads, .. } = *self;
            let (operations, bundles) = (connections, downloads);
            return Ok(Allotment { connections, operations, bundles, waiting: WAITING });
        }
        let least = self.least();
        if limit < least {
            return Err(TooFew { limit, least });
        }
        let operations = self.operations();
        let room = limit - least + FEW_WAITING * self.listeners();
        let waiting = (limit / SCARCE_WAITING).clamp(FEW_WAITING, WAITING).min(room / self.listeners());
        let left = limit - self.fixed() - operations - waiting * self.listeners();
        // Many connections often download the same bundle, so bundles get only a third.
        let bundles = (left / 3).max(left.saturating_sub(self.connections)).min(self.downloads);
        let connections = (left - bundles).min(self.connections);
        Ok(Allotment { connections, operations, bundles, waiting })
    }
}

/// Raises the soft limit of open files to the hard limit. Returns the limit that is then in force; `None` means no
/// limit.
pub fn raise() -> Option<usize> {
    let limit = getrlimit(Resource::Nofile);
    let raised = Rlimit { current: limit.maximum, maximum: limit.maximum };
    let current = match setrlimit(Resource::Nofile, raised) {
        Ok(()) => limit.maximum,
        Err(_) => limit.current,
    };
    current.map(|current| usize::try_from(current).unwrap_or(usize::MAX))
}

/// How many files this process has open, and how many it may have open. `None` if there is no limit, or if the number
/// cannot be read. Blocks for about a millisecond for each thousand open files.
pub fn in_use() -> Option<(usize, usize)> {
    let limit = usize::try_from(getrlimit(Resource::Nofile).current?).ok()?;
    // Reading the folder opens one more descriptor.
    let open = std::fs::read_dir("/proc/self/fd").ok()?.count().saturating_sub(1);
    Some((open, limit))
}

#[cfg(test)]
mod tests {
    use super::*;

    const DEFAULTS: Demand =
        Demand { connections: 2048, has_operations: false, uploads: 64, downloads: 512, watches: 0 };

    #[test]
    fn with_enough_descriptors_every_part_gets_what_the_flags_say() {
        assert_eq!(DEFAULTS.descriptors(), 2880);
        let all = Allotment { connections: 2048, operations: 2048, bundles: 512, waiting: WAITING };
        assert_eq!(DEFAULTS.allot(2880), Ok(all));
        assert_eq!(Demand { has_operations: true, ..DEFAULTS }.allot(2880 + 2176), Ok(all));
    }

    #[test]
    fn with_fewer_descriptors_the_parts_together_fit_into_the_limit() {
        for demand in [DEFAULTS, Demand { has_operations: true, watches: 60, ..DEFAULTS }] {
            for limit in [348, 512, 1024, 2000] {
                let Allotment { connections, operations, bundles, waiting } = demand.allot(limit).unwrap();
                let waiting = waiting * demand.listeners();
                assert_eq!(demand.fixed() + connections + operations + bundles + waiting, limit);
            }
        }
        assert_eq!(DEFAULTS.allot(1024).unwrap().connections, 512);
    }

    #[test]
    fn a_limit_that_is_too_low_for_a_server_of_use_is_refused() {
        for (demand, least) in [
            (DEFAULTS, 248),
            (Demand { has_operations: true, ..DEFAULTS }, 288),
            (Demand { uploads: 1, watches: 6, ..DEFAULTS }, 128),
            (Demand { connections: 1, ..DEFAULTS }, 217),
            (Demand { downloads: 1, ..DEFAULTS }, 233),
        ] {
            assert_eq!(demand.allot(least - 1), Err(TooFew { limit: least - 1, least }));
            let Allotment { connections, bundles, .. } = demand.allot(least).unwrap();
            let few = (demand.connections.min(FEW), demand.downloads.min(FEW_BUNDLES));
            assert_eq!((connections, bundles), few, "{demand:?}");
        }
    }
}
