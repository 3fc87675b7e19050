//! Bounds what splices do at once, because a recipe of one kilobyte can ask for gigabytes of reading and writing.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, Weak};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use cloakroom_core::client::Client;
use cloakroom_core::lock::lock;

/// How many recipes are read at once. Each takes up to 1 MiB of memory meanwhile.
const MOST_RECIPES: usize = 32;
const MOST_RECIPES_OF_CLIENT: usize = 4;

/// How many splices copy at once.
const MOST_COPIES: usize = 8;
const MOST_COPIES_OF_CLIENT: usize = 2;

/// What the splices of a server share.
#[derive(Debug, Clone)]
pub struct Splices {
    pub(super) reading: Places,
    pub(super) copying: Places,
}

impl Default for Splices {
    fn default() -> Self {
        Self {
            reading: Places::new(MOST_RECIPES, MOST_RECIPES_OF_CLIENT),
            copying: Places::new(MOST_COPIES, MOST_COPIES_OF_CLIENT),
        }
    }
}

/// A number of places, of which one client has a few. Clones share them.
#[derive(Debug, Clone)]
pub(super) struct Places {
    all: Arc<Semaphore>,
    of_client: usize,
    of_clients: Arc<Mutex<HashMap<Client, Weak<Semaphore>>>>,
}

/// A place, until it is dropped.
#[derive(Debug)]
pub(super) struct Place {
    _of_client: Option<OwnedSemaphorePermit>,
    _of_all: Option<OwnedSemaphorePermit>,
}

impl Places {
    fn new(all: usize, of_client: usize) -> Self {
        Self { all: Arc::new(Semaphore::new(all)), of_client, of_clients: Arc::default() }
    }

    /// Waits for one of the client's places, and then for one of all. So a client with many requests is one of those that wait, not
    /// all of them.
    pub(super) async fn place(&self, client: &Client) -> Place {
        // They are never closed.
        let of_client = self.own(client).acquire_owned().await.ok();
        let of_all = Arc::clone(&self.all).acquire_owned().await.ok();
        Place { _of_client: of_client, _of_all: of_all }
    }

    fn own(&self, client: &Client) -> Arc<Semaphore> {
        let mut of_clients = lock(&self.of_clients);
        of_clients.retain(|_, own| own.strong_count() > 0);
        if let Some(own) = of_clients.get(client).and_then(Weak::upgrade) {
            return own;
        }
        let own = Arc::new(Semaphore::new(self.of_client));
        of_clients.insert(client.clone(), Arc::downgrade(&own));
        own
    }
}

#[cfg(test)]
mod tests {
    use std::net::IpAddr;

    use futures_util::FutureExt as _;

    use super::*;

    fn host(last: u8) -> Client {
        Client::Host(IpAddr::from([10, 0, 0, last]).into())
    }

    #[test]
    fn one_client_has_a_few_of_the_places() {
        let places = Places::new(8, 2);
        let place = |last| places.place(&host(last)).now_or_never();
        let mut taken: Vec<Place> = [1, 1, 2, 2, 3, 3, 4].map(|last| place(last).unwrap()).into();
        assert!(place(1).is_none());
        taken.push(place(5).unwrap());
        assert!(place(6).is_none());
        taken.clear();
        assert!(place(1).is_some());
        assert_eq!(lock(&places.of_clients).len(), 1, "the others are forgotten");
    }
}
