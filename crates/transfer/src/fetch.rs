//! The init-container: fetches staged bundles and files from the web into folders, either all of them or none.
//!
//! [`FetchPlan`] says what goes where, and [`run()`] fetches it.

mod driver_properties;
mod error;
mod install;
mod lock;
mod observer;
mod plan;
mod receipt;
mod resume;
mod run;
mod source;
mod source_retries;
mod stream;
mod termination;
mod ticket;

pub use driver_properties::{DriverProperties, DriverPropertiesError};
pub use error::FetchError;
pub use observer::{FetchObserver, SourceReport};
pub use plan::{FetchPlan, FetchPlanError, Source, resource_id_of_ticket};
pub use receipt::Receipt;
pub use run::run;
pub use source::FetchOptions;
pub use termination::{TERMINATION_LOG, write_termination_log};
