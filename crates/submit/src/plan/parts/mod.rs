//! What the steps add, read from settings and files before the first of them: none of it knows the application.

pub(super) mod credentials;
pub(super) mod executor_template;
pub(super) mod hadoop;
pub(super) mod kerberos;
pub(super) mod volcano;
