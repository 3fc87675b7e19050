//! The server in this process: what a client and an operator see of it.
#![expect(
    clippy::pedantic,
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "tests are read for what they check"
)]

mod admin;
mod auth;
mod claims;
mod contract;
mod crash_points;
mod crashes;
mod damaged_rows;
mod downloads;
mod expiry;
mod failing_ledger;
mod fairness;
mod held_up;
mod lifecycle;
mod lifecycle_model;
mod limits;
mod limits_in_metrics;
mod mass_deletion;
mod metrics;
mod other_cluster;
mod owner_keys;
mod owner_kinds;
mod owner_watches;
mod read_keys;
mod ready_index;
mod recovery;
mod refusals;
mod refused_connections;
mod reviews;
mod shares;
mod shutdown;
mod slow_api_server;
mod slow_clients;
mod smoke;
mod splices;
mod strays;
mod support;
mod sweep_faults;
mod tls_server;
mod tombstones;
mod unknown_owners;
mod unreadable_rows;
mod uploads;
mod v0;
mod webhdfs;
