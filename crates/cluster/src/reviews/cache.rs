//! Answers that are used for a limited time. Their questions are kept only as hashes.

use std::collections::HashMap;
use std::time::Duration;

use sha2::{Digest as _, Sha256};

/// The largest number of answers in one cache.
const MOST: usize = 4096;

/// The SHA-256 of a question.
pub(super) type Key = [u8; 32];

/// Hashes the parts of a question, each with its length, so that the same bytes in other parts give another key.
pub(super) fn key(parts: &[&[u8]]) -> Key {
    let mut hash = Sha256::new();
    for part in parts {
        hash.update((part.len() as u64).to_be_bytes());
        hash.update(part);
    }
    hash.finalize().into()
}

pub(super) struct Cache<V> {
    /// The answers, each with the end of its time by the monotonic clock.
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
            // Removes expired answers first. Negative answers mostly go before positive ones, because their time is
            // shorter.
            let oldest = self.answers.iter().min_by_key(|(_, (until, _))| *until).map(|(key, _)| *key);
            oldest.map(|oldest| self.answers.remove(&oldest));
        }
        self.answers.insert(key, (now + lasts, value));
    }

    /// Whether there is an answer, expired or not.
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
    fn answers_that_expire_last_are_kept_when_there_are_too_many() {
        let mut cache = Cache::default();
        cache.put(key(&[b"yes"]), 0, SECOND, 60 * SECOND);
        for number in 0..2 * MOST as u64 {
            cache.put(key(&[&number.to_be_bytes()]), number, SECOND, 10 * SECOND);
        }
        assert_eq!(cache.get(&key(&[b"yes"]), 2 * SECOND), Some(0));
        assert_eq!(cache.answers.len(), MOST);
    }

    #[test]
    fn parts_that_are_split_at_another_place_have_another_key() {
        assert_ne!(key(&[b"token", b"ns"]), key(&[b"toke", b"nns"]));
    }
}
