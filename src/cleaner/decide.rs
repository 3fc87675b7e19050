//! Whether a resource goes: by time alone, which needs no knowledge of its owner.

use std::time::Duration;

use jiff::Timestamp;

use crate::resource::{DeletionReason, Resource};

/// The rules that the admin set.
#[derive(Debug, Clone, Copy, Default)]
pub struct Policy {
    /// No resource grows older than this.
    pub max_age: Option<Duration>,
}

/// What to do with a resource.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Decision {
    /// It stays.
    Keep,
    /// It goes, for this reason.
    Delete(DeletionReason),
}

/// Decides by the resource's own agreement and the admin's rules.
pub fn decide(resource: &Resource, now: Timestamp, policy: &Policy) -> Decision {
    // Before its creation, by a clock that was set back, a resource has no age that could be reached.
    let age = Duration::try_from(now.duration_since(resource.created_at)).ok();
    let reached = |limit: Option<Duration>| age.zip(limit).is_some_and(|(age, limit)| age >= limit);
    if reached(resource.lifetime.ttl) {
        Decision::Delete(DeletionReason::TtlReached)
    } else if reached(policy.max_age) {
        Decision::Delete(DeletionReason::MaxAgeReached)
    } else if !resource.is_used() && reached(Some(resource.lifetime.unused_timeout)) {
        Decision::Delete(DeletionReason::Unused)
    } else {
        Decision::Keep
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::resource::{Lifetime, ResourceId, ResourceSecret, State};
    use proptest::prelude::*;

    fn resource(lifetime: Lifetime, used: bool) -> Resource {
        let created_at = Timestamp::UNIX_EPOCH;
        Resource {
            id: ResourceId::generate(&mut rand::rng()),
            secret_hash: ResourceSecret::from_text("s").hash(),
            state: State::Ready,
            owner: None,
            bundle: None,
            file_name: None,
            lifetime,
            created_at,
            first_used_at: used.then_some(created_at),
            last_used_at: used.then_some(created_at),
            expires_at: None,
            deleted: None,
            uploaded_by: None,
        }
    }

    prop_compose! {
        fn any_case()(
            unused in 0_u64..100, ttl in proptest::option::of(0_u64..100), used: bool,
            max_age in proptest::option::of(0_u64..100), now in -10_i64..150,
        ) -> (Resource, Policy, Timestamp) {
            let lifetime =
                Lifetime { unused_timeout: Duration::from_secs(unused), ttl: ttl.map(Duration::from_secs) };
            let policy = Policy { max_age: max_age.map(Duration::from_secs) };
            (resource(lifetime, used), policy, Timestamp::from_second(now).unwrap())
        }
    }

    #[test]
    fn a_clock_that_was_set_back_before_the_creation_deletes_nothing() {
        let zero = Lifetime { unused_timeout: Duration::ZERO, ttl: Some(Duration::ZERO) };
        let policy = Policy { max_age: Some(Duration::ZERO) };
        let now = Timestamp::from_second(-1).unwrap();
        assert_eq!(decide(&resource(zero, false), now, &policy), Decision::Keep);
    }

    proptest! {
        #[test]
        fn what_is_deleted_once_stays_deleted_as_time_goes_on((resource, policy, now) in any_case(), later in 0_u64..100) {
            if let Decision::Delete(_) = decide(&resource, now, &policy) {
                let later = now.checked_add(Duration::from_secs(later)).unwrap();
                prop_assert!(decide(&resource, later, &policy) != Decision::Keep);
            }
        }

        #[test]
        fn a_used_resource_without_ttl_or_max_age_is_never_deleted((mut resource, _, now) in any_case()) {
            resource.lifetime.ttl = None;
            resource.last_used_at = Some(resource.created_at);
            prop_assert_eq!(decide(&resource, now, &Policy::default()), Decision::Keep);
        }

        #[test]
        fn nothing_goes_before_its_agreed_time((resource, _, now) in any_case()) {
            if now < resource.lifetime.expiry_if_unused(resource.created_at) {
                prop_assert_eq!(decide(&resource, now, &Policy::default()), Decision::Keep);
            }
        }
    }
}
