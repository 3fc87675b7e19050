//! Submissions in this process, to the fake API server.
#![expect(clippy::pedantic, clippy::unwrap_used, reason = "tests are read for what they check")]

mod create;
mod fake_stager;
mod follow;
mod jobs;
mod kept;
mod requests;
mod rights;
mod run;
mod scenarios;
mod submissions;
mod submitter;
mod uploader;
