//! Tests of which files `stage --for` reads.

use std::collections::BTreeMap;

use super::*;
use crate::inputs::read_here;
use crate::plan::{FileKey, How, file_keys};
use jiff::Timestamp;
use rand::SeedableRng as _;
use rand::rngs::StdRng;

const MISSING: &str = "/nowhere/missing";

/// A request with a jar that travels, a server that it travels to, and the one key.
fn request(folder: &tempfile::TempDir, key: &str) -> ExternalRequest {
    let jar = folder.path().join("app.jar");
    std::fs::write(&jar, "").unwrap();
    let mut conf = SparkConf::default();
    for (key, value) in [
        (keys::SERVER_URI.name(), "https://staging.example:10000"),
        (keys::INIT_CONTAINER_IMAGE.name(), "repo.example/cloakroom:1"),
        (keys::TLS_ENABLED.name(), "true"),
        (keys::INTERNAL_TLS_ENABLED.name(), "true"),
        (key, MISSING),
    ] {
        conf.set(key, value, Origin::Conf);
    }
    ExternalRequest {
        conf,
        application: Some(MainResource::Java(jar.display().to_string())),
        name: "app".to_owned(),
        owner: None,
        file: None,
        ttl: None,
        unused_timeout: None,
        names_containers: false,
        submitter: Submitter {
            system: BTreeMap::new(),
            variables: BTreeMap::new(),
            user: Ok(String::new()),
            working_folder: PathBuf::from("/"),
        },
        asking: Asking::Preview,
    }
}

fn handed_over(request: &ExternalRequest, randomness: &Randomness) -> Result<ExternalSubmission, PlanError> {
    let mut facts = read_here(&needs(request)?);
    let begun = Begun::new(request, &facts, randomness)?;
    facts.append(read_here(&begun.needs(&facts)));
    hand_over(begun.gather(&facts)?, None)
}

#[test]
fn an_image_that_no_node_can_pull_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let randomness = Randomness::new(Timestamp::UNIX_EPOCH, &mut StdRng::seed_from_u64(1));
    let request = request(&folder, keys::INIT_CONTAINER_IMAGE.name());
    let refused = handed_over(&request, &randomness).err().unwrap().to_string();
    assert!(refused.contains("no node can pull an image of this name"), "{refused}");
}

#[test]
fn what_is_collected_is_what_is_read() {
    let folder = tempfile::tempdir().unwrap();
    let randomness = Randomness::new(Timestamp::UNIX_EPOCH, &mut StdRng::seed_from_u64(1));
    for FileKey { name: key, how, .. } in file_keys() {
        let is_listed = READ_KEYS.contains(&key);
        if matches!(how, How::Elsewhere(_)) {
            assert!(!is_listed, "{key} is read elsewhere");
            continue;
        }
        let request = request(&folder, key);
        let refused = handed_over(&request, &randomness).err();
        let problem = refused.map(|error| error.to_string()).unwrap_or_default();
        assert!(!problem.contains("it was not collected"), "{key}: {problem}: add it to READ_KEYS");
        assert_eq!(problem.contains(key), is_listed, "{key}: “{problem}”");
    }
    let is_known = |key: &str| file_keys().any(|known| known.name == key);
    assert!(READ_KEYS.iter().all(|key| is_known(key)), "a key that names no file");
}
