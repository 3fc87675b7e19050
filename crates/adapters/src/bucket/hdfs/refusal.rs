//! How the nodes of HDFS refuse: nearly all errors have one status, so the exception tells them apart.

use hyper::http::StatusCode;
use serde_json::Value;

use super::super::failure::{CallTrouble, Reason};
use super::super::refusal::{Codes, Meaning, StoreRefusal, word};

pub(super) const CODES: Codes =
    Codes { meanings: &[(Meaning::AbsentObject, &["FileNotFoundException"])], advice: &[] };

/// The code of a namenode that another one should be asked in place of.
const STANDBY: &str = "StandbyException";

/// How many characters of a message are shown.
const LONGEST_MESSAGE: usize = 300;

const NO_NODE: &str = "this is not how a node of HDFS answers: check the address and the port";

const NO_KERBEROS: &str = "the cluster wants Kerberos, which cloakroom does not speak";

/// Reads the answer of a node.
pub(super) fn refusal(status: StatusCode, body: &[u8]) -> StoreRefusal {
    let answer: Value = serde_json::from_slice(body).unwrap_or_default();
    let exception = &answer["RemoteException"];
    let code = exception["exception"].as_str().and_then(word);
    let message = match exception["message"].as_str().and_then(|text| text.lines().next()) {
        Some(line) => line.chars().filter(|char| !char.is_control()).take(LONGEST_MESSAGE).collect(),
        None if status == StatusCode::UNAUTHORIZED => NO_KERBEROS.to_owned(),
        None => NO_NODE.to_owned(),
    };
    let status = code.as_deref().map_or(status, status_of);
    StoreRefusal { status, code, codes: &CODES, message: Some(message), advice: None }
}

/// The answer that an object is not the version that was asked for.
pub(super) fn of_another_version() -> StoreRefusal {
    StoreRefusal {
        status: StatusCode::PRECONDITION_FAILED,
        code: None,
        codes: &CODES,
        message: None,
        advice: None,
    }
}

/// The status that an exception of HDFS stands for.
fn status_of(exception: &str) -> StatusCode {
    match exception {
        "AccessControlException" | "SecurityException" | "AuthenticationException" | "InvalidToken" => {
            StatusCode::FORBIDDEN
        }
        "FileNotFoundException" => StatusCode::NOT_FOUND,
        "FileAlreadyExistsException" => StatusCode::PRECONDITION_FAILED,
        "DSQuotaExceededException"
        | "NSQuotaExceededException"
        | "QuotaByStorageTypeExceededException"
        | "MaxDirectoryItemsExceededException" => StatusCode::INSUFFICIENT_STORAGE,
        "IllegalArgumentException"
        | "InvalidPathException"
        | "ParentNotDirectoryException"
        | "PathIsNotDirectoryException"
        | "SnapshotException"
        | "UnsupportedOperationException" => StatusCode::BAD_REQUEST,
        // A namenode on standby or in safe mode, datanodes that cannot be used, and all that is rare.
        _ => StatusCode::SERVICE_UNAVAILABLE,
    }
}

impl CallTrouble {
    /// Whether another namenode of HDFS may answer.
    pub fn is_of_this_node(&self) -> bool {
        match &self.reason {
            Reason::Refused(refusal) => refusal.is(STANDBY),
            Reason::Unreached(_) | Reason::NoAnswer(_) | Reason::Late => true,
            Reason::Unclear => false,
        }
    }

    /// Whether nothing was asked, because there is no connection.
    pub fn is_unreached(&self) -> bool {
        matches!(self.reason, Reason::Unreached(_))
    }

    /// Says which datanode of HDFS cannot be reached, or does not answer.
    pub fn of_datanode(mut self, node: &str) -> Self {
        if let Reason::Unreached(why) | Reason::NoAnswer(why) = &mut self.reason {
            *why = format!("named the datanode {node}, which {why}");
        }
        self
    }
}
