//! The labels and their values.

use std::fmt;

use prometheus_client::encoding::{EncodeLabelSet, EncodeLabelValue, LabelValueEncoder};

macro_rules! words {
    ($(#[$doc:meta])* $type:ident { $($(#[$variant_doc:meta])* $variant:ident => $word:literal),+ $(,)? }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum $type { $($(#[$variant_doc])* $variant),+ }

        impl $type {
            /// Every value.
            pub const ALL: &[Self] = &[$(Self::$variant),+];

            /// The word in the label.
            pub fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $word),+ }
            }
        }
    };
}

words! {
    /// How a pass of the cleaner ended.
    SweepOutcome {
        /// All was looked at.
        Ok => "ok",
        /// It had to stop; the next one tries again.
        Failed => "failed",
    }
}

words! {
    /// What the API server was asked for.
    ApiCall {
        /// All objects of a kind, or some.
        List => "list",
        /// Changes.
        Watch => "watch",
        /// One object.
        Get => "get",
        /// What kinds there are.
        Discover => "discover",
        /// Which cluster this is. A role may lack the right, so that a 403 is no alarm.
        Identify => "identify",
        /// Who somebody is, or what they may do.
        Review => "review",
    }
}

words! {
    /// What there is a limit for. A share is what one namespace, in v0 one user, may have at most.
    Limited {
        /// `--max-resources`: resources, and uploads going on.
        Resources => "resources",
        /// `--max-total-size`: bytes of all bundles, and what is promised to uploads.
        TotalSize => "total-size",
        /// The same bytes, beside what the disk could hold down to `--min-free-space`.
        Disk => "disk",
        /// `--max-concurrent-uploads`.
        Uploads => "uploads",
        /// `--max-concurrent-downloads`.
        Downloads => "downloads",
        /// `--max-connections`, of the main listener.
        Connections => "connections",
        /// The same of `--ops-listen`.
        OpsConnections => "ops-connections",
        /// What this process may have open.
        OpenFiles => "open-files",
        /// Bundles that are open for downloads, where the limit of open files is too low for all.
        OpenBundles => "open-bundles",
        /// Label keys that owners are looked for by, of the kind that has most.
        LabelKeys => "label-keys",
        /// Questions at once about tokens that are not known yet.
        UnknownTokens => "unknown-tokens",
        /// Questions at once about tokens and users that are known.
        Reviews => "reviews",
        /// Deleted resources that are remembered.
        Tombstones => "tombstones",
        /// Memory for owners.
        OwnerMemory => "owner-memory",
        /// The largest share of the resources.
        ShareOfResources => "share-of-resources",
        /// The largest share of the room, in bytes.
        ShareOfRoom => "share-of-room",
        /// The largest share of the uploads.
        ShareOfUploads => "share-of-uploads",
        /// The largest share of the downloads.
        ShareOfDownloads => "share-of-downloads",
        /// The label keys of the namespace that has most of them.
        ShareOfLabelKeys => "share-of-label-keys",
    }
}

/// The methods of RFC 9110, section 9, and PATCH; a client can make up any other.
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

/// An HTTP status, or that the client left before there was one.
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
