//! Bundles: writes `.tar.gz` archives fast, and reads untrusted archives safely.
//!
//! [`PackPlan`] checks and names the files, also those of folders, and [`pack()`] writes them. [`unpack()`] extracts a bundle into its own
//! [`Folder`], and [`place()`] moves the extracted files to their target. This room uses no network and does not know
//! the server.

mod content;
pub(crate) mod folder;
mod method;
mod names;
mod place;
mod plan;
mod policy;
mod tree;
mod unpack;

mod gzip;
mod pack;
mod segments;
mod sources;

#[cfg(test)]
mod round_trip;

pub use folder::Folder;
pub use names::unique_names;
pub use pack::{BundleOutput, pack, pack_in_segments};
pub use place::{PlaceError, check_place, place};
pub use plan::{PackError, PackPlan, PlannedFile, Renamed};
pub use policy::{NameFault, RESERVED_PREFIX, check_file_name};
pub use segments::{Segment, Segments};
pub use sources::{Disk, FileStamp, Source, Sources};
pub use tree::{LeftOut, PackRules, check_exclude};
pub use unpack::{UnpackError, UnpackLimits, UnpackedFile, UnpackedTree, unpack};
