//! The HTTP client of the server: stages bundles, which it packs while it uploads, and downloads them.

mod address;
mod admin;
mod answer;
mod download;
mod failure;
mod http;
mod packing;
mod retry;
mod reuse;
mod secret_file;
mod stage;
mod ticket;
mod upload;
mod upload_tokens;
mod way;

pub use address::{AddressError, ServerAddress, is_loopback, shown};
pub use admin::{AdminClient, AdminError, Selection};
pub use answer::Answer;
pub use cloakroom_outbound::tls::TlsFailure;
pub use download::{DownloadAnswer, Representation, Resume};
pub use failure::Failure;
pub use http::{HttpClient, SetupError, Timeouts};
pub use retry::{Bound, GivenUp, RetryNotice, RetryPolicy, Told, Tried};
pub use reuse::StagedBefore;
pub use secret_file::{AdminToken, SecretFileError, UploadToken, is_secret, read as read_secret};
pub use stage::{StageError, StageObserver, StageRequest, Staged, TokenInClear};
pub use upload_tokens::{Credential, UploadTokens};
pub use way::{Body, Way};

pub use cloakroom_outbound::certificates::{PemError, TrustError, TrustedCertificates, read_certificates};
pub use reqwest::Url;
