//! The log of the ledger in the bucket of its bundles. With it the bucket alone is enough to go on: the files of the ledger are
//! only a cache.

mod group;
#[cfg(test)]
mod model;
mod protocol;
mod stamp;

pub use group::{Columns, DamagedGroup, Group, RowChange, Value};
pub use protocol::{Answer, Append, Position, Takeover, Trim};
pub use stamp::{ForeignStamp, Waiting, WriterStamp, WriterState};
