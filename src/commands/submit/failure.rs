//! A failure in the form of Java's programs, in which those that start spark-submit look for it.

use std::error::Error;
use std::fmt;

use cloakroom_core::text::chain;
use cloakroom_submit::run::RunError;

/// A submission that failed: what it means, and in a line of its own why.
///
/// Kyuubi reports the last line with `Exception:` in it and the lines `Caused by: ` below it, but for lines that have
/// `at ` in them, which it takes for frames of a stack (`ProcBuilder`): the first line is ours alone.
#[derive(Debug)]
struct Failure {
    meaning: &'static str,
    cause: anyhow::Error,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SparkException: {}\nCaused by: {}", self.meaning, chain(self.cause.as_ref()))
    }
}

impl Error for Failure {}

/// The same error in that form.
pub fn of(cause: anyhow::Error) -> anyhow::Error {
    let meaning = if matches!(cause.downcast_ref(), Some(RunError::Follow(_))) {
        "the application goes on, and is not waited for any more"
    } else {
        "the application was not submitted"
    };
    Failure { meaning, cause }.into()
}

#[cfg(test)]
mod tests {
    use cloakroom_cluster::ApiFailure;
    use cloakroom_submit::follow::FollowError;
    use cloakroom_submit::plan::PlanError;

    use super::*;

    #[test]
    fn an_application_that_goes_on_is_not_said_to_be_refused() {
        let failure = ApiFailure::Unreachable { why: "connection refused".to_owned() };
        let lost = FollowError { pod: "p".to_owned(), namespace: "n".to_owned(), failure };
        let said = of(RunError::from(lost).into()).to_string();
        assert!(said.starts_with("SparkException: the application goes on, "), "{said}");
        let said = of(PlanError::NothingToStage.into()).to_string();
        assert!(said.starts_with("SparkException: the application was not submitted\nCaused by: "), "{said}");
    }
}
