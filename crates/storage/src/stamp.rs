//! The stamp that a ledger and its store both have. It tells whether they belong together, and whether the ledger is an
//! earlier copy than the one that the store has seen.

use std::fmt;
use std::str::FromStr;

use rand::{Rng, RngExt as _};

/// Names a ledger and a store that belong together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Installation(u64);

/// A mark that a ledger writes into itself and then into its store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stamp {
    /// Whose stamp it is.
    pub installation: Installation,
    /// One more than the number of the stamp before.
    pub number: u64,
    /// Tells two copies of a ledger apart that have each gone on by themselves.
    nonce: u64,
}

/// A text that is no stamp, or no id of an installation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("this is not written as cloakroom writes it")]
pub struct NotAStamp;

/// The claim of a ledger on its store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Claim {
    /// The stamp that the ledger wrote last.
    pub stamp: Stamp,
    /// The one that the store had before; `None` if it had none.
    pub before: Option<Stamp>,
    /// How far the claim has come.
    pub state: ClaimState,
}

/// How far a claim has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ClaimState {
    /// The store may not have the stamp yet.
    Begun,
    /// The store has had a stamp of this ledger.
    Made,
    /// The ledger is an earlier copy, so its cleaner deletes nothing until an admin allows it.
    Behind,
}

impl Installation {
    /// Makes a new random one.
    pub fn generate(random: &mut impl Rng) -> Self {
        Self(random.random())
    }
}

impl Stamp {
    /// A new stamp that is above `own` and `seen`, of the installation of `own`.
    pub fn after(own: &Self, seen: Option<&Self>, random: &mut impl Rng) -> Self {
        let above = own.number.max(seen.map_or(0, |seen| seen.number));
        Self::new(own.installation, above.saturating_add(1), random)
    }

    /// A stamp of `installation` with this number.
    pub fn new(installation: Installation, number: u64, random: &mut impl Rng) -> Self {
        Self { installation, number, nonce: random.random() }
    }
}

impl Claim {
    /// Whether the ledger has missed what was done to a store that has the stamp `seen` now: it neither is the last one of this
    /// ledger, nor the one that this was to replace when its process ended.
    pub fn is_behind(&self, seen: &Stamp) -> bool {
        self.stamp != *seen && self.before != Some(*seen)
    }
}

impl fmt::Display for Installation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

impl FromStr for Installation {
    type Err = NotAStamp;

    fn from_str(text: &str) -> Result<Self, NotAStamp> {
        hex(text).map(Self)
    }
}

/// The form in which ledger and store keep a stamp: one line with installation, number and nonce.
impl fmt::Display for Stamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} {:016x}", self.installation, self.number, self.nonce)
    }
}

impl FromStr for Stamp {
    type Err = NotAStamp;

    fn from_str(text: &str) -> Result<Self, NotAStamp> {
        let parts: Vec<&str> = text.trim_end().split(' ').collect();
        let [installation, number, nonce] = parts[..] else { return Err(NotAStamp) };
        let number = number.parse().map_err(|_| NotAStamp)?;
        Ok(Self { installation: installation.parse()?, number, nonce: hex(nonce)? })
    }
}

/// The form in which a ledger keeps its claim: the stamp, a word, and the stamp before.
impl fmt::Display for Claim {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.stamp, self.state.as_str())?;
        self.before.map_or(Ok(()), |before| write!(f, " {before}"))
    }
}

impl FromStr for Claim {
    type Err = NotAStamp;

    fn from_str(text: &str) -> Result<Self, NotAStamp> {
        let parts: Vec<&str> = text.split(' ').collect();
        let (stamp, rest) = parts.split_at_checked(STAMP_PARTS).ok_or(NotAStamp)?;
        let (state, before) = rest.split_first().ok_or(NotAStamp)?;
        let states = [ClaimState::Begun, ClaimState::Made, ClaimState::Behind];
        let state = states.into_iter().find(|known| known.as_str() == *state).ok_or(NotAStamp)?;
        let before = if before.is_empty() { None } else { Some(before.join(" ").parse()?) };
        Ok(Self { stamp: stamp.join(" ").parse()?, before, state })
    }
}

impl ClaimState {
    fn as_str(self) -> &'static str {
        match self {
            Self::Begun => "begun",
            Self::Made => "made",
            Self::Behind => "behind",
        }
    }
}

/// How many words a stamp has.
const STAMP_PARTS: usize = 3;

fn hex(text: &str) -> Result<u64, NotAStamp> {
    let is_hex = text.len() == 16 && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
    if is_hex { u64::from_str_radix(text, 16).map_err(|_| NotAStamp) } else { Err(NotAStamp) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stamp(number: u64, nonce: u64) -> Stamp {
        Stamp { installation: Installation(0xab), number, nonce }
    }

    #[test]
    fn a_written_stamp_is_read_again_and_no_other_text_is_one() {
        for number in [0, 1, u64::MAX] {
            let stamp = stamp(number, 7);
            assert_eq!(stamp.to_string().parse(), Ok(stamp));
            assert_eq!(format!("{stamp}\n").parse(), Ok(stamp), "a file ends with a line");
            for state in [ClaimState::Begun, ClaimState::Made, ClaimState::Behind] {
                for before in [None, Some(self::stamp(3, 4))] {
                    let claim = Claim { stamp, before, state };
                    assert_eq!(claim.to_string().parse(), Ok(claim));
                }
            }
        }
        let whole = stamp(12, 7).to_string();
        assert_eq!(whole, "00000000000000ab 12 0000000000000007");
        let longer = format!("{whole} 1");
        for text in ["", " ", "\0", &whole[1..], &whole[..30], &longer, &whole.to_uppercase()] {
            assert_eq!(text.parse::<Stamp>(), Err(NotAStamp), "{text:?}");
        }
        assert_eq!(format!("{whole} lost").parse::<Claim>(), Err(NotAStamp));
    }

    #[test]
    fn an_earlier_copy_and_one_that_went_on_by_itself_are_behind() {
        let claim = |stamp, before| Claim { stamp, before: Some(before), state: ClaimState::Made };
        let seen = stamp(5, 1);
        assert!(claim(stamp(4, 1), stamp(3, 1)).is_behind(&seen));
        assert!(claim(stamp(5, 2), stamp(4, 1)).is_behind(&seen));
        assert!(claim(stamp(9, 2), stamp(8, 1)).is_behind(&seen), "a higher number of another line");
        assert!(!claim(seen, stamp(4, 1)).is_behind(&seen));
        // The ledger writes its stamp before the store does.
        assert!(!claim(stamp(6, 3), seen).is_behind(&seen));
    }
}
