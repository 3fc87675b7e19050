//! Bundles: flat `.tar.gz` archives written fast, and archives of strangers read safely.
//!
//! [`PackPlan`] checks the files and names them, [`pack()`] writes them; [`unpack()`] extracts into a folder
//! of its own, and [`place()`] moves what was extracted to where it belongs. Nothing here waits on a network
//! or knows of a server.

mod method;
mod names;
mod place;
mod plan;
mod policy;
mod unpack;

mod gzip;
mod pack;
mod sources;

#[cfg(test)]
mod round_trip;

pub use names::unique_names;
pub use pack::pack;
pub use place::{PlaceError, check_place, place};
pub use plan::{PackError, PackPlan, PlannedFile, Renamed};
pub use policy::{NameFault, RESERVED_PREFIX, check_file_name};
pub use sources::{Disk, Source, Sources, Stamp};
pub use unpack::{UnpackError, UnpackLimits, UnpackedFile, unpack};
