//! Bounds what splices do at once, because a recipe of one kilobyte can ask for gigabytes of reading and writing.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, Weak};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use cloakroom_core::client::Client;
use cloakroom_core::lock::lock;

/// How many splices copy at once.
const MOST: usize = 8;

/// How many of these are of one client.
const MOST_OF_CLIENT: usize = 2;

/// The splices of a server. Clones share their places.
#[derive(Debug, Clone)]
pub struct Splices {
    places: Arc<Semaphore>,
    of_clients: Arc<Mutex<HashMap<Client, Weak<Semaphore>>>>,
}

/// A place, until it is dropped.
#[derive(Debug)]
pub(super) struct Place {
    _of_client: Option<OwnedSemaphorePermit>,
    _of_all: Option<OwnedSemaphorePermit>,
}

impl Default for Splices {
    fn default() -> Self {
        Self { places: Arc::new(Semaphore::new(MOST)), of_clients: Arc::default() }
    }
}

impl Splices {
    /// Waits for a place. While a client waits, it has [`MOST_OF_CLIENT`] others, or [`MOST_OF_CLIENT`] wait for it at most: so the
    /// places go round.
    pub(super) async fn place(&self, client: &Client) -> Place {
        let own = self.of_client(client);
        // They are never closed.
        let of_client = own.acquire_owned().await.ok();
        let of_all = Arc::clone(&self.places).acquire_owned().await.ok();
        Place { _of_client: of_client, _of_all: of_all }
    }

    fn of_client(&self, client: &Client) -> Arc<Semaphore> {
        let mut of_clients = lock(&self.of_clients);
        of_clients.retain(|_, own| own.strong_count() > 0);
        if let Some(own) = of_clients.get(client).and_then(Weak::upgrade) {
            return own;
        }
        let own = Arc::new(Semaphore::new(MOST_OF_CLIENT));
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
    fn one_client_has_two_places_and_all_have_eight() {
        let splices = Splices::default();
        let place = |last| splices.place(&host(last)).now_or_never();
        let mut places: Vec<Place> = [1, 1, 2, 2, 3, 3, 4].map(|last| place(last).unwrap()).into();
        assert!(place(1).is_none());
        places.push(place(5).unwrap());
        assert!(place(6).is_none());
        places.clear();
        assert!(place(1).is_some());
        assert_eq!(lock(&splices.of_clients).len(), 1, "the others are forgotten");
    }
}
