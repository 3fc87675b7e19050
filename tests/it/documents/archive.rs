//! The pages of a release's archive link to what is in the archive.

use std::path::{Component, Path, PathBuf};

use super::markdown::Page;

/// Where the script says what goes into the archive.
const SCRIPT: &str = "packaging/release";

/// Files and folders of the archive, by the commands of the script that copy them.
pub fn parts(script: &str) -> Vec<PathBuf> {
    let copied = |line: &str| {
        let line = line.trim();
        let files = line.strip_prefix("install -m 0644 ").or_else(|| line.strip_prefix("cp -R "))?;
        Some(files.strip_suffix(" \"$tree\"")?.split(' ').map(PathBuf::from).collect::<Vec<_>>())
    };
    let parts: Vec<_> = script.lines().filter_map(copied).flatten().collect();
    assert!(parts.len() > 4, "{SCRIPT} is read wrong: {parts:?}");
    parts
}

/// Links of a page that is in the archive to what is not.
pub fn about(page: &Page, repository: &Path, parts: &[PathBuf]) -> Vec<String> {
    let is_there = |file: &Path| parts.iter().any(|part| file.starts_with(part));
    let own = page.path().strip_prefix(repository).unwrap_or(page.path());
    let targets = page.links().into_iter().filter(|target| !target.contains("://"));
    let files = targets.filter(|target| !target.starts_with('#') && is_there(own));
    let outside = files.filter(|target| {
        let path = target.split('#').next().unwrap_or_default();
        !is_there(&plain(&own.with_file_name("").join(path)))
    });
    outside.map(|target| page.complain(format!("{target} is not in the archive of a release"))).collect()
}

/// Without `..`.
fn plain(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => {
                plain.pop();
            }
            part => plain.push(part),
        }
    }
    plain
}
