//! Turns for each user, so that the questions about one user keep no other user waiting.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, Weak};

use cloakroom_core::lock::lock;

use tokio::sync::Semaphore;

/// Questions at once about one user. Without this limit, one user could fill all slots with made-up namespaces.
const OF_USER_AT_ONCE: usize = 2;

/// The turns of each user that has a question open, by the user's name.
#[derive(Debug, Default)]
pub(super) struct UserTurns(Mutex<HashMap<Box<str>, Weak<Semaphore>>>);

impl UserTurns {
    /// The turns of this user. It forgets users that have no question open.
    pub(super) fn of(&self, user: &str) -> Arc<Semaphore> {
        let mut all = lock(&self.0);
        all.retain(|_, turns| turns.strong_count() > 0);
        let turns = all.get(user).and_then(Weak::upgrade);
        turns.unwrap_or_else(|| {
            let turns = Arc::new(Semaphore::new(OF_USER_AT_ONCE));
            all.insert(user.into(), Arc::downgrade(&turns));
            turns
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_user_has_turns_of_its_own_as_long_as_something_is_asked_about_it() {
        let all = UserTurns::default();
        let (first, second, other) = (all.of("jo"), all.of("jo"), all.of("mo"));
        assert!(Arc::ptr_eq(&first, &second) && !Arc::ptr_eq(&first, &other));
        drop((first, second));
        all.of("mo");
        assert_eq!(all.0.lock().unwrap().len(), 1, "nothing is asked about jo any more");
    }
}
