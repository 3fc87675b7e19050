//! The labels and their values.

use std::fmt;

use prometheus_client::encoding::{EncodeLabelSet, EncodeLabelValue, LabelValueEncoder};

macro_rules! words {
    ($(#[$doc:meta])* $type:ident { $($(#[$variant_doc:meta])* $variant:ident => $word:literal),+ $(,)? }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum $type { $($(#[$variant_doc])* $variant),+ }

        impl $type {
            /// All values.
            pub const ALL: &[Self] = &[$(Self::$variant),+];

            /// The value of the label.
            pub fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $word),+ }
            }
        }
    };
}

words! {
    /// How a pass of the cleaner ended.
    SweepOutcome {
        /// It looked at everything.
        Ok => "ok",
        /// It had to stop; the next pass tries again.
        Failed => "failed",
    }
}

words! {
    /// What the API server was asked.
    ApiCall {
        /// All objects of a kind, or some of them.
        List => "list",
        /// Changes of objects.
        Watch => "watch",
        /// One object.
        Get => "get",
        /// Which kinds the cluster has.
        Discover => "discover",
        /// Which cluster this is. The role may lack this right, so a 403 is no reason for an alarm.
        Identify => "identify",
        /// Who a user is, or what a user may do.
        Review => "review",
    }
}

words! {
    /// The kinds of requests to a bucket. Providers charge for each request. Those that write or list cost more.
    StoreCall {
        /// A blob, or a part of it.
        Get => "get",
        /// What the bucket has of a blob.
        Head => "head",
        /// A page of the names.
        List => "list",
        /// To keep a blob, or a part of one.
        Put => "put",
        /// To begin an upload in parts, or to complete it.
        Post => "post",
        /// To remove a blob, or an upload in parts.
        Delete => "delete",
        /// Asked of another service: credentials.
        Credentials => "credentials",
    }
}

words! {
    /// What came of a call to a bucket.
    StoreOutcome {
        /// It succeeded.
        Ok => "ok",
        /// There is no such blob.
        Absent => "absent",
        /// A condition of the call does not hold.
        Conflict => "conflict",
        /// The credentials are not accepted, or lack the right.
        Denied => "denied",
        /// The bucket takes no further call at the moment.
        Throttled => "throttled",
        /// The bucket has no room.
        Full => "full",
        /// There was no answer, or the answer says that other calls would fail as well.
        Unavailable => "unavailable",
        /// Any other refusal.
        Failed => "failed",
    }
}

words! {
    /// What has a limit. A share is the most that one namespace may have; in v0 the most that one user may have.
    Limited {
        /// `--max-resources`: resources, with the uploads in flight.
        Resources => "resources",
        /// `--max-total-size`: bytes of all bundles, with the bytes that are promised to uploads.
        TotalSize => "total-size",
        /// The same bytes, against what the disk can hold down to `--min-free-space`.
        Disk => "disk",
        /// `--max-concurrent-uploads`.
        Uploads => "uploads",
        /// `--max-concurrent-downloads`.
        Downloads => "downloads",
        /// `--max-connections` of the main listener.
        Connections => "connections",
        /// `--max-connections` of the listener `--ops-listen`.
        OpsConnections => "ops-connections",
        /// Files and connections that this process may have open.
        OpenFiles => "open-files",
        /// Bundles that are open for downloads, if the limit of open files is too low for all of them.
        OpenBundles => "open-bundles",
        /// Memory for transfers to and from a bucket, in bytes.
        StoreMemory => "store-memory",
        /// Label keys by which the server looks for owners, of the kind that has most.
        LabelKeys => "label-keys",
        /// Reviews at once of tokens that are not known yet.
        UnknownTokens => "unknown-tokens",
        /// Reviews at once of tokens and users that are known.
        Reviews => "reviews",
        /// Deleted resources that the ledger remembers.
        Tombstones => "tombstones",
        /// Memory for owners, in bytes.
        OwnerMemory => "owner-memory",
        /// The largest share of the number of resources.
        ShareOfResources => "share-of-resources",
        /// The largest share of the bytes.
        ShareOfRoom => "share-of-room",
        /// The largest share of the memory for owners.
        ShareOfOwnerMemory => "share-of-owner-memory",
        /// The largest share of the uploads.
        ShareOfUploads => "share-of-uploads",
        /// The largest share of the downloads.
        ShareOfDownloads => "share-of-downloads",
        /// The label keys of the namespace that has most of them.
        ShareOfLabelKeys => "share-of-label-keys",
    }
}

/// The methods of RFC 9110, section 9, and PATCH. All others are `other`, because clients can make up any number of
/// them.
pub(super) fn method(name: &str) -> &'static str {
    const STANDARD: [&str; 9] =
        ["GET", "HEAD", "POST", "PUT", "DELETE", "PATCH", "OPTIONS", "CONNECT", "TRACE"];
    STANDARD.into_iter().find(|standard| *standard == name).unwrap_or("other")
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(super) struct RequestLabels {
    pub(super) route: String,
    pub(super) method: &'static str,
    pub(super) status: Status,
}

/// An HTTP status; `None` if the client left before there was one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Status(Option<u16>);

impl From<Option<u16>> for Status {
    fn from(status: Option<u16>) -> Self {
        Self(status)
    }
}

impl EncodeLabelValue for Status {
    fn encode(&self, encoder: &mut LabelValueEncoder<'_>) -> fmt::Result {
        match self.0 {
            Some(status) => status.encode(encoder),
            None => "aborted".encode(encoder),
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(super) struct WatchLabels {
    pub(super) kind: String,
    pub(super) state: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(super) struct CauseLabels {
    pub(super) kind: String,
    pub(super) cause: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(super) struct CallLabels {
    pub(super) call: &'static str,
    pub(super) outcome: &'static str,
}

macro_rules! single {
    ($($type:ident { $label:ident }),+ $(,)?) => {$(
        #[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
        pub(super) struct $type {
            $label: &'static str,
        }

        impl From<&'static str> for $type {
            fn from($label: &'static str) -> Self {
                Self { $label }
            }
        }
    )+};
}

single! {
    DirectionLabel { direction },
    OfLabel { of },
    OutcomeLabel { outcome },
    ReasonLabel { reason },
    StateLabel { state },
    WhyLabel { why },
}
