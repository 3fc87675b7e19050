//! The use cases of submitting and of handing over, with a stager in memory: what is staged, and what becomes of it where
//! the rest fails.

use std::sync::Arc;

use cloakroom_submit::inputs::Local;
use cloakroom_submit::plan::external_submitter::operator::ApplicationFile;
use cloakroom_submit::run::{Ended, Failed, HandOver, HandedOver, Run, RunError, handed_over, planned};
use cloakroom_submit::{Log, Submission, follow};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::fake_stager::{FakeStager, IMAGE};
use crate::kept::Kept;
use crate::requests;
use crate::submitter::Submitter;
use cloakroom_testing::api_server::{FakeApiServer, Fault, NETWORK_POLICY, SECRET, Verb};
use cloakroom_testing::cluster::{CONFIG_MAP, NAMESPACE, POD, SERVICE, SPARK_APPLICATION};

const DEFAULT: &str = "default";
const STAGING: &str = "http://staging.example:10000";
const APPLICATION: &str = "apiVersion: sparkoperator.k8s.io/v1beta2\nkind: SparkApplication\n\
                           metadata: {name: words}\nspec: {mainApplicationFile: app.jar}\n";

/// A cluster, a stager, and a folder with an application in it.
struct TestRun {
    api_server: FakeApiServer,
    submitter: Submitter,
    stager: FakeStager,
    events: Arc<Kept>,
    log: Log,
    folder: TempDir,
}

impl TestRun {
    fn new() -> Self {
        let api_server = FakeApiServer::start();
        for kind in [SERVICE, CONFIG_MAP, SECRET, NETWORK_POLICY, SPARK_APPLICATION] {
            api_server.define(kind);
        }
        api_server.add(NAMESPACE, "", json!({"metadata": {"name": DEFAULT}}));
        let submitter = Submitter::new(&api_server);
        let events = Arc::new(Kept::default());
        let log = events.log();
        let (stager, folder) = (FakeStager::default(), tempfile::tempdir().unwrap());
        Self { api_server, submitter, stager, events, log, folder }
    }

    async fn submission(&self) -> Submission {
        let request = requests::application(self.folder.path(), STAGING);
        planned(&request, &Local, &self.stager, &requests::randomness(), &self.log).await.unwrap()
    }

    async fn submit(&self) -> Result<Ended, RunError> {
        let submission = self.submission().await;
        let (server, stop, intervals) =
            (&self.submitter.server, &self.submitter.stop, follow::FollowIntervals::default());
        let run = Run { server, inputs: &Local, stager: &self.stager, log: &self.log, stop, intervals };
        run.run(&submission).await
    }

    /// Hands the application over, with its file or without one. `take` sees the documents that are to be applied.
    async fn hand_over(
        &self,
        file: Option<&str>,
        take: impl FnOnce(&[Value]) -> Result<(), &'static str> + Send,
    ) -> Result<HandedOver, RunError> {
        let file = file.map(|text| ApplicationFile::parse("app.yaml", text, None).unwrap());
        let request = requests::external(self.folder.path(), STAGING, file);
        let randomness = requests::randomness();
        let external = handed_over(&request, &Local, &self.stager, &randomness, &self.log).await.unwrap();
        let (server, stop) = (Some(&self.submitter.server), &self.submitter.stop);
        let work = HandOver { server, inputs: &Local, stager: &self.stager, log: &self.log, stop };
        work.run(&external, |to_apply| Ok(take(to_apply)?)).await
    }

    fn objects(&self) -> Vec<String> {
        self.api_server.everything_in(DEFAULT)
    }

    fn assert_nothing_is_left(&self) {
        assert_eq!((self.objects(), self.stager.bundles()), (Vec::new(), Vec::new()));
    }

    /// Everything was staged, and is released again.
    fn assert_is_taken_back(&self) {
        self.assert_is_taken_back_by(&["released"]);
    }

    fn assert_is_taken_back_by(&self, ways: &[&str]) {
        assert_eq!(self.stager.ever_staged(), 2, "one bundle of jars, one of files");
        assert_eq!(self.stager.bundles(), [""; 0]);
        let taken_back = |how| json!({"event": "taken-back", "how": how, "may_leave_pod": false});
        let expected: Vec<Value> = ways.iter().map(taken_back).collect();
        assert_eq!(self.events.called("taken-back"), expected);
        assert_eq!(self.events.called("left"), [] as [Value; 0]);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_tickets_of_the_stager_reach_the_pod() {
    let test_run = TestRun::new();
    assert_eq!(test_run.submit().await.unwrap(), Ended::Deployed);
    assert_eq!(test_run.stager.bundles(), ["id-of-the-files", "id-of-the-jars"]);
    let objects = test_run.objects();
    let map = objects.iter().find_map(|name| name.strip_prefix("ConfigMap ")).unwrap();
    assert!(map.ends_with("-init-config"), "{objects:?}");
    let map = test_run.api_server.object(CONFIG_MAP, DEFAULT, map).unwrap();
    for id in test_run.stager.bundles() {
        assert!(map["data"].to_string().contains(&id), "{map}");
    }
    let pod = objects.iter().find_map(|name| name.strip_prefix("Pod ")).unwrap();
    let pod = test_run.api_server.object(POD, DEFAULT, pod).unwrap();
    assert_eq!(pod["spec"]["initContainers"][0]["image"], IMAGE);
}

#[tokio::test(flavor = "multi_thread")]
async fn bundles_are_released_if_the_application_cannot_be_made() {
    // The first call is the dry run.
    for (kind, skip) in [(POD, 1), (SECRET, 0)] {
        let test_run = TestRun::new();
        let verb = if kind == POD { Verb::Create } else { Verb::Patch };
        test_run.api_server.fail_some(kind, verb, skip, usize::MAX, Fault::Status(422));
        assert_eq!(test_run.submit().await.unwrap_err().kind(), Failed::Creating);
        test_run.assert_is_taken_back();
        test_run.assert_nothing_is_left();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_staged_if_the_dry_run_is_refused() {
    let test_run = TestRun::new();
    test_run.api_server.fail_for(POD, Verb::Create, Fault::Status(422));
    assert_eq!(test_run.submit().await.unwrap_err().kind(), Failed::Creating);
    assert_eq!(test_run.stager.ever_staged(), 0);
    assert_eq!(test_run.events.called("taken-back"), [] as [Value; 0]);
    test_run.assert_nothing_is_left();
}

#[tokio::test(flavor = "multi_thread")]
async fn it_is_told_at_once_that_an_upload_is_to_stop() {
    let mut test_run = TestRun::new();
    test_run.stager.is_slow = true;
    let stopping = async {
        test_run.stager.begun.cancelled().await;
        test_run.submitter.stop.cancel();
    };
    let (ended, ()) = tokio::join!(test_run.submit(), stopping);
    assert_eq!(ended.unwrap_err().kind(), Failed::Stopped);
    let stopping = json!({"event": "stopping", "under_way": "files"});
    assert_eq!(test_run.events.called("stopping"), [stopping]);
    test_run.assert_nothing_is_left();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_bundle_that_stays_is_told_as_data() {
    let mut test_run = TestRun::new();
    test_run.stager.keeps = true;
    test_run.api_server.fail_some(POD, Verb::Create, 1, usize::MAX, Fault::Status(422));
    assert_eq!(test_run.submit().await.unwrap_err().kind(), Failed::Creating);
    let left = |what: &str| {
        let id = format!("id-of-the-{what}");
        json!({"event": "left", "kind": "staged", "what": what, "resource_id": id, "server": STAGING, "why": "it is kept"})
    };
    assert_eq!(test_run.events.called("left"), [left("jars"), left("files")]);
    assert_eq!(test_run.events.called("taken-back"), [] as [Value; 0]);
}

#[tokio::test(flavor = "multi_thread")]
async fn objects_are_made_before_the_rest_is_handed_over() {
    let test_run = TestRun::new();
    let take = |to_apply: &[Value]| {
        assert_eq!(to_apply, [] as [Value; 0], "everything is made");
        assert_eq!((test_run.objects().len(), test_run.stager.bundles().len()), (2, 2));
        Ok(())
    };
    let handed_over = test_run.hand_over(None, take).await.unwrap();
    assert!(!handed_over.is_owned && handed_over.expires_at.is_some());
    assert_eq!((test_run.objects().len(), test_run.stager.bundles().len()), (2, 2));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_handed_over_is_taken_back() {
    let test_run = TestRun::new();
    let error = test_run.hand_over(None, |_| Err("no paper")).await.unwrap_err();
    assert_eq!((error.kind(), error.to_string().as_str()), (Failed::HandingOver, "no paper"));
    test_run.assert_is_taken_back_by(&["deleted", "released"]);
    test_run.assert_nothing_is_left();
}

#[tokio::test(flavor = "multi_thread")]
async fn bundles_are_released_although_an_object_cannot_be_deleted() {
    let test_run = TestRun::new();
    test_run.api_server.fail_for(SECRET, Verb::Delete, Fault::Status(403));
    let error = test_run.hand_over(None, |_| Err("no paper")).await.unwrap_err().to_string();
    assert!(error.starts_with("not everything was taken back (still there: secret app-"), "{error}");
    test_run.assert_is_taken_back();
    assert_eq!(test_run.objects().len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_application_file_is_handed_over_with_objects_and_nothing_is_made() {
    for is_there in [false, true] {
        let test_run = TestRun::new();
        if is_there {
            test_run.api_server.add(SPARK_APPLICATION, DEFAULT, json!({"metadata": {"name": "words"}}));
        }
        let before = test_run.objects();
        let take = |to_apply: &[Value]| {
            let kinds: Vec<_> = to_apply.iter().map(|document| document["kind"].as_str().unwrap()).collect();
            assert_eq!(kinds, ["ConfigMap", "Secret", "SparkApplication"]);
            assert_eq!(to_apply[0]["metadata"].get("ownerReferences").is_some(), is_there);
            Err("no paper")
        };
        let error = test_run.hand_over(Some(APPLICATION), take).await.unwrap_err();
        assert_eq!(error.kind(), Failed::HandingOver);
        test_run.assert_is_taken_back();
        assert_eq!(test_run.objects(), before);
        let handed_over = test_run.hand_over(Some(APPLICATION), |_| Ok(())).await.unwrap();
        assert_eq!((handed_over.is_owned, test_run.stager.bundles().len()), (is_there, 2));
        assert_eq!(test_run.objects(), before);
    }
}
