//! `spark-submit --deploy-mode cluster` without a JVM.
//!
//! - [`plan`]: turns settings and files into the objects that Spark would send; pure
//! - [`inputs`]: collects the files that a plan needs
//! - [`stage`]: uploads local files to the staging server, and releases them if the submission fails
//! - [`create`]: creates the objects, and deletes them again if a step fails
//! - [`follow`]: waits for the driver's end, and reports what happens until then
//! - [`run`]: the use cases that join these rooms, for our own submissions and for external submitters
//! - [`jobs`]: `--kill` and `--status`
//! - [`pods`]: staged files in the pods of a Job, or in a Pod; nothing of Spark

pub mod create;
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
pub mod pods;
mod randomness;
pub mod run;
pub mod stage;
mod submission;

pub use events::{Event, Events, Level, Log, Status, TakenBack, UnderWay, Uploading};
pub use file_copy::{FileCopy, FileCopyError};
pub use left::Left;
pub use log::Lines;
pub use randomness::Randomness;
pub use stage::{BundleKind, StagePlan};
pub use submission::{ExitCodeRule, FollowSettings, Submission};
