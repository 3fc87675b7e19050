//! The stores that there are.

use std::any::Any;
use std::fmt::{self, Debug, Formatter};
use std::ops::Deref;
use std::sync::Arc;

use async_trait::async_trait;
use cloakroom_adapters::bucket::{BucketStore, Location, Pool, S3Options};
use cloakroom_adapters::disk::{DataDirectory, DiskStore};
use cloakroom_core::metrics::Metrics;
use cloakroom_core::resource::BlobKey;
use cloakroom_storage::store::{BlobStore, LocalDisk as _, MemoryStore, Storage};
use cloakroom_testing::needs::{missing, skip_unless_all};
use cloakroom_testing::s3_gateway::{ACCESS_KEY, BUCKET as TEAM, S3Gateway, SECRET_KEY};

use crate::Implementation;

/// Each store is one line here.
pub const STORES: [&Store; 3] = [&BUCKET, &DISK, &MEMORY];

pub static BUCKET: Store = Store {
    implementation: Implementation {
        name: "bucket",
        needs: S3Gateway::needs,
        create: || Box::pin(in_a_bucket()),
    },
    has_handles: true,
    needs_handles: true,
    is_disk: false,
};

pub static DISK: Store = Store {
    implementation: Implementation { name: "disk", needs: Vec::new, create: || Box::pin(on_disk()) },
    has_handles: false,
    needs_handles: false,
    is_disk: true,
};

pub static MEMORY: Store = Store {
    implementation: Implementation { name: "memory", needs: Vec::new, create: || Box::pin(in_memory()) },
    has_handles: true,
    needs_handles: false,
    is_disk: false,
};

/// The stores that can be had on this machine. A message says which ones cannot.
pub fn stores() -> impl Iterator<Item = &'static Store> {
    STORES.into_iter().filter(|store| {
        let missing = missing(&(store.implementation.needs)());
        if !missing.is_empty() {
            skip_unless_all(&format!("{store:?}: {}", missing.join("; ")));
        }
        missing.is_empty()
    })
}

/// A store, and what is special about it.
pub struct Store {
    pub implementation: Implementation<StoreData>,
    /// Whether its uploads have handles.
    pub has_handles: bool,
    /// Whether only its handle finds what an upload has left. So that stays if the process ends before the ledger has the handle.
    pub needs_handles: bool,
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
    /// What must stay as long as the store.
    _kept: Box<dyn Any>,
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

async fn in_a_bucket() -> StoreData {
    let gateway = Arc::new(S3Gateway::start().await);
    let location = Location::parse(&format!("s3://{TEAM}/some/prefix")).unwrap();
    let options = S3Options { endpoint: Some(gateway.url()), allows_http: true, ..S3Options::default() };
    let variables = |name: &str| match name {
        "AWS_ACCESS_KEY_ID" => Some(ACCESS_KEY.to_owned()),
        "AWS_SECRET_ACCESS_KEY" => Some(SECRET_KEY.to_owned()),
        _ => None,
    };
    let store =
        BucketStore::in_s3(location, &options, &variables, Pool::new(128 << 20), 1 << 30, &Metrics::new())
            .unwrap();
    let storage = Storage::elsewhere(Arc::new(store));
    StoreData { storage, uncommitted: Arc::clone(&gateway) as _, _kept: Box::new(()) }
}

#[async_trait(?Send)]
impl Uncommitted for S3Gateway {
    async fn keys(&self) -> Vec<BlobKey> {
        let uploads = self.uploads();
        uploads.iter().map(|key| BlobKey::parse(key.rsplit('/').next().unwrap()).unwrap()).collect()
    }
}

async fn on_disk() -> StoreData {
    let folder = tempfile::tempdir().unwrap();
    let store = Arc::new(DiskStore::new(DataDirectory::open(folder.path()).unwrap()));
    StoreData { storage: Storage::on_disk(Arc::clone(&store)), uncommitted: store, _kept: Box::new(folder) }
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
    StoreData { storage, uncommitted: Arc::new(store), _kept: Box::new(()) }
}

#[async_trait(?Send)]
impl Uncommitted for MemoryStore {
    async fn keys(&self) -> Vec<BlobKey> {
        self.arriving()
    }
}
