//! WebHDFS, as far as Spark's own jars speak it to `spark.kubernetes.file.upload.path`
//! (<https://hadoop.apache.org/docs/stable/hadoop-project-dist/hadoop-hdfs/WebHDFS.html>). Spark makes a folder with a random
//! name for each local file; the driver reads the files from there.

mod answer;
mod key;
mod operation;
mod place;

pub use answer::{Answer, Exception, FileStatus};
pub use key::{KeyLine, KeyLineError, UploadKey};
pub use operation::{Get, Operation, OperationError, Put};
pub use place::{Place, PlaceError, shown_path};

/// How all paths begin. A client can put nothing before it.
pub const ROOT: &str = "/webhdfs/v1";

/// Whether this is a path of WebHDFS, perhaps with further slashes before it. Hadoop's client gives up on any answer with a
/// `Content-Type` there.
pub fn is_below_root(path: &str) -> bool {
    path.trim_start_matches('/')
        .strip_prefix(&ROOT[1..])
        .is_some_and(|below| below.is_empty() || below.starts_with('/'))
}
