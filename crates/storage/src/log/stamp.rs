//! The stamp: the one object of the bucket that says which server writes. A server that writes replaces it every few seconds, so
//! that others see that it is there.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use rand::{Rng, RngExt as _};

use super::Position;
use crate::stamp::{Installation, Stamp};

/// The form of stamp, log and copies that this version writes, and the newest one that it knows.
const FORM: u32 = 1;

/// Which server writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WriterStamp {
    /// The installation that the bucket belongs to.
    pub installation: Installation,
    /// The epoch of the server.
    pub epoch: u64,
    /// Made at random when the server claimed the epoch, so that two that claim it at once write different stamps.
    pub writer: u64,
    /// How often the server has replaced the stamp in this epoch.
    pub beat: u64,
    /// A place that the log has reached, so that a start notices if what leads there is missing. Nothing is there at the number 0 of
    /// the epoch 0.
    pub reached: Position,
    /// What the server says of itself.
    pub state: WriterState,
}

/// What the server that writes says of itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WriterState {
    /// It makes the first ledger of the prefix, so there may be none yet.
    Begins,
    /// It serves.
    Serves,
    /// It serves, and another server may take its place at once, because it does not reach its cluster.
    Yields,
    /// It has ended.
    Stopped,
}

/// Why a server writes no more.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum WriterEnd {
    /// Another server has claimed a later epoch.
    #[error(
        "another server has taken over this prefix, so this one acknowledges and deletes nothing more: only one may run at a time"
    )]
    Superseded,
    /// The ledger could not take over what the log has.
    #[error(
        "a change is in the log in the bucket, and could not be written to the ledger in the data directory: the next start \
         makes that ledger anew"
    )]
    NotCommitted,
}

/// The stamp cannot be used, so it is not replaced.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ForeignStamp {
    /// It is from before the first release.
    #[error(
        "the prefix belongs to a cloakroom from before version 0.1.0, which kept its ledger on a volume: no version reads it; \
         use another prefix, and stage everything again"
    )]
    Earlier,
    /// A newer version wrote it.
    #[error(
        "the prefix belongs to a newer cloakroom: its ledger has form {0}, and this version knows forms up to {FORM}: start \
         the newer version again"
    )]
    Newer(u32),
    /// It is no stamp of a server.
    #[error(
        "the stamp is not written as cloakroom writes it: if no other server uses this prefix, remove it, and start the server \
         with --take-over, which makes a new one"
    )]
    Unreadable,
}

impl WriterStamp {
    /// The stamp of a server that claims the epoch after the one of `seen`. `installation` is for a prefix that has none.
    pub fn claim(seen: Option<Self>, installation: Installation, random: &mut impl Rng) -> Self {
        let (installation, epoch) =
            seen.map_or((installation, 1), |seen| (seen.installation, seen.epoch.saturating_add(1)));
        let is_first = seen.is_none_or(|seen| seen.state == WriterState::Begins);
        let state = if is_first { WriterState::Begins } else { WriterState::Serves };
        let reached = seen.map_or(Position::start(0), |seen| seen.reached);
        Self { installation, epoch, writer: random.random(), beat: 0, reached, state }
    }

    /// Whether both are of one server.
    pub fn is_of_writer_of(&self, other: &Self) -> bool {
        (self.epoch, self.writer) == (other.epoch, other.writer)
    }

    /// The next stamp of the same server.
    #[must_use]
    pub fn next(self, reached: Position, state: WriterState) -> Self {
        Self { beat: self.beat.saturating_add(1), reached, state, ..self }
    }
}

impl WriterState {
    const ALL: [Self; 4] = [Self::Begins, Self::Serves, Self::Yields, Self::Stopped];

    fn as_str(self) -> &'static str {
        match self {
            Self::Begins => "begins",
            Self::Serves => "serves",
            Self::Yields => "yields",
            Self::Stopped => "stopped",
        }
    }
}

/// One line: `form-1 INSTALLATION EPOCH WRITER BEAT REACHED STATE`.
impl fmt::Display for WriterStamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { installation, epoch, writer, beat, reached, state } = self;
        write!(f, "form-{FORM} {installation} {epoch} {writer} {beat} {reached} {}", state.as_str())
    }
}

impl FromStr for WriterStamp {
    type Err = ForeignStamp;

    fn from_str(text: &str) -> Result<Self, ForeignStamp> {
        let text = text.trim_ascii_end();
        if text.parse::<Stamp>().is_ok() {
            return Err(ForeignStamp::Earlier);
        }
        let mut words = text.split(' ');
        let form = words.next().and_then(|word| word.strip_prefix("form-")?.parse().ok());
        match form {
            Some(FORM) => {}
            Some(newer @ 2..) => return Err(ForeignStamp::Newer(newer)),
            _ => return Err(ForeignStamp::Unreadable),
        }
        let words: Vec<&str> = words.collect();
        let [installation, epoch, writer, beat, reached, state] = words[..] else {
            return Err(ForeignStamp::Unreadable);
        };
        let number = |text: &str| text.parse().map_err(|_| ForeignStamp::Unreadable);
        let stamp = Self {
            installation: installation.parse().map_err(|_| ForeignStamp::Unreadable)?,
            epoch: number(epoch)?,
            writer: number(writer)?,
            beat: number(beat)?,
            reached: reached.parse().map_err(|_| ForeignStamp::Unreadable)?,
            state: WriterState::ALL
                .into_iter()
                .find(|known| known.as_str() == state)
                .ok_or(ForeignStamp::Unreadable)?,
        };
        // It is replaced only if the object still has the text of what was read, so each stamp has one text.
        if stamp.to_string() == text { Ok(stamp) } else { Err(ForeignStamp::Unreadable) }
    }
}

/// Tells when a server that waits may take over. It decides nothing about what is right: a server that took over too early makes
/// the other one end, and loses nothing.
#[derive(Debug)]
pub struct Waiting {
    /// How long the stamp must have stood still.
    patience: Duration,
    /// The last stamp that was another one, and when it was first seen.
    seen: Option<(WriterStamp, Duration)>,
}

impl Waiting {
    /// Waits until the stamp has stood still for `patience`.
    pub fn new(patience: Duration) -> Self {
        Self { patience, seen: None }
    }

    /// Takes in the stamp that is there at `now`, on a clock that never goes back. Returns how much longer to wait if it stays as
    /// it is; `None` if it may be replaced now.
    pub fn look(&mut self, stamp: Option<WriterStamp>, now: Duration) -> Option<Duration> {
        let stamp = stamp.filter(|stamp| matches!(stamp.state, WriterState::Begins | WriterState::Serves))?;
        let since = match self.seen {
            Some((seen, since)) if seen == stamp => since,
            _ => now,
        };
        self.seen = Some((stamp, since));
        self.patience.checked_sub(now.saturating_sub(since)).filter(|left| !left.is_zero())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stamp(epoch: u64, beat: u64, state: WriterState) -> WriterStamp {
        let reached = Position { epoch, number: 5 };
        WriterStamp {
            installation: "00000000000000ab".parse().unwrap(),
            epoch,
            writer: 9,
            beat,
            reached,
            state,
        }
    }

    #[test]
    fn a_written_stamp_is_read_again() {
        for state in WriterState::ALL {
            for number in [0, 1, u64::MAX] {
                let stamp = stamp(number, number, state);
                assert_eq!(stamp.to_string().parse(), Ok(stamp));
                assert_eq!(format!("{stamp}\n").parse(), Ok(stamp), "a file ends with a line");
            }
        }
        assert_eq!(stamp(3, 7, WriterState::Serves).to_string(), "form-1 00000000000000ab 3 9 7 3-5 serves");
    }

    #[test]
    fn a_stamp_of_another_form_is_told_by_what_it_is() {
        for (text, expected) in [
            ("00000000000000ab 12 0000000000000007\n", ForeignStamp::Earlier),
            ("form-2 anything", ForeignStamp::Newer(2)),
            ("form-17", ForeignStamp::Newer(17)),
            ("", ForeignStamp::Unreadable),
            ("form-0 00000000000000ab 3 9 7 3-5 serves", ForeignStamp::Unreadable),
            ("form-1 00000000000000ab 3 9 7 serves", ForeignStamp::Unreadable),
            ("form-1 00000000000000ab 3 9 7 3-5", ForeignStamp::Unreadable),
            ("form-1 00000000000000ab 3 9 7 3-5 serves more", ForeignStamp::Unreadable),
            ("form-1 00000000000000ab 3 9 -7 3-5 serves", ForeignStamp::Unreadable),
            ("form-1 00000000000000ab 3 9 7 3-5 sleeps", ForeignStamp::Unreadable),
            ("form-1 00000000000000ab 3 9 7 3-05 serves", ForeignStamp::Unreadable),
            ("form-1 ab 3 9 7 3-5 serves", ForeignStamp::Unreadable),
            ("form-1 00000000000000ab +3 9 7 3-5 serves", ForeignStamp::Unreadable),
            ("form-1 00000000000000ab 3 09 7 3-5 serves", ForeignStamp::Unreadable),
            ("form-01 00000000000000ab 3 9 7 3-5 serves", ForeignStamp::Unreadable),
            ("form-1 00000000000000ab 3 9 7 3-5 serves\u{a0}", ForeignStamp::Unreadable),
        ] {
            assert_eq!(text.parse::<WriterStamp>(), Err(expected), "{text:?}");
        }
    }

    #[test]
    fn a_claim_names_the_next_epoch_and_keeps_the_installation() {
        let other = "00000000000000cd".parse().unwrap();
        let claim = |seen| WriterStamp::claim(seen, other, &mut rand::rng());
        let first = claim(None);
        assert_eq!(
            (first.installation, first.epoch, first.beat, first.state),
            (other, 1, 0, WriterState::Begins)
        );
        assert_eq!(first.reached, Position::start(0));
        let before = stamp(4, 9, WriterState::Stopped);
        let claimed = claim(Some(before));
        assert_eq!(
            claimed,
            WriterStamp { epoch: 5, writer: claimed.writer, beat: 0, state: WriterState::Serves, ..before }
        );
        assert!(!claimed.is_of_writer_of(&claim(Some(before))), "another one claims the same epoch");
        let next = claimed.next(Position::start(5), WriterState::Yields);
        assert!(next.is_of_writer_of(&claimed));
        assert_eq!((next.beat, next.reached, next.state), (1, Position::start(5), WriterState::Yields));
    }

    #[test]
    fn the_first_ledger_is_still_to_be_made_until_a_server_has_made_it() {
        let claim =
            |seen| WriterStamp::claim(seen, stamp(1, 0, WriterState::Begins).installation, &mut rand::rng());
        assert_eq!(claim(Some(claim(None))).state, WriterState::Begins);
        assert_eq!(
            claim(Some(claim(None).next(Position::start(1), WriterState::Serves))).state,
            WriterState::Serves
        );
    }

    #[test]
    fn a_server_waits_until_the_stamp_has_stood_still() {
        let seconds = Duration::from_secs;
        let mut waiting = Waiting::new(seconds(15));
        let serves = |beat| Some(stamp(2, beat, WriterState::Serves));
        assert_eq!(waiting.look(serves(1), seconds(100)), Some(seconds(15)));
        assert_eq!(waiting.look(serves(1), seconds(114)), Some(seconds(1)));
        assert_eq!(waiting.look(serves(2), seconds(115)), Some(seconds(15)), "it has moved");
        assert_eq!(waiting.look(serves(2), seconds(129)), Some(seconds(1)));
        assert_eq!(waiting.look(serves(2), seconds(130)), None);
        assert_eq!(waiting.look(serves(3), seconds(131)), Some(seconds(15)), "it moves again");
    }

    #[test]
    fn a_server_that_has_stopped_or_yields_is_not_waited_for() {
        let mut waiting = Waiting::new(Duration::from_secs(15));
        assert_eq!(waiting.look(None, Duration::ZERO), None);
        for state in [WriterState::Stopped, WriterState::Yields] {
            assert_eq!(waiting.look(Some(stamp(2, 1, state)), Duration::ZERO), None);
        }
    }
}
