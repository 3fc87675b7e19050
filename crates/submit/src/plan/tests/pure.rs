//! A plan of facts that no machine has.

use std::path::PathBuf;
use std::sync::Arc;

use jiff::Timestamp;
use rand::SeedableRng as _;
use rand::rngs::StdRng;

use super::bed::Bed;
use crate::Drawn;
use crate::plan::{Facts, Kind, Place, needs, plan};

#[test]
fn the_same_request_facts_and_draws_make_the_same_plan_without_any_file() {
    let request = Bed::new()
        .with("spark.files", "/nowhere/a.txt")
        .with("spark.kubernetes.driver.podTemplateFile", "https://web.example/pod.yaml")
        .request();
    let file = PathBuf::from("/nowhere/a.txt");
    let needs = needs(&request).unwrap();
    assert!(needs.places.contains(&file));
    let drawn = Drawn::new(Timestamp::UNIX_EPOCH, &mut StdRng::seed_from_u64(1));
    let kind = Ok(Kind::File { size_bytes: 2, modified: None, opened: Ok(()) });
    let mut facts = Facts::default();
    facts.places.insert(file.clone(), Place { is_missing: false, kind });
    facts.contents.insert(file.clone(), Ok(b"hi".to_vec()));
    let template = b"metadata:\n  labels:\n    team: blue\nspec:\n  restartPolicy: Never\n".to_vec();
    facts.web.extend(needs.web.into_iter().map(|address| (address, Ok(template.clone()))));
    let planned = plan(&request, &facts, &drawn).unwrap();
    assert_eq!(planned.pod["metadata"]["labels"]["team"], "blue");
    assert!(planned == plan(&request, &facts, &drawn).unwrap(), "another plan of the same");

    let gone = Err(Arc::new(std::io::ErrorKind::PermissionDenied.into()));
    facts.places.insert(file, Place { is_missing: false, kind: gone });
    let refused = plan(&request, &facts, &drawn).err().unwrap().to_string();
    assert!(refused.contains("/nowhere/a.txt may not be read by you"), "{refused}");
    let unknown = plan(&request, &Facts::default(), &drawn).err().unwrap().to_string();
    assert!(unknown.contains("it was not collected"), "{unknown}");
}
