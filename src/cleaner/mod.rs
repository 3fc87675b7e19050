//! Expires and deletes: a pure decision, one pass, and the loop around it.

mod decide;
mod run;
mod steady;
mod sweep;

pub use decide::{Decision, Policy, decide};
pub use run::run;
pub use sweep::{Sweeper, Swept};
