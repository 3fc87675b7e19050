//! Inputs of single steps, read from settings and facts before the first step. They do not know `Application`.

pub(super) mod credentials;
pub(super) mod executor_template;
pub(super) mod hadoop;
pub(super) mod kerberos;
pub(super) mod volcano;

/// The largest sum of a config map's or secret's data, in bytes (`MaxSecretSize` in Kubernetes' API).
pub(in crate::plan) const MOST_BYTES: usize = 1 << 20;
