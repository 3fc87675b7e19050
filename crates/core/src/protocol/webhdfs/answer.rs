//! The JSON of answers.

use serde::Serialize;

/// The body of an answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub enum Answer {
    /// The folder is there.
    #[serde(rename = "boolean")]
    Made(bool),
    /// The file is there.
    FileStatus(FileStatus),
    /// An error.
    RemoteException(RemoteException),
}

/// The status of a file. Hadoop's client reads each of these fields.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct FileStatus {
    length: u64,
    access_time: i64,
    modification_time: i64,
    block_size: u64,
    children_num: u64,
    file_id: u64,
    owner: &'static str,
    group: &'static str,
    path_suffix: &'static str,
    permission: &'static str,
    replication: u64,
    storage_policy: u64,
    r#type: &'static str,
}

impl FileStatus {
    /// A file with so many bytes, written at this time in milliseconds since the Unix epoch.
    pub fn new(length: u64, written_at: i64) -> Self {
        Self {
            length,
            access_time: written_at,
            modification_time: written_at,
            block_size: 128 << 20,
            children_num: 0,
            file_id: 0,
            owner: "cloakroom",
            group: "cloakroom",
            path_suffix: "",
            permission: "644",
            replication: 1,
            storage_policy: 0,
            r#type: "FILE",
        }
    }
}

/// An error. Clients show the message.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct RemoteException {
    exception: &'static str,
    java_class_name: &'static str,
    message: String,
}

/// The exceptions of Hadoop that an error can be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exception {
    /// There is no such file.
    FileNotFound,
    /// A folder takes one file once.
    FileAlreadyExists,
    /// The request has no right.
    AccessControl,
    /// A client that is allowed to (`dfs.http.client.retry.policy.enabled`) tries again.
    Retriable,
    /// Any other error.
    Io,
}

impl Exception {
    /// The error with this message.
    pub fn with(self, message: impl Into<String>) -> Answer {
        let java_class_name = match self {
            Self::FileNotFound => "java.io.FileNotFoundException",
            Self::FileAlreadyExists => "org.apache.hadoop.fs.FileAlreadyExistsException",
            Self::AccessControl => "org.apache.hadoop.security.AccessControlException",
            Self::Retriable => "org.apache.hadoop.ipc.RetriableException",
            Self::Io => "java.io.IOException",
        };
        let exception = java_class_name.rsplit('.').next().unwrap_or_default();
        Answer::RemoteException(RemoteException { exception, java_class_name, message: message.into() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_those_of_hadoop() {
        let json = |answer: &Answer| serde_json::to_string(answer).unwrap();
        assert_eq!(json(&Answer::Made(true)), "{\"boolean\":true}");
        let status = serde_json::to_value(Answer::FileStatus(FileStatus::new(7, 9))).unwrap();
        let status = &status["FileStatus"];
        assert_eq!(
            (&status["length"], &status["type"], &status["fileId"]),
            (&7.into(), &"FILE".into(), &0.into())
        );
        let expected = "{\"RemoteException\":{\"exception\":\"AccessControlException\",\
             \"javaClassName\":\"org.apache.hadoop.security.AccessControlException\",\"message\":\"no “right”\"}}";
        assert_eq!(json(&Exception::AccessControl.with("no “right”")), expected);
    }
}
