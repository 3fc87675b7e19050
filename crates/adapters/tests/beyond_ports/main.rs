//! What an adapter has beyond its port. The rules of the ports themselves are in `cloakroom-suites`.
#![expect(clippy::unwrap_used, reason = "tests are read for what they check")]

mod disk;
mod sqlite;
