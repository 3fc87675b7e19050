//! Behaviour that a user sees, against real components.
#![expect(
    clippy::pedantic,
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "tests are read for what they check"
)]

mod admin_commands;
mod admin_tickets;
mod chart;
mod command_line;
mod configuration;
mod credential_plugins;
mod descriptors;
mod documents;
mod durability;
mod examples;
mod external_submitter;
mod fetch_command;
mod files_for_pods;
mod folders;
mod foreign_text;
mod full_disk;
mod handing_over;
mod hostile;
mod killed;
mod killed_sweeps;
mod layering;
mod lifecycle_scenarios;
mod listings;
mod manifests;
mod memory;
mod moved_data;
mod operations;
mod proxy;
mod ratchet;
mod refused_data;
mod replaced;
mod replacement;
mod restored;
mod reuse;
mod revision;
mod second_run;
mod served;
mod signals;
mod stage;
mod stopping;
mod submit_command;
mod submit_progress;
mod submit_staged;
mod submit_steps;
mod submit_without_master;
mod through_api_server;
mod tls_files;
mod trying;
