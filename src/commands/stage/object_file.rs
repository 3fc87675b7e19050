//! The file of `-f`: what an application or a pod is made from.

use std::io::Read as _;
use std::path::Path;

use anyhow::Context as _;

/// The path that means stdin.
const STDIN: &str = "-";

/// Reads the file. Returns its name for messages, and its text.
pub fn read(path: &Path) -> anyhow::Result<(String, String)> {
    if path == Path::new(STDIN) {
        let mut text = String::new();
        std::io::stdin().read_to_string(&mut text).context("cannot read stdin (-f -)")?;
        return Ok(("stdin".to_owned(), text));
    }
    let called = path.display().to_string();
    let text = std::fs::read_to_string(path).with_context(|| format!("cannot read {called} (-f)"))?;
    Ok((called, text))
}
