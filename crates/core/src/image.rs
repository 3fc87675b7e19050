//! Names of container images, by the grammar of registries
//! (<https://github.com/distribution/reference/blob/v0.6.0/reference.go>).

/// The longest name without tag and digest, in characters.
const LONGEST: usize = 255;
/// The longest tag, in characters.
const LONGEST_TAG: usize = 128;

/// Why no node can pull an image of this name, as a part of a sentence; `None` if one can.
pub fn fault(image: &str) -> Option<String> {
    if image.is_empty() {
        return Some("it is empty".to_owned());
    }
    if let Some(stranger) = image.chars().find(|c| !(c.is_ascii_alphanumeric() || "._-/:@+[]".contains(*c))) {
        let may_be_variable = if stranger == '$' { " (a variable that was not filled in?)" } else { "" };
        return Some(format!("“{stranger}” is not allowed in it{may_be_variable}"));
    }
    let (named, digest) =
        image.split_once('@').map_or((image, None), |(named, digest)| (named, Some(digest)));
    if digest.is_some_and(|digest| !is_digest(digest)) {
        return Some("the part behind @ is not a digest such as sha256:0123…, with 64 digits".to_owned());
    }
    // A colon before the last slash belongs to the registry's port.
    let last = named.rfind('/').map_or(0, |slash| slash + 1);
    let (name, tag) = match named[last..].split_once(':') {
        Some((_, tag)) => (&named[..named.len() - tag.len() - 1], Some(tag)),
        None => (named, None),
    };
    if tag.is_some_and(|tag| !is_tag(tag)) {
        return Some(format!(
            "the part behind the last colon is no tag, which has 1 to {LONGEST_TAG} letters, digits, _, . and -"
        ));
    }
    if name.len() > LONGEST {
        return Some(format!("it has more than {LONGEST} characters"));
    }
    let path = match name.split_once('/') {
        Some((registry, path)) if is_registry(registry) => path,
        _ => name,
    };
    if path.chars().any(|c| c.is_ascii_uppercase()) {
        return Some("it has capital letters behind the registry".to_owned());
    }
    let is_path = path.split('/').all(is_component);
    (!is_path).then(|| {
        "between its slashes there must be letters and digits, with single . and _ or with - in between"
            .to_owned()
    })
}

/// Whether the first part of a name is a registry and not the first part of a path.
fn is_registry(part: &str) -> bool {
    part.contains(['.', ':']) || part == "localhost" || part.chars().any(|c| c.is_ascii_uppercase())
}

fn is_digest(digest: &str) -> bool {
    /// Of the algorithms in use, SHA-256 has the shortest digest.
    const LEAST: usize = 64;
    digest.split_once(':').is_some_and(|(algorithm, hex)| {
        !algorithm.is_empty() && hex.len() >= LEAST && hex.bytes().all(|byte| byte.is_ascii_hexdigit())
    })
}

fn is_tag(tag: &str) -> bool {
    let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    (1..=LONGEST_TAG).contains(&tag.len())
        && tag.starts_with(is_word)
        && tag.chars().all(|c| is_word(c) || matches!(c, '.' | '-'))
}

/// Small letters and digits, separated by one `.`, one or two `_`, or any number of `-`.
fn is_component(part: &str) -> bool {
    let is_letter = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
    let is_separator = |run: &str| matches!(run, "." | "_" | "__") || run.bytes().all(|byte| byte == b'-');
    part.starts_with(is_letter)
        && part.ends_with(is_letter)
        && part.split(is_letter).filter(|run| !run.is_empty()).all(is_separator)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_registries_know_have_no_fault() {
        let digest = format!("busybox@sha256:{}", "0a".repeat(32));
        for image in [
            "spark",
            "apache/spark:4.3.0",
            "localhost/x",
            "localhost:5000/a/b-c__d.e:latest",
            "Registry.Example:443/team/x",
            "registry.example/x---y:V1_.-",
            "[fd00::1]:5000/x",
            &digest,
        ] {
            assert_eq!(fault(image), None, "{image}");
        }
    }

    #[test]
    fn names_that_no_node_can_pull_are_told_why() {
        for (image, why) in [
            ("${REGISTRY}/spark:4", "“$” is not allowed in it (a variable that was not filled in?)"),
            ("spark 4", "“ ” is not allowed in it"),
            ("https://registry.example/spark", "between its slashes"),
            ("apache/Spark", "capital letters"),
            ("SPARK", "capital letters"),
            ("spark:", "is no tag"),
            ("spark:-1", "is no tag"),
            ("spark@sha256:12", "is not a digest"),
            ("a//b", "between its slashes"),
            ("a/.b", "between its slashes"),
            ("a..b", "between its slashes"),
            ("a___b", "between its slashes"),
            (&"a".repeat(256), "more than 255"),
        ] {
            let fault = fault(image).unwrap();
            assert!(fault.contains(why), "{image}: {fault}");
        }
    }
}
