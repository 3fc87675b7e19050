//! What a request asks for.

use percent_encoding::percent_decode_str;

use super::super::LONGEST_CLAIMED_USER;

/// Marks the second step of an operation that has two, in the query of the address that the first step gives.
const SECOND_STEP: (&str, &str) = ("step", "2");

/// An operation of WebHDFS, of those that Spark uses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operation {
    /// For the submitter, who needs the right to upload.
    Put(Put),
    /// For everyone who knows the folder.
    Get(Get),
}

/// An operation with the method PUT.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Put {
    /// `MKDIRS`: makes the folder.
    MakeFolder,
    /// `CREATE`: asks where to send the file.
    Create,
    /// The second step of that: the file.
    Write,
}

/// An operation with the method GET.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Get {
    /// `GETFILESTATUS`: whether the file is there.
    Status,
    /// `OPEN`: asks where to read the file.
    Open,
    /// The second step of that: the bytes from an offset on.
    Read {
        /// The first byte.
        offset: u64,
        /// The most bytes; `None` is all.
        length: Option<u64>,
    },
}

/// An operation that the server does not have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum OperationError {
    /// Spark does not ask for it.
    #[error(
        "this server takes what Spark uploads and nothing else (MKDIRS and CREATE by PUT, GETFILESTATUS and OPEN by GET): it is \
         no file system"
    )]
    Unknown,
    /// A number cannot be read.
    #[error("offset and length are numbers of bytes")]
    Number,
}

impl Operation {
    /// Reads the method and the query of a request.
    pub fn parse(method: &str, query: &str) -> Result<Self, OperationError> {
        let value = |name: &str| {
            let mut pairs = query.split('&').filter_map(|pair| pair.split_once('='));
            pairs.find(|(key, _)| key.eq_ignore_ascii_case(name)).map(|(_, value)| value)
        };
        let number =
            |name| value(name).map(|text| text.parse().map_err(|_| OperationError::Number)).transpose();
        let is_second = query.split('&').any(|pair| pair.split_once('=') == Some(SECOND_STEP));
        let operation = value("op").unwrap_or_default().to_ascii_uppercase();
        match (method, operation.as_str()) {
            ("PUT", "MKDIRS") => Ok(Self::Put(Put::MakeFolder)),
            ("PUT", "CREATE") if is_second => Ok(Self::Put(Put::Write)),
            ("PUT", "CREATE") => Ok(Self::Put(Put::Create)),
            ("GET", "GETFILESTATUS") => Ok(Self::Get(Get::Status)),
            ("GET", "OPEN") if is_second => {
                let (offset, length) = (number("offset")?.unwrap_or(0), number("length")?);
                Ok(Self::Get(Get::Read { offset, length }))
            }
            ("GET", "OPEN") => Ok(Self::Get(Get::Open)),
            _ => Err(OperationError::Unknown),
        }
    }

    /// The user for whom the client asks, as it says.
    pub fn claimed_user(query: &str) -> Option<String> {
        let user = query.split('&').find_map(|pair| pair.strip_prefix("user.name="))?;
        let user = percent_decode_str(user).decode_utf8().ok()?;
        let is_good =
            !user.is_empty() && user.len() <= LONGEST_CLAIMED_USER && !user.contains(char::is_control);
        is_good.then(|| user.into_owned())
    }

    /// The query of the second step, for that of the first one.
    pub fn second_step(query: &str) -> String {
        format!("{query}&{}={}", SECOND_STEP.0, SECOND_STEP.1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_spark_sends_is_understood() {
        let create = "op=CREATE&user.name=ada&permission=644&overwrite=true";
        let open = "op=OPEN&user.name=ada&buffersize=65536";
        for (method, query, operation) in [
            ("PUT", "op=MKDIRS&user.name=ada&permission=755", Operation::Put(Put::MakeFolder)),
            ("GET", "user.name=ada&op=getfilestatus", Operation::Get(Get::Status)),
            ("PUT", create, Operation::Put(Put::Create)),
            ("PUT", &Operation::second_step(create), Operation::Put(Put::Write)),
            ("GET", open, Operation::Get(Get::Open)),
            ("GET", &Operation::second_step(open), Operation::Get(Get::Read { offset: 0, length: None })),
            (
                "GET",
                &format!("{}&offset=7&length=9", Operation::second_step(open)),
                Operation::Get(Get::Read { offset: 7, length: Some(9) }),
            ),
        ] {
            assert_eq!(Operation::parse(method, query), Ok(operation), "{query}");
        }
    }

    #[test]
    fn the_user_is_what_the_client_says() {
        let user = |query| Operation::claimed_user(query);
        assert_eq!(user("op=CREATE&user.name=ada%20l&permission=644").as_deref(), Some("ada l"));
        assert_eq!(
            user("op=CREATE").or(user("user.name=")).or(user("user.name=%00")).or(user("user.name=%ff")),
            None
        );
        assert_eq!(user(&format!("user.name={}", "x".repeat(257))), None);
    }

    #[test]
    fn what_spark_does_not_send_is_refused() {
        for (method, query) in [
            ("GET", ""),
            ("GET", "op=LISTSTATUS"),
            ("DELETE", "op=DELETE"),
            ("GET", "op=MKDIRS"),
            ("PUT", "op=OPEN"),
            ("HEAD", "op=OPEN"),
            ("POST", "op=CREATE"),
        ] {
            assert_eq!(Operation::parse(method, query), Err(OperationError::Unknown), "{method} {query}");
        }
        for offset in ["-1", "x", "99999999999999999999", ""] {
            let query = format!("op=OPEN&step=2&offset={offset}");
            assert_eq!(Operation::parse("GET", &query), Err(OperationError::Number), "{query}");
        }
    }
}
