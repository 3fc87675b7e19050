//! Durations for people: one number and one unit.

use jiff::Timestamp;

const MINUTE: i64 = 60;
const HOUR: i64 = 60 * MINUTE;
const DAY: i64 = 24 * HOUR;

/// The time between two moments, such as `45s`, `90m`, `47h` or `3d`. It is never negative, even if clocks differ.
pub(super) fn between(earlier: Timestamp, later: Timestamp) -> String {
    let seconds = later.duration_since(earlier).as_secs().max(0);
    // At least two of a unit, so that rounding down hides little.
    match seconds {
        ..=119 => format!("{seconds}s"),
        120..7200 => format!("{}m", seconds / MINUTE),
        7200..172_800 => format!("{}h", seconds / HOUR),
        _ => format!("{}d", seconds / DAY),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_has_one_unit_and_is_never_rounded_up() {
        let start = Timestamp::UNIX_EPOCH;
        for (seconds, expected) in [
            (-5, "0s"),
            (0, "0s"),
            (119, "119s"),
            (120, "2m"),
            (7199, "119m"),
            (7200, "2h"),
            (2 * DAY - 1, "47h"),
            (2 * DAY, "2d"),
            (400 * DAY, "400d"),
        ] {
            assert_eq!(between(start, Timestamp::from_second(seconds).unwrap()), expected);
        }
    }
}
