//! `spark-submit --deploy-mode cluster` without a JVM: settings to objects, then create, follow, kill, status.
//!
//! - [`plan`]: settings and files of the submitting machine to the objects that Spark would send; sends nothing
//! - [`stage`]: brings local files to the staging server, and takes them back where the submission fails
//! - [`create`]: sends them, and undoes what was done where that fails
//! - [`follow`]: waits for the driver's end, and tells what happens on the way
//! - [`jobs`]: `--kill` and `--status`
//! - [`inputs`]: where files come from
//! - [`run`]: all of it, and the same for applications that something else submits; everything that happens is told as data

mod advice;
mod calls;
pub mod create;
mod drawn;
mod events;
mod exit_code;
mod file_copy;
pub mod follow;
pub mod inputs;
pub mod jobs;
mod left;
mod leftovers;
mod log;
pub mod plan;
mod pod_state;
pub mod run;
pub mod stage;
mod submission;

pub use drawn::Drawn;
pub use events::{Event, Events, Log, TakenBack, Uploading};
pub use file_copy::{FileCopy, FileCopyError};
pub use left::Left;
pub use log::{Level, Lines, Status};
pub use stage::{BundleKind, StagePlan};
pub use submission::{ExitCodeRule, FollowSettings, Submission};
