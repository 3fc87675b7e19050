//! What goes to the API server: submitting, `--kill`, `--status`.

use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

use anyhow::Context as _;
use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;

use super::connect;

use cloakroom::spark::{SparkConf, SubmitArguments};
use cloakroom::submit::Submission;
use cloakroom::submit::create::{self, say_deployed};
use cloakroom::submit::log::Log;
use cloakroom::submit::plan::Submitter;
use cloakroom::submit::{follow, jobs};

/// 128 and the number of SIGTERM, as shells show it.
const EXIT_TERMINATED: u8 = 143;
/// The same for SIGINT.
const EXIT_INTERRUPTED: u8 = 130;
