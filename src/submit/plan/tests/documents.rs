use std::path::{Path, PathBuf};

/// Keys that are asked for under names that the page has, or that say nothing to people.
const NOT_FOR_PEOPLE: [&str; 3] = [
    "spark.yarn.driver.memoryOverhead",
    "spark.kubernetes.executor.hadoopConfigMapName",
    "spark.driver.host",
];

fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() && path.file_name().unwrap() != "tests" {
            sources(&path, found);
        } else if path.extension().is_some_and(|it| it == "rs") {
            found.push(path);
        }
    }
}

/// The keys of the constants in one source.
fn keys(text: &str) -> impl Iterator<Item = &str> {
    let product = text.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default();
    let constants = product.split("const ").skip(1).filter_map(|rest| rest.split(';').next());
    constants
        .flat_map(|constant| constant.split('"').skip(1).step_by(2))
        .filter(|text| text.starts_with("spark."))
}

#[test]
fn every_key_that_is_asked_for_is_in_the_page_about_submitting() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let page = std::fs::read_to_string(root.join("docs/submit.md")).unwrap();
    let mut files = Vec::new();
    sources(&root.join("src/submit/plan"), &mut files);
    let texts: Vec<String> = files.iter().map(|path| std::fs::read_to_string(path).unwrap()).collect();
    let keys: Vec<&str> = texts.iter().flat_map(|text| keys(text)).collect();
    assert!(keys.len() > 40, "the keys were not found: {keys:?}");
    let missing: Vec<_> =
        keys.iter().filter(|key| !NOT_FOR_PEOPLE.contains(key) && !page.contains(**key)).collect();
    assert!(missing.is_empty(), "not in docs/submit.md: {missing:?}");
}
