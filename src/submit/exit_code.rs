//! What an exit code of a driver or an executor means, in words.

/// Whose exit code it is: the settings that help have its name in them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Role {
    Driver,
    Executor,
}

impl Role {
    fn name(self) -> &'static str {
        match self {
            Self::Driver => "driver",
            Self::Executor => "executor",
        }
    }
}

/// The reason that Kubernetes gives where a container went over its memory limit.
const OUT_OF_MEMORY: &str = "OOMKilled";

/// `code N (…)`. Never `exit code: N`: Airflow takes any such line for the driver's own.
pub(super) fn in_words(code: i32, reason: Option<&str>, role: Role) -> String {
    let role = role.name();
    let words = match code {
        137 if reason == Some(OUT_OF_MEMORY) => format!(
            "killed: the container went over its memory limit; raise spark.{role}.memoryOverhead or \
             spark.{role}.memory"
        ),
        137 => {
            "killed by SIGKILL: probably the node ran out of memory, or it did not end in its grace period"
                .to_owned()
        }
        // SparkExitCode and ExecutorExitCode of Spark 3.5 to 4.3.
        52 => format!("the JVM ran out of memory; raise spark.{role}.memory"),
        _ => known(code).map_or_else(|| unknown(code), str::to_owned),
    };
    match reason {
        Some(reason) if !["Completed", "Error"].contains(&reason) => {
            format!("code {code} ({words}; {reason})")
        }
        _ => format!("code {code} ({words})"),
    }
}

fn known(code: i32) -> Option<&'static str> {
    Some(match code {
        0 => "success",
        1 => "a failure of the application or of its start; its log says more",
        2 => "wrong arguments, or a failure of the shell or of Python",
        10 | 50 => "an exception that nobody caught; its log says more",
        11 => "too many executors failed (spark.executor.maxNumFailures)",
        51 => "an exception that nobody caught, and it could not even be logged",
        53 => "no local directory could be made: a full or read-only disk, or a bad spark.local.dir",
        54 | 55 => "the external block store failed",
        56 => "no heartbeat reached the driver for too long",
        57 => "killed by Spark's task reaper: a task did not end when it was cancelled",
        58 => "the block manager could not register again with the driver",
        101 => "the main class was not found",
        124 => "the driver ran for longer than spark.driver.timeout",
        126 => "the program cannot be executed: its permissions, or another CPU architecture",
        127 => "the program was not found: is it a Spark image?",
        128 => "the container could not be started",
        130 => "interrupted by SIGINT",
        134 => "aborted by SIGABRT: the JVM or a native library crashed",
        135 => "a bus error (SIGBUS): often a full /dev/shm or disk",
        139 => "a segmentation fault (SIGSEGV): the JVM or a native library crashed",
        143 => "ended by SIGTERM: it was deleted, evicted or preempted, or its node was shut down",
        255 => "an unspecific failure; its log says more",
        _ => return None,
    })
}

fn unknown(code: i32) -> String {
    match code {
        // 128 and the number of the signal, as shells show it.
        129..=192 => format!("ended by signal {}", code - 128),
        _ => "the application's own".to_owned(),
    }
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
            (143, None, "code 143 (ended by SIGTERM"),
            (139, None, "code 139 (a segmentation fault (SIGSEGV)"),
            (138, None, "code 138 (ended by signal 10)"),
            (42, None, "code 42 (the application's own)"),
            (-1, None, "code -1 (the application's own)"),
        ] {
            let words = in_words(code, reason, Role::Driver);
            assert!(words.starts_with(expected), "{words}");
        }
        assert!(in_words(52, None, Role::Executor).contains("spark.executor.memory"));
    }

    #[test]
    fn no_words_look_like_the_line_that_airflow_takes_for_the_drivers_exit_code() {
        for code in -1..=256 {
            let words = in_words(code, Some("Error"), Role::Executor);
            assert!(!words.to_lowercase().contains("exit code"), "{words}");
        }
    }
}
