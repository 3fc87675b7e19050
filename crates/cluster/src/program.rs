//! Runs a program to its end, with limits of time and output.

use std::io::{self, IsTerminal as _};
use std::pin::pin;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process_group};
use tokio::io::{AsyncRead, AsyncReadExt as _};
use tokio::process::{Child, Command};
use tokio::time::timeout;

use cloakroom_core::time::format_duration;

/// The most bytes that a program may print, on each of stdout and stderr.
const MOST_PRINTED: u64 = 1 << 20;
/// How long the output is read on after the end of the program, in case that a process that it leaves behind keeps it
/// open.
const AFTERWARDS: Duration = Duration::from_secs(1);

/// The output of a program, and its exit status.
pub(super) struct Ended {
    pub(super) status: ExitStatus,
    pub(super) stdout: Vec<u8>,
    pub(super) stderr: Vec<u8>,
}

/// The reason why a program did not end by itself. The text is the end of a sentence that begins with the program.
#[derive(Debug, thiserror::Error)]
pub(super) enum ProgramError {
    #[error("cannot be started: {0}")]
    Start(io::Error),
    #[error("cannot be read: {0}")]
    Read(#[from] io::Error),
    #[error("printed more than 1 MiB")]
    TooMuch,
    #[error("did not end within {}", format_duration(*.0))]
    TooLong(Duration),
}

/// Runs a program, without input, at most for the time `limit`. If the caller stops waiting, it is ended.
pub(super) async fn run(command: &mut Command, limit: Duration) -> Result<Ended, ProgramError> {
    let mut running = Running::start(command).map_err(ProgramError::Start)?;
    timeout(limit, running.end()).await.unwrap_or(Err(ProgramError::TooLong(limit)))
}

/// A started program. It ends when this is dropped.
struct Running {
    child: Child,
    has_group: bool,
}

impl Running {
    /// Starts it in a process group of its own, so that what it starts ends with it. On a terminal it stays in this
    /// program's group, to which the terminal's Ctrl-C goes, because another group may not use the terminal.
    fn start(command: &mut Command) -> io::Result<Self> {
        let has_group = !io::stdin().is_terminal();
        if has_group {
            command.process_group(0);
        }
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true);
        Ok(Self { child: command.spawn()?, has_group })
    }

    async fn end(&mut self) -> Result<Ended, ProgramError> {
        let (mut stdout, mut stderr) = (Vec::new(), Vec::new());
        let pipes = (self.child.stdout.take(), self.child.stderr.take());
        let status = {
            let mut reading =
                pin!(async { tokio::try_join!(read(pipes.0, &mut stdout), read(pipes.1, &mut stderr)) });
            tokio::select! {
                read = &mut reading => {
                    read?;
                    self.child.wait().await?
                }
                status = self.child.wait() => {
                    timeout(AFTERWARDS, &mut reading).await.unwrap_or(Ok(((), ())))?;
                    status?
                }
            }
        };
        Ok(Ended { status, stdout, stderr })
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // An id is there until the end was waited for, so it is no other process's.
        let id = self.child.id().filter(|_| self.has_group).and_then(|id| Pid::from_raw(id.try_into().ok()?));
        // If all of the group has ended, there is nothing to do.
        let _ = id.map(|id| kill_process_group(id, Signal::KILL));
    }
}

async fn read(pipe: Option<impl AsyncRead + Unpin>, into: &mut Vec<u8>) -> Result<(), ProgramError> {
    let Some(pipe) = pipe else { return Ok(()) };
    let length = pipe.take(MOST_PRINTED + 1).read_to_end(into).await?;
    if length as u64 > MOST_PRINTED { Err(ProgramError::TooMuch) } else { Ok(()) }
}
