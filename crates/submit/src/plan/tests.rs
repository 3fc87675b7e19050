//! Tests of whole submissions, by what Spark was observed to send for the same settings.

mod as_recorded;
mod attached;
mod case;
mod defaults;
mod identity;
mod inputs;
mod needed;
mod pods;
mod refusals;
mod staged_names;
mod staged_pods;
mod staging;
mod storage;

use case::{PlanCase, object, of_kind};
