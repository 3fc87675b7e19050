//! Answers that are good for a while. What they are about is kept as a hash only.

use std::collections::HashMap;
use std::time::Duration;

use sha2::{Digest as _, Sha256};

/// More answers are not kept at once.
const MOST: usize = 4096;

/// SHA-256 of what an answer is about.
pub(super) type Key = [u8; 32];

/// The key for these parts; their lengths keep them apart.
pub(super) fn key(parts: &[&[u8]]) -> Key {
    let mut hash = Sha256::new();
    for part in parts {
        hash.update((part.len() as u64).to_be_bytes());
        hash.update(part);
    }
    hash.finalize().into()
}

pub(super) struct Cache<V> {
    /// Each with the moment until which it is good.
    answers: HashMap<Key, (Duration, V)>,
}

impl<V> Default for Cache<V> {
    fn default() -> Self {
        Self { answers: HashMap::new() }
    }
}

impl<V: Clone> Cache<V> {
    pub(super) fn get(&self, key: &Key, now: Duration) -> Option<V> {
        self.answers.get(key).filter(|(until, _)| now < *until).map(|(_, value)| value.clone())
    }

    pub(super) fn put(&mut self, key: Key, value: V, now: Duration, lasts: Duration) {
        if self.answers.len() >= MOST {
            // What is over before what is good, and a no before a yes, as a rule: it is good for less.
            let oldest = self.answers.iter().min_by_key(|(_, (until, _))| *until).map(|(key, _)| *key);
            oldest.map(|oldest| self.answers.remove(&oldest));
        }
        self.answers.insert(key, (now + lasts, value));
    }

    /// Whether there is an answer, good or not any more.
    pub(super) fn has(&self, key: &Key) -> bool {
        self.answers.contains_key(key)
    }

    pub(super) fn remove(&mut self, key: &Key) {
        self.answers.remove(key);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn an_answer_is_good_until_its_time_is_over() {
        let mut cache = Cache::default();
        cache.put(key(&[b"a"]), 1, 5 * SECOND, 10 * SECOND);
        assert_eq!(cache.get(&key(&[b"a"]), 14 * SECOND), Some(1));
        assert_eq!(cache.get(&key(&[b"a"]), 15 * SECOND), None);
        assert_eq!(cache.get(&key(&[b"b"]), 6 * SECOND), None);
    }

    #[test]
    fn there_are_never_more_answers_than_the_bound() {
        let mut cache = Cache::default();
        for number in 0..3 * MOST as u64 {
            cache.put(key(&[&number.to_be_bytes()]), number, SECOND, SECOND);
            assert!(cache.answers.len() <= MOST);
        }
    }

    #[test]
    fn what_is_good_for_longest_is_kept_when_there_are_too_many() {
        let mut cache = Cache::default();
        cache.put(key(&[b"yes"]), 0, SECOND, 60 * SECOND);
        for number in 0..2 * MOST as u64 {
            cache.put(key(&[&number.to_be_bytes()]), number, SECOND, 10 * SECOND);
        }
        assert_eq!(cache.get(&key(&[b"yes"]), 2 * SECOND), Some(0));
        assert_eq!(cache.answers.len(), MOST);
    }

    #[test]
    fn parts_that_meet_elsewhere_have_other_keys() {
        assert_ne!(key(&[b"token", b"ns"]), key(&[b"toke", b"nns"]));
    }
}
