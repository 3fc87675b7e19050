//! `spark.kubernetes.cloakroom.fetchRemote=true`: files on the web, at addresses whose query is a secret.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::http::{StatusCode, Uri};
use cloakroom_testing::jobs::Job;
use libtest_mimic::Trial;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

use crate::shared::{CLOAKROOM, SharedCluster, VERSIONS};
use crate::sight::Sight;
use crate::submission::{Submission, Submitter};

/// What the web server wants to see in the query.
const SIGNATURE: &str = "signedByNobodyElse";

pub fn trials(shared: &Arc<SharedCluster>) -> Vec<Trial> {
    let [latest, older] = VERSIONS;
    [(latest, Job::Java), (older, Job::Python)]
        .into_iter()
        .map(|(version, job)| {
            let name = format!("web::a_{}_job_at_signed_addresses_runs_on_{version}", job.name());
            shared.trial_with(&name, job, move |shared| run(shared, version, job))
        })
        .collect()
}

/// Nothing is on the submitting machine, so no staging server is there.
async fn run(shared: Arc<SharedCluster>, version: &'static str, job: Job) {
    let cluster = shared.cluster().await;
    let namespace = format!("web-{}", job.name());
    cluster.namespace(&namespace).await;
    let sight = Sight::of(cluster, &namespace);
    let web = Web::serve(cluster.jobs(version)).await;
    let settings = vec![
        ("spark.kubernetes.cloakroom.fetchRemote", "true".to_owned()),
        ("spark.kubernetes.initContainer.image", CLOAKROOM.to_owned()),
        // Spark then says all of its configuration in its log.
        ("spark.logConf", "true".to_owned()),
    ];
    let submission = Submission { submitter: Submitter::Cloakroom, version, job, namespace, settings };
    let told = submission.runs_to_its_end(cluster, |file| web.signed(file)).await;
    assert!(!told.contains(SIGNATURE), "{told}");
    sight.has_only_in_secret(SIGNATURE, "-init-secret").await;
    // By the init-container, and neither by Spark nor by the submitter.
    assert_eq!(web.given(), job.files());
}

/// A web server that gives files to whoever shows the signature.
struct Web {
    address: SocketAddr,
    given: Arc<Mutex<Vec<String>>>,
    serving: JoinHandle<()>,
}

impl Web {
    async fn serve(folder: PathBuf) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let given = Arc::new(Mutex::new(Vec::new()));
        let kept = Arc::clone(&given);
        let give = move |uri: Uri| {
            let name = uri.path().trim_start_matches('/').to_owned();
            let answer = if uri.query() == Some(&signature()) {
                kept.lock().unwrap().push(name.clone());
                std::fs::read(folder.join(name)).map_err(|_| StatusCode::NOT_FOUND)
            } else {
                Err(StatusCode::FORBIDDEN)
            };
            async { answer }
        };
        let router = Router::new().fallback(give);
        let serving = tokio::spawn(async { axum::serve(listener, router).await.unwrap() });
        Self { address, given, serving }
    }

    fn signed(&self, file: &str) -> String {
        format!("http://{}/{file}?{}", self.address, signature())
    }

    /// What was given so far, by name.
    fn given(&self) -> Vec<String> {
        let mut given = self.given.lock().unwrap().clone();
        given.sort();
        given
    }
}

impl Drop for Web {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

fn signature() -> String {
    format!("sig={SIGNATURE}")
}
