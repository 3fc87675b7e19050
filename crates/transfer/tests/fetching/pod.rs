//! What an init-container sees of the world, with fetching called in-process.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use cloakroom_core::retry::Backoff;
use cloakroom_kubespark::InitContainerProperties;
use cloakroom_spark::Properties;
use cloakroom_testing::bundles::tgz;
use cloakroom_testing::scripted::Scripted;
use cloakroom_transfer::client::{HttpClient, Timeouts};
use cloakroom_transfer::fetch::{FetchError, FetchObserver, FetchOptions, FetchPlan, SourceReport};
use tokio_util::sync::CancellationToken;

pub const ID: &str = "4c1a3c44-54d9-4a1f-9a6e-0b6f6fd7e7b1";
pub const SECRET: &str = "s3cret-of-the-ticket";

/// A pod's view: a target folder and a file with the secret.
pub struct Pod {
    pub folder: tempfile::TempDir,
    told: Arc<Told>,
    pub options: FetchOptions,
    pub stall: Duration,
}

#[derive(Default)]
pub struct Told(Mutex<Vec<String>>);

impl FetchObserver for Told {
    fn retrying(&self, _: &str, why: &str) {
        self.0.lock().unwrap().push(format!("retrying: {why}"));
    }

    fn starting_over(&self, _: &str, why: &str) {
        self.0.lock().unwrap().push(format!("starting over: {why}"));
    }
}

impl Pod {
    pub fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("secret"), format!("{SECRET}\n")).unwrap();
        let backoff = Backoff {
            first: Duration::from_millis(1),
            longest: Duration::from_millis(10),
            ..FetchOptions::default().backoff
        };
        let options = FetchOptions { timeout: Duration::from_secs(30), backoff, ..FetchOptions::default() };
        Self { folder, told: Arc::default(), options, stall: Duration::from_secs(30) }
    }

    pub fn target(&self) -> PathBuf {
        self.folder.path().join("jars")
    }

    pub async fn fetch(&self, server: &Scripted) -> Result<Vec<SourceReport>, FetchError> {
        let secret = self.folder.path().join("secret");
        self.run(FetchPlan::from_ticket(&server.url(), ID, &secret, &self.target())?).await
    }

    /// Runs what a properties file says; `{secret}` and `{target}` stand for the pod's own.
    pub async fn fetch_properties(&self, text: &str) -> Result<Vec<SourceReport>, FetchError> {
        let secret = self.folder.path().join("secret");
        let text = text.replace("{secret}", secret.to_str().unwrap());
        let text = text.replace("{target}", self.target().to_str().unwrap());
        let properties = Properties::parse("spark-init.properties", &text).unwrap();
        let plan = FetchPlan::from_properties(&InitContainerProperties::from(&properties).unwrap())?;
        self.run(plan).await
    }

    pub async fn run(&self, plan: FetchPlan) -> Result<Vec<SourceReport>, FetchError> {
        let timeouts = Timeouts { stall: self.stall, ..Timeouts::default() };
        let http = HttpClient::new(&[], timeouts).unwrap();
        let stop = CancellationToken::new();
        cloakroom_transfer::fetch::run(plan, &http, &self.options, &stop, Arc::clone(&self.told) as _).await
    }

    pub fn told(&self) -> Vec<String> {
        self.told.0.lock().unwrap().clone()
    }

    pub fn read(&self, name: &str) -> Vec<u8> {
        std::fs::read(self.target().join(name)).unwrap()
    }

    /// Everything in the target folder but receipts.
    pub fn names(&self) -> Vec<String> {
        let mut names = all_names(&self.target());
        names.retain(|name| !(name.starts_with(".cloakroom-") && name.ends_with(".json")));
        names
    }
}

pub fn all_names(folder: &Path) -> Vec<String> {
    let Ok(entries) = std::fs::read_dir(folder) else { return Vec::new() };
    let mut names: Vec<String> =
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

/// Bytes that do not compress, so that a bundle's size is that of its files.
pub fn noise(length: usize, seed: u32) -> Vec<u8> {
    let mut state = seed;
    let next = |_| {
        state ^= state << 13;
        state ^= state >> 17;
        state ^= state << 5;
        state as u8
    };
    (0..length).map(next).collect()
}

pub fn bundle() -> (Vec<u8>, Vec<u8>) {
    let jar = noise(3_000_000, 1);
    (tgz(&[("app.jar", &jar), ("lib.jar", b"lib")]), jar)
}
