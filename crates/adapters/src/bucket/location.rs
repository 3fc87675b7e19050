//! Where a store is: `s3://BUCKET/PREFIX`, the same with `az` and `gs`, and `webhdfs://NAMENODES/PREFIX`.

use std::fmt::{self, Display, Formatter};

use object_store::path::Path;

/// Which protocol a bucket speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// S3, and stores that speak its protocol.
    S3,
    /// Containers of Azure Blob Storage.
    Azure,
    /// Google Cloud Storage.
    Google,
    /// Folders of HDFS, by the HTTP interface of its namenodes.
    Hdfs {
        /// Whether that is spoken to with TLS.
        is_tls: bool,
    },
}

/// A bucket, and the prefix of all objects of the store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Location {
    kind: Kind,
    bucket: String,
    /// Parts between slashes.
    prefix: Vec<String>,
}

/// A text that is no location. It is not shown, because it may have a key in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum LocationError {
    /// No kind of store has this scheme.
    #[error(
        "it must begin with s3://, az://, gs://, webhdfs:// or swebhdfs://; HDFS is webhdfs://NAMENODE:9870/FOLDER"
    )]
    Scheme,
    /// There is a user, a password or a query.
    #[error(
        "a user, a password or a query does not belong into it (it is visible in the list of processes): credentials \
         come from the environment"
    )]
    Credentials,
    /// The name is not one of a bucket.
    #[error(
        "the name of a bucket is 3 to 63 lower-case letters, digits and hyphens, with dots except in az://, and _ in gs://"
    )]
    Bucket,
    /// The hosts are not those of namenodes.
    #[error(
        "the host of webhdfs:// is the name or the IPv4 address of a namenode, such as namenode.example.com:9870, or of \
         several with commas"
    )]
    Namenodes,
    /// The prefix has a part that would not be the same everywhere.
    #[error("a part of a prefix is letters, digits and any of - _ . = and neither empty nor . nor ..")]
    Prefix,
}

impl Kind {
    const ALL: [Self; 5] =
        [Self::S3, Self::Azure, Self::Google, Self::Hdfs { is_tls: false }, Self::Hdfs { is_tls: true }];

    /// How its locations begin.
    pub fn scheme(self) -> &'static str {
        match self {
            Self::S3 => "s3://",
            Self::Azure => "az://",
            Self::Google => "gs://",
            Self::Hdfs { is_tls: false } => "webhdfs://",
            Self::Hdfs { is_tls: true } => "swebhdfs://",
        }
    }

    /// How long the name of a bucket may be. At Google each label is no longer than usual.
    fn longest(self) -> usize {
        if self == Self::Google { 222 } else { 63 }
    }

    /// The characters that are allowed in the name of a bucket, besides letters, digits and hyphens.
    fn marks(self) -> &'static [u8] {
        match self {
            Self::S3 => b".",
            Self::Google => b"._",
            Self::Azure | Self::Hdfs { .. } => b"",
        }
    }
}

impl Location {
    /// Reads `s3://BUCKET` or `s3://BUCKET/PREFIX`, or the same with another scheme.
    pub fn parse(text: &str) -> Result<Self, LocationError> {
        let of_kind = |kind: Kind| text.strip_prefix(kind.scheme()).map(|rest| (kind, rest));
        let (kind, rest) = Kind::ALL.into_iter().find_map(of_kind).ok_or(LocationError::Scheme)?;
        if rest.contains(['@', '?', '#']) {
            return Err(LocationError::Credentials);
        }
        let (bucket, prefix) = rest.split_once('/').unwrap_or((rest, ""));
        if !is_bucket(bucket, kind) {
            return Err(match kind {
                Kind::Hdfs { .. } => LocationError::Namenodes,
                _ => LocationError::Bucket,
            });
        }
        let parts = match prefix.strip_suffix('/').unwrap_or(prefix) {
            "" if prefix.is_empty() => Vec::new(),
            prefix => prefix.split('/').map(str::to_owned).collect(),
        };
        if !parts.iter().all(|part| is_part(part)) {
            return Err(LocationError::Prefix);
        }
        Ok(Self { kind, bucket: bucket.to_owned(), prefix: parts })
    }

    /// Which protocol the bucket speaks.
    pub(super) fn kind(&self) -> Kind {
        self.kind
    }

    /// The name of the bucket, or the hosts of the namenodes.
    pub fn bucket(&self) -> &str {
        &self.bucket
    }

    /// The prefix of all blobs.
    pub(super) fn blobs(&self) -> Path {
        self.path("blobs")
    }

    /// The object of the stamp.
    pub(super) fn stamp(&self) -> Path {
        self.path("stamp")
    }

    /// The prefix of all copies of the ledger.
    pub(super) fn copies(&self) -> Path {
        self.path("ledger")
    }

    /// The object that only keeps room.
    pub(super) fn reserve(&self) -> Path {
        self.path("reserve")
    }

    /// The prefix of all groups of the log.
    pub(super) fn log(&self) -> Path {
        self.path("log")
    }

    /// An object that is there for a moment, to try the store.
    pub(super) fn probe(&self, number: u64) -> Path {
        self.path(&format!("probe-{number:016x}"))
    }

    /// An object, or a folder, directly below the prefix.
    pub(super) fn path(&self, last: &str) -> Path {
        self.prefix.iter().map(String::as_str).chain([last]).collect()
    }

    /// An object, as messages name it.
    pub(super) fn shown(&self, path: &Path) -> String {
        format!("{}{}/{path}", self.kind.scheme(), self.bucket)
    }
}

impl Display for Location {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.kind.scheme(), self.bucket)?;
        self.prefix.iter().try_for_each(|part| write!(f, "/{part}"))
    }
}

fn is_bucket(name: &str, kind: Kind) -> bool {
    if let Kind::Hdfs { .. } = kind {
        return name.split(',').all(is_namenode);
    }
    let is_inner = |byte: u8| {
        byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-' || kind.marks().contains(&byte)
    };
    let is_outer = |byte: Option<&u8>| byte.is_some_and(u8::is_ascii_alphanumeric);
    let bytes = name.as_bytes();
    (3..=kind.longest()).contains(&bytes.len())
        && bytes.iter().copied().all(is_inner)
        && is_outer(bytes.first())
        && is_outer(bytes.last())
}

/// Whether it is a host, or a host and a port.
fn is_namenode(text: &str) -> bool {
    let (host, port) = text.split_once(':').unwrap_or((text, "1"));
    let is_of_a_host = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    !host.is_empty() && host.bytes().all(is_of_a_host) && port.parse().is_ok_and(|port: u16| port > 0)
}

fn is_part(part: &str) -> bool {
    let is_usual = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.=".contains(&byte);
    !["", ".", ".."].contains(&part) && part.bytes().all(is_usual)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_location_is_a_bucket_and_perhaps_a_prefix() {
        for (text, shown, blobs) in [
            ("s3://team", "s3://team", "blobs"),
            ("s3://team/", "s3://team", "blobs"),
            ("s3://my.team-1/a/B_c=d.e/", "s3://my.team-1/a/B_c=d.e", "a/B_c=d.e/blobs"),
            ("az://team/a", "az://team/a", "a/blobs"),
            ("gs://my_team.example/a", "gs://my_team.example/a", "a/blobs"),
            ("webhdfs://one:9870,two.example.com/a/b", "webhdfs://one:9870,two.example.com/a/b", "a/b/blobs"),
            ("swebhdfs://N_1/a", "swebhdfs://N_1/a", "a/blobs"),
        ] {
            let location = Location::parse(text).unwrap();
            assert_eq!((location.to_string().as_str(), location.blobs().as_ref()), (shown, blobs));
        }
    }

    #[test]
    fn what_is_wrong_is_said_without_the_text() {
        use LocationError::{Bucket, Credentials, Namenodes, Prefix, Scheme};
        for (text, expected) in [
            ("", Scheme),
            ("team/prefix", Scheme),
            ("S3://team", Scheme),
            ("s3://AKIAEXAMPLE:SECRET@team/prefix", Credentials),
            ("s3://team/prefix?X-Amz-Signature=SECRET", Credentials),
            ("s3://team/prefix#SECRET", Credentials),
            ("s3://", Bucket),
            ("s3:///prefix", Bucket),
            ("s3://ab", Bucket),
            ("s3://Team", Bucket),
            ("s3://-team", Bucket),
            ("s3://team:9000/prefix", Bucket),
            ("s3://my_team", Bucket),
            ("az://my.team", Bucket),
            ("hdfs://namenode:8020/a", Scheme),
            ("webhdfs:///a", Namenodes),
            ("webhdfs://one:,/a", Namenodes),
            ("webhdfs://one,,two/a", Namenodes),
            ("webhdfs://one:98700/a", Namenodes),
            ("webhdfs://one:1:2/a", Namenodes),
            ("webhdfs://ann:SECRET@one/a", Credentials),
            ("s3://team/a//b", Prefix),
            ("s3://team/../b", Prefix),
            ("s3://team//", Prefix),
            ("s3://team/a b", Prefix),
            ("s3://team/%61", Prefix),
        ] {
            let error = Location::parse(text).unwrap_err();
            assert_eq!(error, expected, "{text}");
            assert!(!error.to_string().contains("SECRET") && !error.to_string().contains("AKIA"));
        }
    }
}
