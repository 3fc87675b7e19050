//! Requests to namenodes, which know the names of all files, and to the datanodes that they name, which have the bytes.

use std::ops::Range;
use std::sync::atomic::Ordering;
use std::time::Duration;

use bytes::Bytes;
use cloakroom_core::metrics::{StoreCall, StoreOutcome};
use object_store::client::HttpErrorKind;
use object_store::path::Path;
use reqwest::{Body, Method, RequestBuilder, Response, Url};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use tokio::time::timeout;

use super::super::calls::PATIENCE;
use super::super::connector::{Count, beginning, why};
use super::super::failure::{CallTrouble, LATE, Reason};
use super::{Hdfs, refusal};

/// How long a node may take to answer before the next one is asked.
const NODE_PATIENCE: Duration = Duration::from_secs(10);

/// How many datanodes are tried. The namenode goes on to name those that went away for some minutes.
const DATANODES: u32 = 6;

/// Where the bytes of a file are, or go.
#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Place {
    location: String,
}

/// The datanodes of one call.
#[derive(Default)]
struct Places {
    tried: u32,
    /// The addresses of those that could not be reached, as the namenode takes them.
    left_out: String,
}

impl Places {
    /// Leaves out the datanode at `location`, which had this trouble. The trouble is the answer if no other one is to be tried.
    async fn leave_out(&mut self, location: &str, trouble: CallTrouble) -> Result<(), CallTrouble> {
        self.tried += 1;
        if self.tried == DATANODES {
            return Err(trouble);
        }
        let host = host(location);
        let found = tokio::net::lookup_host(host.as_str()).await.into_iter().flatten();
        for address in found {
            let comma = if self.left_out.is_empty() { "" } else { "," };
            self.left_out = format!("{}{comma}{}", self.left_out, address.ip());
        }
        Ok(())
    }
}

impl Hdfs {
    /// Asks a namenode for what it knows.
    pub(super) async fn ask<T: DeserializeOwned>(
        &self,
        call: StoreCall,
        path: &Path,
        operation: &str,
        parameters: &[(&str, &str)],
    ) -> Result<T, CallTrouble> {
        // A new file is asked for by PUT, all else by GET.
        let method = if call == StoreCall::Put { Method::PUT } else { Method::GET };
        let text = self.tell(call, method, path, operation, parameters).await?;
        serde_json::from_slice(&text).map_err(|_| CallTrouble::unclear())
    }

    /// Tells the namenodes, one after the other until one answers that is not on standby.
    pub(super) async fn tell(
        &self,
        call: StoreCall,
        method: Method,
        path: &Path,
        operation: &str,
        parameters: &[(&str, &str)],
    ) -> Result<Bytes, CallTrouble> {
        let (first, count) = (self.active.load(Ordering::Relaxed), self.namenodes.len());
        // So that each of them is asked within the time for a call.
        let patience = NODE_PATIENCE.min(PATIENCE / u32::try_from(count + 1).unwrap_or(u32::MAX));
        let mut last: Option<CallTrouble> = None;
        for number in (0..count).map(|step| (first + step) % count) {
            let url = self.url(number, path, operation, parameters)?;
            let asked = async {
                let answer = self.counted(call, self.client.request(method.clone(), url)).await?;
                answer.bytes().await.map_err(|error| no_answer(&error))
            };
            let trouble = match timeout(patience, asked).await {
                Err(_) => self.late(call),
                Ok(Err(trouble)) if trouble.is_of_this_node() => trouble,
                Ok(answer) => {
                    self.active.store(number, Ordering::Relaxed);
                    return answer;
                }
            };
            // A namenode that is away is told rather than one on standby.
            last = last.filter(|last| last.refusal().is_none()).or(Some(trouble));
        }
        Err(last.unwrap_or_else(|| CallTrouble::no_answer(LATE)))
    }

    /// Opens a range of a file.
    pub(super) async fn open(&self, path: &Path, range: &Range<u64>) -> Result<Response, CallTrouble> {
        let (offset, length) = (range.start.to_string(), (range.end - range.start).to_string());
        let parameters = [("offset", offset.as_str()), ("length", &length)];
        let mut places = Places::default();
        loop {
            let location = self.place(StoreCall::Get, path, "OPEN", &parameters, &mut places).await?;
            let opened = timeout(NODE_PATIENCE, self.counted(StoreCall::Get, self.client.get(&location)));
            let opened = opened.await.unwrap_or_else(|_| Err(self.late(StoreCall::Get)));
            match opened.map_err(|trouble| trouble.of_datanode(&host(&location))) {
                Err(trouble) if trouble.is_of_this_node() => places.leave_out(&location, trouble).await?,
                opened => return opened,
            }
        }
    }

    fn late(&self, call: StoreCall) -> CallTrouble {
        self.metrics.store_request(call, StoreOutcome::Unavailable);
        CallTrouble::no_answer(LATE)
    }

    /// The address for a call on a file, at a datanode that is not left out.
    async fn place(
        &self,
        call: StoreCall,
        path: &Path,
        operation: &str,
        parameters: &[(&str, &str)],
        places: &mut Places,
    ) -> Result<String, CallTrouble> {
        loop {
            let others = [("noredirect", "true"), ("excludedatanodes", &*places.left_out)];
            let others = others.into_iter().filter(|(_, value)| !value.is_empty());
            let parameters: Vec<_> = parameters.iter().copied().chain(others).collect();
            match self.ask(call, path, operation, &parameters).await {
                Ok(Place { location }) => return Ok(location),
                // There is no other datanode. Perhaps one of these can be reached again.
                Err(_) if !places.left_out.is_empty() => places.left_out.clear(),
                Err(trouble) => return Err(trouble),
            }
        }
    }

    /// Writes a file durably, in a folder that is there. `body` is asked for the bytes again when a datanode could not be reached.
    pub(super) async fn write(&self, path: &Path, body: impl Fn() -> Body) -> Result<(), CallTrouble> {
        let parameters = [
            ("overwrite", "true"),
            // Each datanode syncs each block before it says that it has it.
            ("createflag", "CREATE,SYNC_BLOCK"),
            ("createparent", "false"),
            super::FILE_PERMISSION,
        ];
        let mut places = Places::default();
        loop {
            let location = self.place(StoreCall::Put, path, "CREATE", &parameters, &mut places).await?;
            let request = self.client.put(&location).body(body());
            // Its time is that of the client, so that a stop of the client says nothing about the store.
            let sent = answer(request).await;
            self.metrics.store_request(StoreCall::Put, outcome(&sent));
            match sent.map_err(|trouble| trouble.of_datanode(&host(&location))) {
                Err(trouble) if trouble.is_unreached() => places.leave_out(&location, trouble).await?,
                sent => return sent.map(drop),
            }
        }
    }

    fn url(
        &self,
        number: usize,
        path: &Path,
        operation: &str,
        parameters: &[(&str, &str)],
    ) -> Result<Url, CallTrouble> {
        let text = format!("{}://{}/webhdfs/v1/{path}", self.scheme, self.namenodes[number]);
        let mut url = Url::parse(&text).map_err(|_| CallTrouble::unclear())?;
        url.query_pairs_mut()
            .extend_pairs([("op", operation), ("user.name", &self.user)])
            .extend_pairs(parameters);
        Ok(url)
    }

    async fn counted(&self, call: StoreCall, request: RequestBuilder) -> Result<Response, CallTrouble> {
        let mut count = Count::begin(&self.metrics, call);
        let answer = answer(request).await;
        count.outcome = Some(outcome(&answer));
        answer
    }
}

/// The answer to a request; an error if it is not that it was done.
async fn answer(request: RequestBuilder) -> Result<Response, CallTrouble> {
    let answer = request.send().await.map_err(|error| no_answer(&error))?;
    let status = answer.status();
    if status.is_success() {
        return Ok(answer);
    }
    let body = beginning(answer.bytes_stream()).await;
    Err(CallTrouble::refused(refusal::refusal(status, &body)))
}

fn no_answer(error: &reqwest::Error) -> CallTrouble {
    if error.is_connect() {
        CallTrouble { host: None, reason: Reason::Unreached(why(HttpErrorKind::Connect, error)) }
    } else {
        CallTrouble::no_answer(&why(HttpErrorKind::Unknown, error))
    }
}

fn outcome<T>(answer: &Result<T, CallTrouble>) -> StoreOutcome {
    match answer {
        Ok(_) => StoreOutcome::Ok,
        Err(CallTrouble { reason: Reason::Refused(refusal), .. }) => refusal.outcome(),
        Err(_) => StoreOutcome::Unavailable,
    }
}

/// The host of an address, and its port.
fn host(address: &str) -> String {
    let url = Url::parse(address).ok();
    let host = url.as_ref().and_then(|url| Some((url.host_str()?, url.port_or_known_default()?)));
    host.map(|(host, port)| format!("{host}:{port}")).unwrap_or_default()
}
