//! Which resource a path is about.

/// The parts of a path such as `/api/v1/namespaces/default/pods/spark-pi-driver`, with or without a prefix before `/api`.
#[derive(Debug, Default, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct ResourcePath {
    /// Empty for the core group.
    pub group: String,
    pub namespace: Option<String>,
    pub resource: String,
    pub name: Option<String>,
}

impl ResourcePath {
    pub fn parse(path: &str) -> Self {
        let mut segments = path.split('/').skip_while(|segment| *segment != "api" && *segment != "apis");
        let group = match segments.next() {
            Some("apis") => segments.next().unwrap_or_default().to_owned(),
            _ => String::new(),
        };
        let mut rest: Vec<_> = segments.skip(1).filter(|segment| !segment.is_empty()).collect();
        let mut namespace = None;
        if rest.len() > 2 && rest[0] == "namespaces" {
            namespace = Some(rest[1].to_owned());
            rest.drain(..2);
        }
        Self {
            group,
            namespace,
            resource: rest.first().copied().unwrap_or_default().to_owned(),
            name: rest
                .get(1)
                .map(|name| percent_encoding::percent_decode_str(name).decode_utf8_lossy().into()),
        }
    }
}
