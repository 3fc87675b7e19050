//! The stores that there are.

use std::any::Any;
use std::fmt::{self, Debug, Formatter};
use std::net::SocketAddr;
use std::ops::Deref;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use async_trait::async_trait;
use cloakroom_adapters::bucket::{BucketOptions, BucketStore, Location, Pool};
use cloakroom_adapters::disk::{DataDirectory, DiskStore};
use cloakroom_core::metrics::Metrics;
use cloakroom_core::resource::BlobKey;
use cloakroom_storage::log::LogStore;
use cloakroom_storage::store::{BlobStore, LocalDisk as _, Storage};
use cloakroom_testing::azurite::{self, Azurite};
use cloakroom_testing::ceph::Ceph;
use cloakroom_testing::front::{Front, Turn};
use cloakroom_testing::google_storage::{self, GoogleStorage};
use cloakroom_testing::hdfs::{self, Hdfs};
use cloakroom_testing::needs::{missing, skip_unless_all};
use cloakroom_testing::s3_gateway::{ACCESS_KEY, BUCKET as TEAM, S3Gateway, SECRET_KEY, uploads};

use crate::Implementation;
use crate::memory::MemoryStore;

/// The stores in which whole servers are tried.
pub const STORES: [&Store; 6] = [&S3, &AZURE, &GOOGLE, &HDFS, &DISK, &MEMORY];

pub static S3: Store = Store {
    implementation: Implementation {
        name: "s3",
        needs: S3Gateway::needs,
        create: || Box::pin(in_s3(Way::Straight)),
    },
    has_handles: true,
    is_disk: false,
};

/// It speaks the protocol of S3, and takes longer for each call. So only the rules of the port are tried in it.
pub static CEPH: Store = Store {
    implementation: Implementation {
        name: "ceph",
        needs: Ceph::needs,
        create: || Box::pin(in_ceph(Way::Straight)),
    },
    has_handles: true,
    is_disk: false,
};

pub static AZURE: Store = Store {
    implementation: Implementation {
        name: "azure",
        needs: Azurite::needs,
        create: || Box::pin(in_azure(Way::Straight)),
    },
    has_handles: false,
    is_disk: false,
};

pub static GOOGLE: Store = Store {
    implementation: Implementation {
        name: "google",
        needs: GoogleStorage::needs,
        create: || Box::pin(in_google(Way::Straight)),
    },
    has_handles: true,
    is_disk: false,
};

pub static HDFS: Store = Store {
    implementation: Implementation {
        name: "hdfs",
        needs: Hdfs::needs,
        create: || Box::pin(in_hdfs(Way::Straight)),
    },
    has_handles: false,
    is_disk: false,
};

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

/// The buckets.
pub const BUCKETS: [&Store; 5] = [&S3, &CEPH, &AZURE, &GOOGLE, &HDFS];

/// The same behind a proxy that loses, cuts and refuses.
pub static FAULTY_BUCKETS: [Implementation<StoreData>; 5] = [
    Implementation { name: "faulty-s3", needs: S3Gateway::needs, create: || Box::pin(in_s3(Way::Faulty)) },
    Implementation { name: "faulty-ceph", needs: Ceph::needs, create: || Box::pin(in_ceph(Way::Faulty)) },
    Implementation {
        name: "faulty-azure",
        needs: Azurite::needs,
        create: || Box::pin(in_azure(Way::Faulty)),
    },
    Implementation {
        name: "faulty-google",
        needs: GoogleStorage::needs,
        create: || Box::pin(in_google(Way::Faulty)),
    },
    Implementation { name: "faulty-hdfs", needs: Hdfs::needs, create: || Box::pin(in_hdfs(Way::Faulty)) },
];

/// The way to a store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    Straight,
    Faulty,
}

impl Way {
    /// Where the store at `address` is reached, and what must stay for that.
    fn to(self, address: SocketAddr) -> (SocketAddr, Option<Front>) {
        match self {
            Self::Straight => (address, None),
            Self::Faulty => {
                let front = Front::before(address, faults());
                (front.address(), Some(front))
            }
        }
    }
}

/// Three of ten requests that change something: one loses its answer, one is refused for now, and one has its answer cut.
fn faults() -> impl Fn(&str) -> Turn {
    let changes = AtomicUsize::new(0);
    move |line| {
        let is_change = ["PUT ", "POST ", "DELETE "].iter().any(|method| line.starts_with(method));
        match is_change.then(|| changes.fetch_add(1, Ordering::Relaxed) % 10) {
            Some(0) => Turn::LoseAnswer,
            Some(3) => Turn::Answer(503, "text/plain", ""),
            Some(6) => Turn::Cut { after: 9 },
            _ => Turn::Pass,
        }
    }
}

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
    /// Where the log of a ledger can be; `None` on a disk.
    pub log: Option<Arc<dyn LogStore>>,
    /// Whether an upload exists in the store before it is committed. If not, there is nothing that an abort could end, and the upload
    /// can be committed afterwards.
    pub has_uploads: bool,
    uncommitted: Arc<dyn Uncommitted>,
    /// What loses, cuts and refuses requests on the way to the store.
    pub faults: Option<Front>,
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

const KEYS: [(&str, &str); 2] = [("AWS_ACCESS_KEY_ID", ACCESS_KEY), ("AWS_SECRET_ACCESS_KEY", SECRET_KEY)];

async fn in_s3(way: Way) -> StoreData {
    let gateway = Arc::new(S3Gateway::start().await);
    let (address, front) = way.to(gateway.address());
    let options = BucketOptions { endpoint: Some(format!("http://{address}")), ..BucketOptions::default() };
    let store = in_a_bucket(&format!("s3://{TEAM}/some/prefix"), options, &KEYS);
    in_store(store, true, gateway, front)
}

async fn in_ceph(way: Way) -> StoreData {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    let (ceph, number) = (Ceph::shared().await, NEXT.fetch_add(1, Ordering::Relaxed));
    let (address, front) = way.to(ceph.address());
    let options = BucketOptions { endpoint: Some(format!("http://{address}")), ..BucketOptions::default() };
    let prefix = format!("store-{number}");
    let store = in_a_bucket(&format!("s3://{TEAM}/{prefix}"), options, &KEYS);
    let uncommitted = Arc::new(PrefixOfCeph(ceph, format!("{prefix}%2F")));
    in_store(store, true, uncommitted, front)
}

/// The objects of one store of many in one bucket. The prefix is as in a query.
struct PrefixOfCeph(&'static Ceph, String);

#[async_trait(?Send)]
impl Uncommitted for PrefixOfCeph {
    async fn keys(&self) -> Vec<BlobKey> {
        keys_in(&uploads(&self.0.url(), TEAM, &self.1))
    }
}

async fn in_azure(way: Way) -> StoreData {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    let (azurite, number) = (Azurite::shared().await, NEXT.fetch_add(1, Ordering::Relaxed));
    let (address, front) = way.to(azurite.address());
    let options = BucketOptions {
        endpoint: Some(format!("http://{address}/{}", azurite::ACCOUNT)),
        account: Some(azurite::ACCOUNT.to_owned()),
        ..BucketOptions::default()
    };
    let location = format!("az://{}/store-{number}", azurite::CONTAINER);
    let store = in_a_bucket(&location, options, &[("AZURE_STORAGE_KEY", azurite::KEY)]);
    in_store(store, false, Arc::new(LeftToTheStore), front)
}

async fn in_google(way: Way) -> StoreData {
    let storage = Arc::new(GoogleStorage::start().await);
    let variables = [("GOOGLE_APPLICATION_CREDENTIALS", storage.credentials())];
    let variables = variables.each_ref().map(|(name, path)| (*name, path.to_str().unwrap()));
    let (address, front) = way.to(storage.address());
    let options = BucketOptions { endpoint: Some(format!("http://{address}")), ..BucketOptions::default() };
    let store = in_a_bucket(&format!("gs://{}/some/prefix", google_storage::BUCKET), options, &variables);
    in_store(store, true, storage, front)
}

async fn in_hdfs(way: Way) -> StoreData {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    let (hdfs, number) = (Hdfs::shared(), NEXT.fetch_add(1, Ordering::Relaxed));
    let options = BucketOptions { user: Some(hdfs::USER.to_owned()), ..BucketOptions::default() };
    let folder = format!("{}/store-{number}", hdfs::TEAM);
    let (namenode, front) = way.to(hdfs.namenode().parse().unwrap());
    let store = in_a_bucket(&format!("webhdfs://{namenode}/{folder}"), options, &[]);
    let uncommitted = Arc::new(FolderOfHdfs(hdfs, format!("{folder}/incoming")));
    in_store(store, true, uncommitted, front)
}

/// Where the files of HDFS are that are not whole.
struct FolderOfHdfs(&'static Hdfs, String);

#[async_trait(?Send)]
impl Uncommitted for FolderOfHdfs {
    async fn keys(&self) -> Vec<BlobKey> {
        let Self(hdfs, folder) = self;
        hdfs.names(folder).iter().map(|name| BlobKey::parse(name).unwrap()).collect()
    }
}

fn in_store(
    store: Arc<BucketStore>,
    has_uploads: bool,
    uncommitted: Arc<dyn Uncommitted>,
    faults: Option<Front>,
) -> StoreData {
    let log = Some(Arc::clone(&store) as _);
    let storage = Storage::elsewhere(store);
    StoreData { storage, log, has_uploads, uncommitted, faults, _kept: Box::new(()) }
}

fn in_a_bucket(location: &str, options: BucketOptions, variables: &[(&str, &str)]) -> Arc<BucketStore> {
    let options = BucketOptions { allows_http: true, ..options };
    let variables = |name: &str| {
        let found = variables.iter().find(|(variable, _)| *variable == name);
        found.map(|(_, value)| (*value).to_owned())
    };
    let location = Location::parse(location).unwrap();
    let (pool, largest) = (Pool::new(128 << 20), 1 << 30);
    let store = BucketStore::new(location, &options, &variables, pool, largest, &Metrics::new());
    Arc::new(store.unwrap())
}

/// For a store where no upload can be aborted. It removes the parts by itself after some days.
struct LeftToTheStore;

#[async_trait(?Send)]
impl Uncommitted for LeftToTheStore {
    async fn keys(&self) -> Vec<BlobKey> {
        Vec::new()
    }
}

#[async_trait(?Send)]
impl Uncommitted for S3Gateway {
    async fn keys(&self) -> Vec<BlobKey> {
        keys_in(&self.uploads())
    }
}

fn keys_in(paths: &[String]) -> Vec<BlobKey> {
    paths.iter().map(|path| BlobKey::parse(path.rsplit('/').next().unwrap()).unwrap()).collect()
}

#[async_trait(?Send)]
impl Uncommitted for GoogleStorage {
    async fn keys(&self) -> Vec<BlobKey> {
        self.gateway.keys().await
    }
}

async fn on_disk() -> StoreData {
    let folder = tempfile::tempdir().unwrap();
    let store = Arc::new(DiskStore::new(DataDirectory::open(folder.path()).unwrap()));
    StoreData {
        storage: Storage::on_disk(Arc::clone(&store)),
        log: None,
        has_uploads: true,
        uncommitted: store,
        faults: None,
        _kept: Box::new(folder),
    }
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
    let uncommitted = Arc::new(store);
    StoreData { storage, log: None, has_uploads: true, uncommitted, faults: None, _kept: Box::new(()) }
}

#[async_trait(?Send)]
impl Uncommitted for MemoryStore {
    async fn keys(&self) -> Vec<BlobKey> {
        self.arriving()
    }
}
