//! What every store and every ledger must do, written against the traits. A second implementation adds a module
//! with one line: its rules are the same.
#![expect(clippy::pedantic, clippy::unwrap_used, reason = "tests are read for what they check")]

/// Makes a test of each rule for one implementation. A rule opens the ledger itself; opening it again shows what
/// is durable.
macro_rules! suite {
    ($implementation:ident, $open:path: $($rule:ident),+ $(,)?) => {
        mod $implementation {
            $(#[tokio::test]
            async fn $rule() {
                let folder = tempfile::tempdir().unwrap();
                super::$rule(async || $open(folder.path()).await).await;
            })+
        }
    };
}

/// Makes a test of each rule for each implementation.
macro_rules! suites {
    ($($implementation:ident, $make:path => $rules:tt),+ $(,)?) => {
        $(suites!(@one $implementation, $make => $rules);)+
    };
    (@one $implementation:ident, $make:path => [$($rule:ident),+ $(,)?]) => {
        mod $implementation {
            $(#[tokio::test]
            async fn $rule() {
                let (store, _kept) = $make();
                super::$rule(&store).await;
            })+
        }
    };
}

mod claim;
mod disk;
mod leases;
mod ledger;
mod log;
mod rooms;
mod rows;
mod store;
mod without_row;
