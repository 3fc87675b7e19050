//! Deletes resources whose time is over: a pure decision, one sweep, and the loop around it.

mod decide;
mod downloads;
mod guard;
mod identity;
mod judge;
mod last_known;
mod run;
mod sweep;

pub use cloakroom_core::resource::KeepReason;
pub use decide::{Decision, Kept, Knowledge, Policy, decide};
pub use downloads::Downloads;
pub use guard::Released;
pub use identity::{Accepted, ClusterCheck, ClusterState, Identity, NotAccepted};
pub use judge::Judge;
pub use run::{Cleaner, Ended, LastSweep, Stopped};
pub use sweep::{SweepRequest, Sweeper, Swept};
