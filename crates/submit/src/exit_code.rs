//! The meaning of exit codes in words: of a driver, an executor, an init-container or a sidecar.

/// The container that an exit code comes from. Advice names the settings of its role.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ContainerRole {
    Driver,
    Executor,
    /// An init-container. Spark's codes and settings mean nothing there.
    InitContainer,
    /// A container beside Spark's. Spark's codes and settings mean nothing there either.
    Sidecar,
}

impl ContainerRole {
    /// The role's name in Spark's settings.
    fn in_spark(self) -> Option<&'static str> {
        match self {
            Self::Driver => Some("driver"),
            Self::Executor => Some("executor"),
            Self::InitContainer | Self::Sidecar => None,
        }
    }

    /// The words for a code without a known meaning.
    fn own(self) -> &'static str {
        match self {
            Self::Driver | Self::Executor => "the application's own",
            Self::InitContainer => "the init-container's own",
            Self::Sidecar => "the container's own",
        }
    }
}

/// Kubernetes' reason for a container that went over its memory limit.
const OUT_OF_MEMORY: &str = "OOMKilled";

/// The kubelet's reason for a container that it no longer finds. It makes up the exit code then.
const STATUS_UNKNOWN: &str = "ContainerStatusUnknown";

/// The code with its meaning: `code N (…)`. It never has `exit code: N`, because Airflow takes such a line for the
/// driver's.
pub(super) fn in_words(code: i32, reason: Option<&str>, role: ContainerRole) -> String {
    let words = role.in_spark().and_then(|role| of_spark(code, reason, role));
    let words = words.or_else(|| of_any(code, reason).map(str::to_owned)).unwrap_or_else(|| match code {
        // Shells report a signal as 128 plus its number.
        129..=192 => format!("ended by signal {}", code - 128),
        _ => role.own().to_owned(),
    });
    match reason {
        Some(reason) if !["Completed", "Error"].contains(&reason) => {
            format!("code {code} ({words}; {reason})")
        }
        _ => format!("code {code} ({words})"),
    }
}

/// Spark's own meanings: `SparkExitCode` and `ExecutorExitCode` of Spark 3.5 to 4.3.
fn of_spark(code: i32, reason: Option<&str>, role: &str) -> Option<String> {
    let words = match code {
        1 => "a failure of the application or of its start; its log says more",
        10 | 50 => "an uncaught exception; its log says more",
        11 => "too many executors failed (spark.executor.maxNumFailures)",
        51 => "an uncaught exception, which could not even be logged",
        52 => return Some(format!("the JVM ran out of memory; raise spark.{role}.memory")),
        53 => "no local directory could be made: a full or read-only disk, or a bad spark.local.dir",
        54 | 55 => "the external block store failed",
        56 => "no heartbeats reached the driver for too long",
        57 => "killed by Spark's task reaper: a task did not end when it was cancelled",
        58 => "the block manager could not register again with the driver",
        101 => {
            "the main class was not found: check --class, and whether its jar is the application or one of --jars"
        }
        124 => "the driver ran for longer than spark.driver.timeout",
        127 => "the program was not found: is it a Spark image?",
        134 => "aborted by SIGABRT: the JVM or a native library crashed",
        137 if reason == Some(OUT_OF_MEMORY) => {
            return Some(format!(
                "killed: the container went over its memory limit; raise spark.{role}.memoryOverhead or \
                 spark.{role}.memory"
            ));
        }
        139 => "a segmentation fault (SIGSEGV): the JVM or a native library crashed",
        _ => return None,
    };
    Some(words.to_owned())
}

/// The meanings of shells, container runtimes and signals.
fn of_any(code: i32, reason: Option<&str>) -> Option<&'static str> {
    Some(match code {
        0 => "success",
        1 => "a failure; its log says more",
        2 => "wrong arguments, or a failure of the shell or of Python",
        126 => "the program cannot be executed: its permissions, or another CPU architecture",
        127 => "the program was not found",
        128 => "the container could not be started",
        130 => "interrupted by SIGINT",
        134 => "aborted by SIGABRT",
        135 => "a bus error (SIGBUS): often a full /dev/shm or disk",
        137 if reason == Some(OUT_OF_MEMORY) => "killed: the container went over its memory limit",
        137 if reason == Some(STATUS_UNKNOWN) => "not its own: its node does not know how it ended",
        137 => {
            "killed by SIGKILL: probably the node ran out of memory, or it did not end in its grace period"
        }
        139 => "a segmentation fault (SIGSEGV)",
        143 => "ended by SIGTERM: it was deleted, evicted or preempted, or its node was shut down",
        255 => "an unspecific failure; its log says more",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_have_words() {
        for (code, reason, expected) in [
            (0, Some("Completed"), "code 0 (success)"),
            (1, Some("Error"), "code 1 (a failure of the application or of its start; its log says more)"),
            (
                137,
                Some("OOMKilled"),
                "code 137 (killed: the container went over its memory limit; raise spark.driver.memoryOverhead or \
                 spark.driver.memory; OOMKilled)",
            ),
            (52, Some("Error"), "code 52 (the JVM ran out of memory; raise spark.driver.memory)"),
            (137, Some("Error"), "code 137 (killed by SIGKILL: probably the node ran out of memory"),
            (
                127,
                Some("StartError"),
                "code 127 (the program was not found: is it a Spark image?; StartError)",
            ),
            (
                137,
                Some("ContainerStatusUnknown"),
                "code 137 (not its own: its node does not know how it ended; ",
            ),
            (143, None, "code 143 (ended by SIGTERM"),
            (139, None, "code 139 (a segmentation fault (SIGSEGV)"),
            (138, None, "code 138 (ended by signal 10)"),
            (42, None, "code 42 (the application's own)"),
            (-1, None, "code -1 (the application's own)"),
        ] {
            let words = in_words(code, reason, ContainerRole::Driver);
            assert!(words.starts_with(expected), "{words}");
        }
        assert!(in_words(52, None, ContainerRole::Executor).contains("spark.executor.memory"));
    }

    #[test]
    fn codes_of_containers_that_are_not_sparks_are_not_explained_as_sparks() {
        for (code, reason, role, expected) in [
            (3, None, ContainerRole::InitContainer, "code 3 (the init-container's own)"),
            (3, None, ContainerRole::Sidecar, "code 3 (the container's own)"),
            (52, Some("Error"), ContainerRole::InitContainer, "code 52 (the init-container's own)"),
            (1, Some("Error"), ContainerRole::InitContainer, "code 1 (a failure; its log says more)"),
            (
                137,
                Some("OOMKilled"),
                ContainerRole::Sidecar,
                "code 137 (killed: the container went over its memory limit; OOMKilled)",
            ),
        ] {
            assert_eq!(in_words(code, reason, role), expected);
        }
    }

    #[test]
    fn no_words_look_like_a_frame_of_a_stack_to_kyuubi() {
        for (code, reason) in
            (-1..=256).flat_map(|code| [(code, "Error"), (code, "OOMKilled"), (code, STATUS_UNKNOWN)])
        {
            let words = in_words(code, Some(reason), ContainerRole::Driver);
            assert!(!words.contains("at "), "{words}");
        }
    }

    #[test]
    fn no_message_looks_like_the_exit_code_line_that_airflow_reads() {
        for code in -1..=256 {
            let words = in_words(code, Some("Error"), ContainerRole::Executor);
            assert!(!words.to_lowercase().contains("exit code"), "{words}");
        }
    }
}
