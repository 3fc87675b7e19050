//! What two bundles have in common.

use std::collections::HashMap;

use cloakroom_core::protocol::recipe::{LEAST_COPIED, MOST_PARTS, RecipePart};

use crate::bundle::Segment;

/// A new bundle as parts that are sent, and ranges of a source. There are as few ranges as possible: in a bucket each is a request of
/// its own.
pub(super) fn common_parts(new: &[Segment], source: &[Segment]) -> Vec<RecipePart> {
    let runs = runs(new, source);
    let mut least = LEAST_COPIED;
    loop {
        let parts = without_short_ranges(&runs, least);
        if parts.len() <= MOST_PARTS {
            return parts;
        }
        least = least.saturating_mul(2);
    }
}

/// The segments of the new bundle. Neighbours that are neighbours in the source, too, are one.
fn runs(new: &[Segment], source: &[Segment]) -> Vec<RecipePart> {
    let mut begins = HashMap::new();
    let mut at = 0;
    for (index, segment) in source.iter().enumerate() {
        begins.entry(*segment).or_insert((index, at));
        at += segment.length;
    }
    let mut runs: Vec<RecipePart> = Vec::new();
    // The segment of the source that comes next.
    let mut next = None;
    for segment in new {
        if let Some(index) = next.filter(|index| source.get(*index) == Some(segment))
            && let Some(RecipePart::Copy([_, length])) = runs.last_mut()
        {
            *length += segment.length;
            next = Some(index + 1);
        } else if let Some((index, at)) = begins.get(segment) {
            runs.push(RecipePart::Copy([*at, segment.length]));
            next = Some(index + 1);
        } else {
            runs.push(RecipePart::Send(segment.length));
            next = None;
        }
    }
    runs
}

/// Sends the ranges that have less than `least` bytes. What is sent in a row is one part.
fn without_short_ranges(runs: &[RecipePart], least: u64) -> Vec<RecipePart> {
    let mut parts: Vec<RecipePart> = Vec::new();
    for run in runs {
        if run.copied().is_some() && run.length() >= least {
            parts.push(*run);
        } else if let Some(RecipePart::Send(length)) = parts.last_mut() {
            *length += run.length();
        } else {
            parts.push(RecipePart::Send(run.length()));
        }
    }
    parts
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use RecipePart::{Copy, Send};

    const LARGE: u64 = 100_000;

    fn segment(name: u32) -> Segment {
        // Every third one is small.
        let length = if name.is_multiple_of(3) { 600 } else { LARGE + u64::from(name) };
        Segment { length, crc: name }
    }

    fn segments(names: &[u32]) -> Vec<Segment> {
        names.iter().copied().map(segment).collect()
    }

    fn parts(new: &[u32], source: &[u32]) -> Vec<RecipePart> {
        common_parts(&segments(new), &segments(source))
    }

    #[test]
    fn what_is_the_same_in_a_row_is_one_range() {
        let whole = [3, 1, 6, 2, 9, 4];
        let size: u64 = segments(&whole).iter().map(|segment| segment.length).sum();
        assert_eq!(parts(&whole, &whole), [Copy([0, size])]);
        // The second file is another one, behind the same header.
        assert_eq!(
            parts(&[3, 1, 6, 5, 9, 4], &whole),
            [
                Copy([0, 600 + LARGE + 1 + 600]),
                Send(LARGE + 5),
                Copy([1200 + 2 * LARGE + 3, 600 + LARGE + 4])
            ]
        );
        // A file alone, a header that has changed, an order that has changed.
        assert_eq!(parts(&[12, 4], &whole), [Send(600), Copy([size - LARGE - 4, LARGE + 4])]);
        assert_eq!(parts(&[1, 1], &whole), [Copy([600, LARGE + 1]), Copy([600, LARGE + 1])]);
        assert_eq!(parts(&[3, 6, 9], &whole), [Send(1800)], "too short to be worth it");
        assert_eq!(parts(&[], &whole), []);
    }

    #[test]
    fn a_recipe_never_has_too_many_parts() {
        let source: Vec<u32> = (0..20_000_u32).filter(|name| !name.is_multiple_of(3)).collect();
        let new: Vec<u32> = source.iter().rev().copied().collect();
        assert!(parts(&new, &source).len() <= MOST_PARTS);
    }

    proptest! {
        #[test]
        fn the_parts_make_the_new_bundle(
            new in prop::collection::vec(0_u32..30, 0..40),
            source in prop::collection::vec(0_u32..30, 0..40),
        ) {
            // Each byte is its segment's name.
            let bytes = |names: &[u32]| segments(names).iter().flat_map(|segment| {
                vec![u8::try_from(segment.crc).unwrap(); usize::try_from(segment.length).unwrap()]
            }).collect::<Vec<u8>>();
            let (expected, there) = (bytes(&new), bytes(&source));
            let mut made: Vec<u8> = Vec::new();
            for part in parts(&new, &source) {
                let end = made.len() + usize::try_from(part.length()).unwrap();
                let Some(range) = part.copied() else {
                    made.extend(&expected[made.len()..end]);
                    continue;
                };
                prop_assert!(part.length() >= LEAST_COPIED);
                let first = usize::try_from(range.start).unwrap();
                made.extend(&there[first..first + (end - made.len())]);
            }
            prop_assert!(made == expected);
        }
    }
}
