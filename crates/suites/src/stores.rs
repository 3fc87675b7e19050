//! The stores that there are.

use std::fmt::{self, Debug, Formatter};
use std::ops::Deref;
use std::sync::Arc;

use async_trait::async_trait;
use cloakroom_adapters::disk::{DataDirectory, DiskStore};
use cloakroom_core::resource::BlobKey;
use cloakroom_storage::store::{BlobStore, LocalDisk as _, MemoryStore, Storage};
use cloakroom_testing::needs::{missing, skip};
use tempfile::TempDir;

use crate::Implementation;

/// Each store is one line here.
pub const STORES: [&Store; 2] = [&DISK, &MEMORY];

pub static DISK: Store = Store {
    implementation: Implementation { name: "disk", needs: Vec::new, create: || Box::pin(on_disk()) },
    has_handles: false,
    is_disk: true,
};

pub static MEMORY: Store = Store {
    implementation: Implementation { name: "memory", needs: Vec::new, create: || Box::pin(in_memory()) },
    has_handles: true,
    is_disk: false,
};

/// The stores that can be had on this machine. A message says which ones cannot.
pub fn stores() -> impl Iterator<Item = &'static Store> {
    STORES.into_iter().filter(|store| {
        let missing = missing(&(store.implementation.needs)());
        if !missing.is_empty() {
            skip(&format!("{store:?}: {}", missing.join("; ")));
        }
        missing.is_empty()
    })
}

/// A store, and what is special about it.
pub struct Store {
    pub implementation: Implementation<StoreData>,
    /// Whether its uploads have handles.
    pub has_handles: bool,
    /// Whether its blobs are on a local disk, where what was opened stays readable.
    pub is_disk: bool,
}

impl Store {
    /// A new and empty one.
    pub async fn create(&self) -> StoreData {
        (self.implementation.create)().await
    }
}

impl Debug for Store {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.implementation.name)
    }
}

/// A store, as the rules see it.
pub struct StoreData {
    pub storage: Storage,
    uncommitted: Arc<dyn Uncommitted>,
    _folder: Option<TempDir>,
}

/// How a test looks for uploads that are not committed.
#[async_trait(?Send)]
trait Uncommitted {
    async fn keys(&self) -> Vec<BlobKey>;
}

impl StoreData {
    /// Keys under which there are bytes that are not committed.
    pub async fn arriving(&self) -> Vec<BlobKey> {
        self.uncommitted.keys().await
    }
}

impl Deref for StoreData {
    type Target = dyn BlobStore;

    fn deref(&self) -> &Self::Target {
        &*self.storage.blobs
    }
}

async fn on_disk() -> StoreData {
    let folder = tempfile::tempdir().unwrap();
    let store = Arc::new(DiskStore::new(DataDirectory::open(folder.path()).unwrap()));
    StoreData { storage: Storage::on_disk(Arc::clone(&store)), uncommitted: store, _folder: Some(folder) }
}

#[async_trait(?Send)]
impl Uncommitted for DiskStore {
    async fn keys(&self) -> Vec<BlobKey> {
        self.arriving().await.unwrap()
    }
}

async fn in_memory() -> StoreData {
    let store = MemoryStore::default();
    let storage = Storage::elsewhere(Arc::new(store.clone()));
    StoreData { storage, uncommitted: Arc::new(store), _folder: None }
}

#[async_trait(?Send)]
impl Uncommitted for MemoryStore {
    async fn keys(&self) -> Vec<BlobKey> {
        self.arriving()
    }
}
