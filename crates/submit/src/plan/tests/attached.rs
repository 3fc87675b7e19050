//! Inputs that have only what came with a request. A whole application is planned from files that this machine does not
//! have.

use std::collections::BTreeMap;
use std::io::{self, Cursor, Read};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use jiff::Timestamp;
use rand::SeedableRng as _;
use rand::rngs::StdRng;
use tokio_util::sync::CancellationToken;

use super::of_kind;
use crate::file_copy::Copies;
use crate::inputs::Inputs;
use crate::plan::{
    Asking, Facts, Kind, Needs, PathFacts, PlanError, Request, Submitter, Uncollected, Unread,
};
use crate::run::planned;
use crate::stage::NamedServer;
use crate::{Log, Randomness, Submission};
use cloakroom_reach::ServerChoice;
use cloakroom_spark::arguments::{CommandLine, Defaults, Settings};
use cloakroom_spark::{Properties, SubmitArguments};
use cloakroom_transfer::bundle::{FileStamp, PackPlan, Source, Sources, pack};

/// Files by their paths. There are no other files, and nothing on the web.
#[derive(Debug, Clone, Default)]
pub(super) struct Attached {
    files: BTreeMap<PathBuf, Vec<u8>>,
    /// The needs of each round, in order.
    pub asked: Arc<Mutex<Vec<Needs>>>,
}

impl Attached {
    pub fn with(mut self, path: &str, bytes: impl AsRef<[u8]>) -> Self {
        self.files.insert(PathBuf::from(path), bytes.as_ref().to_vec());
        self
    }

    fn read(&self, path: &Path) -> io::Result<&Vec<u8>> {
        self.files.get(path).ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    fn place(&self, path: &Path) -> PathFacts {
        let kind = self.read(path).map(|bytes| Kind::File {
            size_bytes: bytes.len() as u64,
            modified: None,
            is_zip: Ok(true),
        });
        PathFacts { is_missing: kind.is_err(), kind: kind.map_err(Arc::new) }
    }

    fn folder(&self, folder: &Path) -> Vec<(PathBuf, u64)> {
        let files = self.files.iter().filter(|(path, _)| path.parent() == Some(folder));
        files.map(|(path, bytes)| (path.clone(), bytes.len() as u64)).collect()
    }
}

#[async_trait]
impl Inputs for Attached {
    async fn collect(&self, needs: &Needs) -> Result<Facts, Uncollected> {
        self.asked.lock().unwrap().push(needs.clone());
        let content = |path: &Path| self.read(path).cloned().map_err(Unread::new);
        Ok(Facts {
            contents: needs.contents.iter().map(|path| (path.clone(), content(path))).collect(),
            places: needs.places.iter().map(|path| (path.clone(), self.place(path))).collect(),
            matches: needs.patterns.iter().map(|path| (path.clone(), Ok(Vec::new()))).collect(),
            folders: needs.folders.iter().map(|path| (path.clone(), Ok(self.folder(path)))).collect(),
            web: needs.web.iter().map(|address| (address.clone(), Err("no web here".to_owned()))).collect(),
            main_classes: BTreeMap::new(),
        })
    }

    fn sources(&self) -> Arc<dyn Sources> {
        Arc::new(self.clone())
    }
}

impl Sources for Attached {
    fn open(&self, path: &Path) -> io::Result<Box<dyn Source>> {
        Ok(Box::new(Opened(Cursor::new(self.read(path)?.clone()))))
    }
}

struct Opened(Cursor<Vec<u8>>);

impl Read for Opened {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.0.read(buffer)
    }
}

impl Source for Opened {
    fn stamp(&self) -> io::Result<FileStamp> {
        Ok(FileStamp { size_bytes: self.0.get_ref().len() as u64, modified: None })
    }
}

/// The arguments of a command line in a folder that this machine does not have.
pub(super) async fn submitted(attached: &Attached, words: &[&str]) -> Result<Submission, PlanError> {
    let basics = ["--master", "k8s://https://h:1", "--deploy-mode", "cluster", "--class", "org.x.Y"];
    let words = basics.iter().chain(words).map(|word| (*word).to_owned());
    let line = CommandLine::parse(words).unwrap();
    let submitter = Submitter {
        variables: BTreeMap::from([("SPARK_CONF_DIR".to_owned(), "conf".to_owned())]),
        system: BTreeMap::new(),
        user: Ok("me".to_owned()),
        working_folder: PathBuf::from("/nowhere"),
    };
    let file = PathBuf::from("/nowhere/conf/spark-defaults.conf");
    let text = attached.read(&file).ok().map(|bytes| String::from_utf8_lossy(bytes).into_owned());
    let files = text.map(|text| Properties::parse(&file, &text).unwrap()).into_iter().collect();
    let surroundings = submitter.surroundings();
    let mut conf = Settings::resolve(&line, &Defaults { files, surroundings }).conf;
    ServerChoice::complete(&mut conf, surroundings.variables);
    let arguments = SubmitArguments::new(&line, conf, surroundings).unwrap();
    let request = Request { arguments, submitter, asking: Asking::Allowed { attempts: None } };
    let randomness = Randomness::new(Timestamp::UNIX_EPOCH, &mut StdRng::seed_from_u64(1));
    planned(&request, attached, &NamedServer::BY_ADDRESS, &randomness, &Log::new(|_| {})).await
}

fn packed(plan: &PackPlan, attached: &Attached) -> Vec<u8> {
    pack(plan, attached, Vec::new(), &mut |_| {}).unwrap()
}

// Invariant: a request is planned from what came with it, and only what is used is read.
#[tokio::test]
async fn a_whole_application_is_planned_and_packed_of_what_came_with_a_request() {
    let attached = Attached::default()
        .with(
            "/nowhere/conf/spark-defaults.conf",
            "spark.kubernetes.container.image repo.example/spark:4\n\
             spark.kubernetes.resourceStagingServer.uri http://staging.example:10000\n\
             spark.kubernetes.initContainer.image repo.example/cloakroom:1\n\
             spark.kubernetes.driver.podTemplateFile pod.yaml\n\
             spark.kubernetes.cloakroom.uploadTokenFile token\n\
             spark.kubernetes.kerberos.krb5.path krb5.conf",
        )
        .with("/nowhere/conf/log4j2.properties", "level = warn")
        .with("/nowhere/pod.yaml", "metadata: {labels: {team: blue}}\nspec: {restartPolicy: Never}\n")
        .with("/nowhere/token", "a-token-that-is-long-enough\n")
        .with("/nowhere/krb5.conf", "[libdefaults]")
        .with("/nowhere/app.jar", "app")
        .with("/nowhere/dep.jar", "dep")
        .with("/nowhere/a.txt", "text");
    let words = ["--jars", "dep.jar", "--files", "a.txt#b.txt", "app.jar"];
    let planned = submitted(&attached, &words).await.unwrap();
    assert_eq!(planned.pod["metadata"]["labels"]["team"], "blue");
    let texts = planned.after_pod.iter().map(ToString::to_string).collect::<String>();
    assert!(texts.contains("level = warn") && texts.contains("[libdefaults]"), "{texts}");
    let staging = planned.staging.as_ref().unwrap();
    assert!(staging.token.is_some());
    let (jars, files) = (staging.jars.as_ref().unwrap(), staging.files.as_ref().unwrap());
    let names = |plan: &PackPlan| plan.files().iter().map(|file| file.name.clone()).collect::<Vec<_>>();
    assert_eq!(
        (names(jars), names(files)),
        (vec!["dep.jar".into(), "app.jar".into()], vec!["b.txt".to_owned()])
    );
    assert!(!packed(jars, &attached).is_empty() && !packed(files, &attached).is_empty());
    assert!(planned == submitted(&attached, &words).await.unwrap(), "another plan of the same");

    let missing = submitted(&attached, &["--files", "/etc/passwd", "app.jar"]).await.err().unwrap();
    assert!(missing.to_string().contains("/etc/passwd does not exist on this machine"), "{missing}");
}

#[tokio::test]
async fn small_files_and_copies_come_out_of_the_request_too() {
    let shared = tempfile::tempdir().unwrap();
    let attached = Attached::default().with("/nowhere/main.py", "print()").with("/nowhere/a.txt", "text");
    let image = ["-c", "spark.kubernetes.container.image=repo.example/spark:4"];
    let small = [&image[..], &["--files", "a.txt", "main.py"]].concat();
    let planned = submitted(&attached, &small).await.unwrap();
    let data = &of_kind(&planned, "Secret")["data"];
    assert_eq!((&data["main.py"], &data["a.txt"]), (&"cHJpbnQoKQ==".into(), &"dGV4dA==".into()));

    let path = format!("spark.kubernetes.file.upload.path=file://{}", shared.path().display());
    let copied = submitted(&attached, &[&["-c", &path][..], &small].concat()).await.unwrap();
    let mut made = Copies::default();
    for upload in &copied.uploads {
        made.add(upload, &*attached.sources(), &CancellationToken::new()).unwrap();
        assert_eq!(&std::fs::read(&upload.to).unwrap(), attached.read(&upload.from).unwrap());
    }
    assert_eq!(copied.uploads.len(), 2);
}
