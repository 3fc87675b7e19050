//! Drivers that were submitted before: `--kill` and `--status`.
