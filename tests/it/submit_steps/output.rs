//! Nobody reads what is said, or nobody can write it any more.

use std::fs::File;
use std::process::{Command, Stdio};

use cloakroom_testing::checkpoint::{Accident, Extent};

use super::good;
use super::submitter::{State, Submitter, Way};

/// Where output goes that nobody gets.
#[derive(Debug, Clone, Copy)]
enum Nowhere {
    /// Whoever read it has ended.
    Closed,
    /// The disk is full.
    Full,
}

impl Nowhere {
    fn take(self, command: &mut Command) -> &mut Command {
        let nowhere = || match self {
            Self::Closed => Stdio::from(std::io::pipe().unwrap().1),
            Self::Full => Stdio::from(File::options().write(true).open("/dev/full").unwrap()),
        };
        command.stdout(nowhere()).stderr(nowhere())
    }
}

#[test]
fn an_application_is_submitted_although_nothing_can_be_said_of_it() {
    for nowhere in [Nowhere::Closed, Nowhere::Full] {
        for way in [Way::Staged, Way::Copied] {
            let submitter = Submitter::new(way);
            let status = nowhere.take(&mut submitter.submit()).status().unwrap();
            assert_eq!(status.code(), Some(0), "{nowhere:?}");
            let state = submitter.state();
            assert!(state.objects.contains(&"Pod app-driver".to_owned()), "{nowhere:?}: {state:?}");
            assert_eq!(state.resources.len(), if way == Way::Staged { 2 } else { 0 });
        }
    }
}

#[test]
fn a_failure_that_nobody_hears_of_leaves_nothing_behind() {
    for nowhere in [Nowhere::Closed, Nowhere::Full] {
        let submitter = Submitter::new(Way::Staged);
        let (passed, _) = good(&submitter);
        for (extent, accident) in [(Extent::Once, Accident::Refused(403)), (Extent::EachTime, Accident::Cut)]
        {
            // An upload, with what was tried again; and the last object of all.
            for number in [3, passed.len() - 1] {
                submitter.checkpoint.plan(number, extent, accident);
                let status = nowhere.take(&mut submitter.submit()).status().unwrap();
                assert_eq!(status.code(), Some(1), "{nowhere:?} {accident:?} {number}");
                assert_eq!(submitter.state(), State::default(), "{nowhere:?} {accident:?} {number}");
            }
        }
    }
}
