//! Inputs of single steps, read from settings and facts before the first step. They do not know `Application`.

pub(super) mod credentials;
pub(super) mod executor_template;
pub(super) mod hadoop;
pub(super) mod kerberos;
pub(super) mod volcano;
