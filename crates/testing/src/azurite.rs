//! Azurite: the emulator of Azure's storage. It needs seconds to start, so all tests of a process share one.

use std::net::{SocketAddr, TcpStream};
use std::process::Command;

use tempfile::TempDir;
use tokio::sync::OnceCell;

use crate::child::Program;
use crate::needs::{Need, path};
use crate::port::ReservedPort;
use crate::wait::until_true;

/// The variable that names the folder of its package.
const FOLDER: &str = "CLOAKROOM_TEST_AZURITE";
const PROGRAM: &str = "node_modules/.bin/azurite-blob";

/// The container that it has from the start.
pub const CONTAINER: &str = "team";

pub const ACCOUNT: &str = "cloakroomtests";
pub const KEY: &str = "dGhlIGtleSBvZiB0aGUgYWNjb3VudCBpbiB0aGVzZSB0ZXN0cw==";

/// What that key signs: all rights to all containers until 2099.
pub const SAS: &str = "sv=2019-12-12&ss=b&srt=sco&sp=rwdlac&se=2099-01-01T00%3A00%3A00Z&spr=https%2Chttp\
                       &sig=Co5FaG5b0q56vTNfDfa7gDoa3gwSTSKi38stimYXDUc%3D";

/// A running emulator, with its objects in memory.
pub struct Azurite {
    program: Program,
    port: ReservedPort,
    _log: TempDir,
}

impl Azurite {
    pub fn needs() -> Vec<Need> {
        vec![Need::Below(FOLDER, PROGRAM.to_owned()), Need::Program("node"), Need::Program("curl")]
    }

    /// That of this process, with an empty container when it is asked for first. It ends with the process.
    pub async fn shared() -> &'static Self {
        static SHARED: OnceCell<Azurite> = OnceCell::const_new();
        SHARED.get_or_init(Self::start).await
    }

    /// One of its own, which ends when this is dropped.
    pub async fn start() -> Self {
        let (log, port) = (tempfile::tempdir().unwrap(), ReservedPort::new());
        let args = [
            format!("AZURITE_ACCOUNTS={ACCOUNT}:{KEY}").as_str(),
            "node",
            path(FOLDER).join(PROGRAM).to_str().unwrap(),
            "--blobPort",
            &port.address().port().to_string(),
            "--inMemoryPersistence",
            "--disableTelemetry",
            "--skipApiVersionCheck",
            "--silent",
        ]
        .map(str::to_owned);
        let program = Program::start("/usr/bin/env".as_ref(), &args, log.path().join("log"));
        let azurite = Self { program, port, _log: log };
        until_true("the emulator is ready", || {
            azurite.program.assert_running();
            TcpStream::connect(azurite.address()).is_ok()
        })
        .await;
        azurite.make_container();
        azurite
    }

    pub fn address(&self) -> SocketAddr {
        self.port.address()
    }

    /// Where the account is.
    pub fn url(&self) -> String {
        format!("http://{}/{ACCOUNT}", self.address())
    }

    fn make_container(&self) {
        let answer = Command::new("curl")
            .args(["--silent", "--show-error", "--fail-with-body", "--request", "PUT"])
            .args(["--header", "Content-Length: 0"])
            .arg(format!("{}/{CONTAINER}?restype=container&{SAS}", self.url()))
            .output()
            .unwrap();
        assert!(answer.status.success(), "{answer:?}");
    }
}
