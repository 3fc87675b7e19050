//! The guard against mass deletion. If more than half of the owners of a namespace vanish at once, this is more likely a
//! mistake than the truth. If it happens in most namespaces, the cluster is more likely another one.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::time::Duration;

#[cfg(test)]
mod tests;

/// How long such a finding must last before resources are deleted for it.
const PROBATION: Duration = Duration::from_hours(1);

/// A namespace with fewer owners than this says nothing by itself.
const OWNERS_OF_A_NAMESPACE: usize = 10;

/// So many namespaces, each with so many owners, say something together.
const NAMESPACES: usize = 3;
const OWNERS_OF_EACH: usize = 3;

/// The owners of one namespace that were once seen present, each as a number that stands for it. An owner counts once,
/// however many resources it has.
#[derive(Debug, Default)]
pub(super) struct Census {
    pub(super) known: HashSet<u64>,
    /// Those that are absent now, and have been for as long as a deletion needs.
    pub(super) vanished: HashSet<u64>,
    /// Those whose presence is not known.
    pub(super) unknown: HashSet<u64>,
}

/// Whether the resources of a namespace may be deleted for lack of an owner.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Allowance {
    /// None of them, for now.
    Nothing,
    /// Some in each sweep, because the finding has lasted.
    Slices,
    /// All of them.
    All,
}

/// What the guard allows in one sweep.
#[derive(Debug)]
pub(super) struct Allowances {
    everywhere: Allowance,
    of_namespaces: BTreeMap<String, Allowance>,
    released: BTreeSet<String>,
    is_all_released: bool,
}

/// For what an admin ends the hour.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Released {
    #[default]
    Nothing,
    /// The resources of this namespace.
    Namespace(String),
    /// All resources.
    All,
}

/// Remembers when findings began, by the monotonic clock. A restart begins the time anew.
#[derive(Debug, Default)]
pub(super) struct Guard {
    everywhere: Option<Duration>,
    namespaces: BTreeMap<String, Duration>,
    /// Namespaces whose findings an admin has called right, until they are over.
    released: BTreeSet<String>,
    /// The same for all findings.
    is_all_released: bool,
}

/// How many of a number seem to be lost.
#[derive(Debug, Clone, Copy)]
struct Loss {
    of: usize,
    lost: usize,
    /// How many more may be lost.
    unknown: usize,
}

impl Guard {
    /// Decides what may be deleted.
    pub(super) fn judge(
        &mut self,
        namespaces: &BTreeMap<String, Census>,
        release: &Released,
        now: Duration,
    ) -> Allowances {
        self.release(release, namespaces);
        let everywhere = self.judge_everywhere(namespaces, now);
        let mut of_namespaces = BTreeMap::new();
        for (namespace, census) in namespaces {
            let loss = census.loss();
            let is_large = loss.of >= OWNERS_OF_A_NAMESPACE;
            let since = self.namespaces.get(namespace).copied();
            let (since, allowance) = probation(since, loss, is_large, now);
            if allowance != Allowance::All {
                of_namespaces.insert(namespace.clone(), allowance);
            }
            match since {
                Some(began) if began == now => {
                    self.namespaces.insert(namespace.clone(), began);
                    tracing::error!(
                        namespace,
                        owners = loss.of,
                        vanished = loss.lost,
                        "more than half of the owners of a namespace vanished at once: for an hour nothing of it is deleted \
                         for lack of an owner; if that is right: cloakroom clean --release-held {namespace}"
                    );
                }
                None if self.namespaces.remove(namespace).is_some() => {
                    tracing::info!(namespace, "the deletions of a namespace are no longer held back");
                }
                _ => {}
            }
        }
        self.namespaces.retain(|namespace, _| namespaces.contains_key(namespace));
        let (released, is_all_released) = (self.released.clone(), self.is_all_released);
        if is_all_released && everywhere == Allowance::All && of_namespaces.is_empty() {
            self.is_all_released = false;
        }
        Allowances { everywhere, of_namespaces, released, is_all_released }
    }

    fn judge_everywhere(&mut self, namespaces: &BTreeMap<String, Census>, now: Duration) -> Allowance {
        let losses = namespaces.values().map(Census::loss).filter(|loss| loss.of >= OWNERS_OF_EACH);
        let all = losses.fold(Loss { of: 0, lost: 0, unknown: 0 }, |all, loss| Loss {
            of: all.of + 1,
            lost: all.lost + usize::from(loss.is_most()),
            unknown: all.unknown + usize::from(!loss.is_most() && loss.may_be_most()),
        });
        let (since, allowance) = probation(self.everywhere, all, all.of >= NAMESPACES, now);
        if since == Some(now) {
            tracing::error!(
                namespaces = all.of,
                vanished = all.lost,
                "most owners vanished at once in more than half of all namespaces: for an hour nothing is deleted for lack \
                 of an owner; check that this server asks the right cluster; if it does: cloakroom clean --release-held all"
            );
        } else if since.is_none() && self.everywhere.is_some() {
            tracing::info!("deletions are no longer held back in all namespaces");
        }
        self.everywhere = since;
        allowance
    }

    /// Notes what an admin releases. It holds until the finding is over: one sweep may have no time to read all owners.
    fn release(&mut self, release: &Released, namespaces: &BTreeMap<String, Census>) {
        match release {
            Released::Nothing => {}
            Released::Namespace(namespace) => drop(self.released.insert(namespace.clone())),
            Released::All => self.is_all_released = true,
        }
        self.released
            .retain(|namespace| namespaces.get(namespace).is_some_and(|census| census.loss().is_most()));
    }
}

/// Since when a finding lasts, and what it allows.
fn probation(
    since: Option<Duration>,
    loss: Loss,
    is_large: bool,
    now: Duration,
) -> (Option<Duration>, Allowance) {
    match since {
        None if is_large && loss.is_most() => (Some(now), Allowance::Nothing),
        None => (None, Allowance::All),
        // Unknown owners may still be absent, so they do not end the finding.
        Some(since) if !loss.is_most() && is_large && loss.may_be_most() => (Some(since), Allowance::Nothing),
        Some(_) if !loss.is_most() => (None, Allowance::All),
        Some(since) if now.saturating_sub(since) < PROBATION => (Some(since), Allowance::Nothing),
        Some(since) => (Some(since), Allowance::Slices),
    }
}

impl Loss {
    fn is_most(self) -> bool {
        self.lost * 2 > self.of
    }

    fn may_be_most(self) -> bool {
        (self.lost + self.unknown) * 2 > self.of
    }
}

impl Census {
    fn loss(&self) -> Loss {
        let unknown = self.unknown.difference(&self.vanished).count();
        Loss { of: self.known.len(), lost: self.vanished.len(), unknown }
    }
}

impl Allowances {
    /// What is allowed for the resources of a namespace.
    pub(super) fn of(&self, namespace: &str) -> Allowance {
        let is_released = self.is_all_released || self.released.contains(namespace);
        if is_released {
            return Allowance::All;
        }
        let own = self.of_namespaces.get(namespace).copied().unwrap_or(Allowance::All);
        own.min(self.everywhere)
    }
}
