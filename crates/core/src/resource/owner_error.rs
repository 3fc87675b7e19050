//! Why an owner is refused: its kind, its namespace, its labels or its name.

use crate::text::excerpt;

pub(super) const MAX_LABELS: usize = 64;

/// The limit for all keys and values of one owner together, in bytes.
pub(super) const MAX_LABEL_BYTES: usize = 4096;

/// An owner that Kubernetes would refuse, or one that names nothing. The message names the field.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum OwnerError {
    /// The namespace is empty.
    #[error("namespace is missing: say in which namespace the owner lives")]
    NoNamespace,
    /// The namespace is not an RFC 1123 label.
    #[error(
        "namespace “{namespace}” is not a Kubernetes namespace: at most 63 characters of a-z, 0-9 and -, \
         beginning and ending with a letter or digit"
    )]
    Namespace {
        /// The text that was given, shortened.
        namespace: String,
    },
    /// The namespace is none of the server's `--namespaces`.
    #[error("namespace “{namespace}” is not served here: this server serves only {known} (its --namespaces)")]
    OtherNamespace {
        /// The namespace that was asked for.
        namespace: String,
        /// The namespaces that are served.
        known: String,
    },
    /// The owner has neither a label nor a name.
    #[error("label is missing: name the owner by at least one label, KEY=VALUE, or by its name")]
    NoSelector,
    /// A label without an equals sign.
    #[error("label “{label}” has no value: write KEY=VALUE")]
    LabelWithoutValue {
        /// The text that was given, shortened.
        label: String,
    },
    /// A key that Kubernetes refuses.
    #[error(
        "label key “{key}” is not a Kubernetes label key: an optional DNS prefix and /, then at most 63 \
         characters of letters, digits, - _ and ., beginning and ending with a letter or digit"
    )]
    LabelKey {
        /// The text that was given, shortened.
        key: String,
    },
    /// A value that Kubernetes refuses.
    #[error(
        "value “{value}” of label {key} is not a Kubernetes label value: at most 63 characters of letters, \
         digits, - _ and ., beginning and ending with a letter or digit"
    )]
    LabelValue {
        /// The label's key.
        key: String,
        /// The text that was given, shortened.
        value: String,
    },
    /// A key is given twice with different values. No object can have both.
    #[error("label {key} is given twice with different values: no object can carry both")]
    LabelTwice {
        /// The label's key.
        key: String,
    },
    /// More labels than an owner may have.
    #[error("{count} labels are too many: at most {MAX_LABELS} may name an owner")]
    TooManyLabels {
        /// How many were given.
        count: usize,
    },
    /// Labels that are too long together.
    #[error(
        "the labels have {bytes} bytes, keys and values together: at most {MAX_LABEL_BYTES} may name an owner; use \
         fewer or shorter ones"
    )]
    LabelsTooLong {
        /// How many bytes they have.
        bytes: usize,
    },
    /// The name is not a DNS subdomain.
    #[error(
        "name “{name}” is not a Kubernetes object name: at most 253 characters of a-z, 0-9, - and ., \
         beginning and ending with a letter or digit"
    )]
    Name {
        /// The text that was given, shortened.
        name: String,
    },
    /// The text has not the form of a kind.
    #[error(
        "kind “{kind}” is not a Kubernetes kind: write Kind or Kind.group, for example Pod or Workflow.argoproj.io{}",
        did_you_mean(*.meant)
    )]
    Kind {
        /// The text that was given, shortened.
        kind: String,
        /// The known kind that is almost the same; `None` if there is none.
        meant: Option<&'static str>,
    },
    /// The kind is none of the server's `--owner-kinds`.
    #[error(
        "kind “{kind}” is not accepted here: this server accepts {known} (its --owner-kinds){}",
        did_you_mean(*.meant)
    )]
    UnknownKind {
        /// The kind that was asked for.
        kind: String,
        /// The accepted kind that is almost the same; `None` if there is none.
        meant: Option<&'static str>,
        /// The accepted kinds.
        known: String,
    },
}

fn did_you_mean(kind: Option<&str>) -> String {
    kind.map(|kind| format!("; did you mean {kind}?")).unwrap_or_default()
}

/// Text from a request in the form that an error may show: short, and without control characters.
pub(super) fn shown(text: &str) -> String {
    const LONGEST: usize = 80;
    excerpt(text, LONGEST)
}
