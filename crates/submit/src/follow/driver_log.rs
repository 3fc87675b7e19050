//! The end of a failed driver's log. Most failures have their reason only there.

use std::time::Duration;

use tokio::time::timeout;

use crate::log::quoted;
use cloakroom_cluster::calls::{Calls, ContainerLog};

/// The longest wait for the log. It only helps, so it must not delay the end.
const LONGEST_WAIT: Duration = Duration::from_secs(5);

/// How many lines are shown.
const SHOWN_LINES: usize = 20;

/// How many frames of each Java stack are shown. Otherwise one stack could fill all lines.
const SHOWN_FRAMES: usize = 3;

/// How many lines from the end are searched for a known reason.
const LOOKED_AT_LINES: usize = 1000;
/// How many bytes from the end are searched.
const LOOKED_AT_BYTES: usize = 64 << 10;

/// The end of the log of the driver's container.
pub(super) struct DriverLog(String);

impl DriverLog {
    /// Reads the log. It is `None` if the log may not be read or is gone.
    pub(super) async fn read(calls: &Calls, pod: &str, container: &str) -> Option<Self> {
        let reading = async {
            let log = calls.log(pod, container, LOOKED_AT_LINES).await?;
            // The API server cuts a long log at its end, which is the part that counts here.
            if log.is_cut { calls.log(pod, container, SHOWN_LINES).await } else { Ok(log) }
        };
        match timeout(LONGEST_WAIT, reading).await.ok()? {
            Ok(ContainerLog { text, .. }) => Some(Self::new(text)),
            Err(failure) => {
                tracing::debug!(error = %failure, "the driver's log cannot be shown");
                None
            }
        }
    }

    fn new(mut text: String) -> Self {
        let mut start = text.len().saturating_sub(LOOKED_AT_BYTES);
        while !text.is_char_boundary(start) {
            start += 1;
        }
        Self(text.split_off(start))
    }

    /// The text to search for a known reason.
    pub(super) fn text(&self) -> &str {
        &self.0
    }

    /// The last lines as a block. Its prefix keeps schedulers from reading them as lines of spark-submit.
    pub(super) fn last_lines(&self) -> Option<String> {
        let lines = folded(self.0.trim_end());
        let shown = &lines[lines.len().saturating_sub(SHOWN_LINES)..];
        let quoted = |line: &String| format!("\n\t | {}", quoted(line)).trim_end().to_owned();
        (!shown.is_empty()).then(|| shown.iter().map(quoted).collect())
    }
}

/// The lines. Of each Java stack, only the first frames are kept.
fn folded(text: &str) -> Vec<String> {
    let mut lines = Vec::new();
    let mut frames = 0;
    for line in text.lines() {
        let is_frame = line.starts_with('\t') && line.trim_start().starts_with("at ");
        frames = if is_frame { frames + 1 } else { 0 };
        match frames {
            0..=SHOWN_FRAMES => lines.push(line.to_owned()),
            _ if frames == SHOWN_FRAMES + 1 => lines.push("\t… 1 more".to_owned()),
            _ => {
                lines.pop();
                lines.push(format!("\t… {} more", frames - SHOWN_FRAMES));
            }
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_lines_are_a_block_that_is_set_apart() {
        let text = (1..=30).map(|number| format!("line {number}")).collect::<Vec<_>>().join("\n");
        let block = DriverLog::new(format!("{text}\n\n\tlast\n\n")).last_lines().unwrap();
        let lines: Vec<&str> = block.lines().skip(1).collect();
        assert_eq!(lines.len(), 20);
        assert_eq!((lines[0], lines[18], lines[19]), ("\t | line 13", "\t |", "\t |     last"));
        assert_eq!(DriverLog::new(" \n".to_owned()).last_lines(), None);
    }

    #[test]
    fn of_each_stack_the_first_frames_are_shown() {
        let stack =
            |first: &str, frames: usize| format!("{first}\n{}", "\tat a.B.c(B.java:1)\n".repeat(frames));
        let text = stack("x.Y: why", 3) + &stack("Caused by: z.Z: because", 50) + "\t... 7 more\nend\n";
        let block = DriverLog::new(text).last_lines().unwrap();
        let lines: Vec<&str> = block.lines().skip(1).map(|line| line.trim_start_matches("\t | ")).collect();
        let frame = "    at a.B.c(B.java:1)";
        let cause = "Caused by: z.Z: because";
        let expected = [
            "x.Y: why",
            frame,
            frame,
            frame,
            cause,
            frame,
            frame,
            frame,
            "    … 47 more",
            "    ... 7 more",
            "end",
        ];
        assert_eq!(lines, expected);
    }

    #[test]
    fn no_more_than_the_end_is_kept() {
        let log = DriverLog::new("ü".repeat(LOOKED_AT_BYTES) + "x");
        assert!(log.text().len() <= LOOKED_AT_BYTES && log.text().ends_with("üx"));
    }
}
