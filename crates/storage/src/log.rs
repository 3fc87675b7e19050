//! The log of the ledger in the bucket of its bundles. With it the bucket alone is enough to go on: the files of the ledger are
//! only a cache.

mod append;
mod copies;
mod group;
mod heartbeat;
#[cfg(test)]
mod model;
mod protocol;
mod reading;
mod stamp;
mod store;
mod takeover;

pub use append::{Appender, Progress};
pub use copies::{keep_copy, remove_earlier_epochs};
pub use group::{Columns, DamagedGroup, Group, RowChange, Value};
pub use heartbeat::Heartbeat;
pub use protocol::{Answer, Append, NotAPosition, Position, Takeover, Trim};
pub use stamp::{ForeignStamp, Waiting, WriterEnd, WriterStamp, WriterState};
pub use store::{KeptCopy, LedgerFile, LogError, LogStore, Object};
pub use takeover::{Started, Starting, Timing};
