//! A failure in the form of a Java program, because programs that start spark-submit look for that form.

use std::error::Error;
use std::fmt;

use cloakroom_core::text::chain;
use cloakroom_submit::run::RunError;

/// A failed submission: the meaning in the first line, the cause in the second.
///
/// Kyuubi (`ProcBuilder`) reports the last line that contains `Exception:`, and the lines `Caused by: ` below it. It
/// skips lines that contain `at `, which it takes for stack frames. So `meaning` must not contain these letters.
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
        "the application goes on, but this command no longer waits for it"
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
