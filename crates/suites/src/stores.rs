//! The stores that there are.

use std::fmt::{self, Debug, Formatter};
use std::ops::Deref;
use std::sync::Arc;

use async_trait::async_trait;
use cloakroom_adapters::disk::{DataDirectory, DiskStore};
use cloakroom_core::resource::BlobKey;
use cloakroom_storage::store::{BlobStore, LocalDisk as _, MemoryStore, Storage};
use cloakroom_testing::needs::{Need, missing, skip};
use tempfile::TempDir;

/// Each store is one line here.
pub const STORES: [Store; 2] = [DISK, MEMORY];

pub const DISK: Store = &Disk;
pub const MEMORY: Store = &Memory;

pub type Store = &'static dyn StoreUnderTest;

/// The stores that can be had on this machine. A message says which ones cannot.
pub fn stores() -> impl Iterator<Item = Store> {
    STORES.into_iter().filter(|store| {
        let missing = missing(&store.needs());
        if !missing.is_empty() {
            skip(&format!("{}: {}", store.name(), missing.join("; ")));
        }
        missing.is_empty()
    })
}

/// How tests open a store, and what is special about it.
#[async_trait(?Send)]
pub trait StoreUnderTest: Sync {
    /// The first part of the names of its tests.
    fn name(&self) -> &'static str;

    /// What it needs beyond Rust. Its tests are skipped with a message where that is missing.
    fn needs(&self) -> Vec<Need> {
        Vec::new()
    }

    /// A new and empty one.
    async fn create(&self) -> StoreData;

    /// Whether its uploads have handles.
    fn has_handles(&self) -> bool;

    /// Whether its blobs are on a local disk, where what was opened stays readable.
    fn is_disk(&self) -> bool;
}

impl Debug for dyn StoreUnderTest {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.name())
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
trait Uncommitted: Send + Sync {
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

struct Disk;

#[async_trait(?Send)]
impl StoreUnderTest for Disk {
    fn name(&self) -> &'static str {
        "disk"
    }

    async fn create(&self) -> StoreData {
        let folder = tempfile::tempdir().unwrap();
        let store = Arc::new(DiskStore::new(DataDirectory::open(folder.path()).unwrap()));
        StoreData { storage: Storage::on_disk(Arc::clone(&store)), uncommitted: store, _folder: Some(folder) }
    }

    fn has_handles(&self) -> bool {
        false
    }

    fn is_disk(&self) -> bool {
        true
    }
}

#[async_trait(?Send)]
impl Uncommitted for DiskStore {
    async fn keys(&self) -> Vec<BlobKey> {
        self.arriving().await.unwrap()
    }
}

struct Memory;

#[async_trait(?Send)]
impl StoreUnderTest for Memory {
    fn name(&self) -> &'static str {
        "memory"
    }

    async fn create(&self) -> StoreData {
        let store = MemoryStore::default();
        StoreData {
            storage: Storage::elsewhere(Arc::new(store.clone())),
            uncommitted: Arc::new(store),
            _folder: None,
        }
    }

    fn has_handles(&self) -> bool {
        true
    }

    fn is_disk(&self) -> bool {
        false
    }
}

#[async_trait(?Send)]
impl Uncommitted for MemoryStore {
    async fn keys(&self) -> Vec<BlobKey> {
        self.arriving()
    }
}
