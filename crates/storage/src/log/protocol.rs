//! The order in which a server uses the bucket, so that nothing that one server acknowledged is lost when another one takes over.
//! There are three small machines. Each names the next request; its caller makes the request, and tells it the answer. The model
//! (`model.rs`) tries the same machines.
//!
//! One small object, the stamp, names the epoch of the server that writes. It is the only object that is ever replaced, and only
//! under the condition that it is still what was read. All other objects have names of their own. Their requests may be repeated,
//! and may arrive late. No clock decides what is right: clocks only decide how long to wait before taking over.

use std::fmt;
use std::str::FromStr;

/// A place in the log. The copy with the number 0 is the ledger with which an epoch begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Position {
    /// The epoch of the server that writes there, from 1.
    pub epoch: u64,
    /// The number of the group in this epoch, from 1. A number has one content for ever, and none is left out.
    pub number: u64,
}

impl Position {
    /// Where an epoch begins.
    pub fn start(epoch: u64) -> Self {
        Self { epoch, number: 0 }
    }

    /// The place behind this one.
    #[must_use]
    pub fn next(self) -> Self {
        Self { number: self.number + 1, ..self }
    }
}

/// A text is not written as a place in the log, such as `12-345`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("it is not written as a place in the log, such as 12-345")]
pub struct NotAPosition;

/// As objects are named: `EPOCH-NUMBER`.
impl fmt::Display for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.epoch, self.number)
    }
}

impl FromStr for Position {
    type Err = NotAPosition;

    fn from_str(text: &str) -> Result<Self, NotAPosition> {
        let (epoch, number) = text.split_once('-').ok_or(NotAPosition)?;
        let number_of = |digits: &str| digits.parse().map_err(|_| NotAPosition);
        let place = Self { epoch: number_of(epoch)?, number: number_of(number)? };
        // Each place has one name, so that no object stands for another one.
        if place.to_string() == text { Ok(place) } else { Err(NotAPosition) }
    }
}

/// What the bucket answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answer {
    /// The stamp names this epoch; 0 if there is no stamp.
    Stamp(u64),
    /// Whether the stamp was replaced. It was not if it is no longer what was read.
    Replaced(bool),
    /// The newest copy, by epoch and number.
    Newest(Option<Position>),
    /// Whether there is a group at this place of the log.
    Group(bool),
    /// The object is written, or the objects are removed.
    Done,
    /// There was no answer, so the request may have been carried out, and may still be.
    Unknown,
}

/// How a server begins to write: it claims an epoch, then reads what the servers before it have written, and then writes it all
/// down as the start of its own epoch. What one of them adds to its log after that is never acknowledged, because that server
/// reads the stamp in between.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Takeover {
    /// Read the stamp.
    Look,
    /// Replace the stamp that was read by one that names the next epoch.
    Claim {
        /// The epoch that was read.
        seen: u64,
    },
    /// Find the newest copy of an earlier epoch.
    Find {
        /// The epoch that is claimed.
        epoch: u64,
    },
    /// Read the group at `next`.
    Read {
        /// The epoch that is claimed.
        epoch: u64,
        /// The place behind the last group that was read, or behind the copy.
        next: Position,
    },
    /// Write the copy with which the epoch begins.
    Write {
        /// The epoch that is claimed.
        epoch: u64,
    },
    /// Read the stamp again.
    Confirm {
        /// The epoch that is claimed.
        epoch: u64,
    },
    /// Serve.
    Serve {
        /// The epoch.
        epoch: u64,
    },
    /// Another server has claimed a later epoch.
    Lost,
}

impl Takeover {
    /// The step after this one.
    #[must_use]
    pub fn answered(self, answer: Answer) -> Self {
        match (self, answer) {
            (Self::Look, Answer::Stamp(seen)) => Self::Claim { seen },
            (Self::Claim { seen }, Answer::Replaced(true)) => Self::Find { epoch: seen + 1 },
            // If this claim was carried out although its answer is missing, the next one is above it.
            (Self::Claim { .. }, Answer::Replaced(false) | Answer::Unknown) => Self::Look,
            (Self::Find { epoch }, Answer::Newest(Some(copy))) => Self::Read { epoch, next: copy.next() },
            (Self::Read { epoch, next }, Answer::Group(true)) => Self::Read { epoch, next: next.next() },
            (Self::Find { epoch }, Answer::Newest(None))
            | (Self::Read { epoch, .. }, Answer::Group(false)) => Self::Write { epoch },
            (Self::Write { epoch }, Answer::Done) => Self::Confirm { epoch },
            (Self::Confirm { epoch }, Answer::Stamp(seen)) if seen == epoch => Self::Serve { epoch },
            (Self::Confirm { .. }, Answer::Stamp(_)) => Self::Lost,
            (step, _) => step,
        }
    }
}

/// How a group of changes gets into the log. Nothing may act on it before this is idle again, and no later group begins before.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Append {
    /// Nothing is under way.
    Idle {
        /// The last group of the log.
        last: Position,
    },
    /// Write the group to this place.
    Put(Position),
    /// Read the stamp.
    Check(Position),
    /// Another server has claimed a later epoch, so this one must acknowledge nothing more.
    Ended,
}

impl Append {
    /// Begins a group. An append that is not idle goes on with its own.
    #[must_use]
    pub fn begin(self) -> Self {
        match self {
            Self::Idle { last } => Self::Put(last.next()),
            step => step,
        }
    }

    /// The step after this one.
    #[must_use]
    pub fn answered(self, answer: Answer) -> Self {
        match (self, answer) {
            (Self::Put(at), Answer::Done) => Self::Check(at),
            (Self::Check(at), Answer::Stamp(seen)) if seen == at.epoch => Self::Idle { last: at },
            (Self::Check(_), Answer::Stamp(_)) => Self::Ended,
            (step, _) => step,
        }
    }
}

/// How a copy takes the place of the groups that it has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Trim {
    /// Write the copy that has all groups up to this one.
    Copy(Position),
    /// Read the stamp.
    Check(Position),
    /// Remove the groups of this epoch up to this one, and what there is of earlier epochs.
    Remove(Position),
    /// All is done.
    Done,
    /// Another server has claimed a later epoch, and may be reading what would be removed.
    Ended,
}

impl Trim {
    /// The step after this one.
    #[must_use]
    pub fn answered(self, answer: Answer) -> Self {
        match (self, answer) {
            (Self::Copy(at), Answer::Done) => Self::Check(at),
            (Self::Check(at), Answer::Stamp(seen)) if seen == at.epoch => Self::Remove(at),
            (Self::Check(_), Answer::Stamp(_)) => Self::Ended,
            (Self::Remove(_), Answer::Done) => Self::Done,
            (step, _) => step,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_has_one_name() {
        let place = Position { epoch: 12, number: u64::MAX };
        assert_eq!(place.to_string().parse(), Ok(place));
        for text in ["", "12", "12-", "-1", "12-03", "+1-2", "1-2-3", "1-2.db", "1/2"] {
            assert_eq!(text.parse::<Position>(), Err(NotAPosition), "{text}");
        }
    }
}
