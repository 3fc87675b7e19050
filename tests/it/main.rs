//! Behaviour that a user sees, against real components.
#![expect(
    clippy::pedantic,
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "tests are read for what they check"
)]

mod admin;
mod admin_commands;
mod auth;
mod chart;
mod command_line;
mod configuration;
mod conformance;
mod connecting;
mod contract;
mod crashes;
mod damaged_rows;
mod descriptors;
mod documents;
mod downloads;
mod durability;
mod expiry;
mod external_submitter;
mod failing_ledger;
mod fairness;
mod fake_api_server;
mod fetch;
mod fetch_command;
mod fetch_resume;
mod fetch_targets;
mod foreign_text;
mod full_disk;
mod handing_over;
mod hostile;
mod killed;
mod killed_sweeps;
mod layering;
mod lifecycle;
mod lifecycle_model;
mod lifecycle_scenarios;
mod limits;
mod limits_in_metrics;
mod listings;
mod manifests;
mod mass_deletion;
mod memory;
mod metrics;
mod other_cluster;
mod overdue;
mod owner_keys;
mod owner_kinds;
mod owner_watches;
mod proxy;
mod ready_index;
mod recovery;
mod refusals;
mod refused_connections;
mod replaced;
mod replacement;
mod reviews;

mod scenarios;
mod second_run;
mod shares;
mod shutdown;
mod signals;
mod slow_clients;
mod smoke;
mod stage;
mod submit_command;
mod submit_create;
mod submit_follow;
mod submit_jobs;
mod submit_progress;
mod submit_rights;
mod submit_run;
mod submit_scenarios;
mod submit_staged;
mod submit_steps;
mod support;
mod sweep_faults;
mod tls_server;
mod tombstones;
mod trying;
mod two_stagings;
mod unreadable_rows;
mod uploads;
mod v0;
