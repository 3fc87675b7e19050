//! Replaces an object only if it is the version that was seen. Stores differ in how they take its `ETag`.

use object_store::path::Path;
use object_store::{PutMode, UpdateVersion};

use super::answer::CallFailure;
use super::api::Objects;
use super::calls::{Bucket, PATIENCE};

/// How a store takes an `ETag` in `If-Match`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    /// As it gave it: with quotation marks, as HTTP has it.
    AsGiven,
    /// Without them. Ceph's radosgw 16 compares the header byte by byte with the hash
    /// (<https://github.com/slatedb/slatedb/issues/1818>).
    Bare,
}

/// What a try has found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Found {
    /// The store checks the version, in this form.
    Form(Form),
    /// The store replaces an object that is another version.
    Ignored,
    /// The store replaces no object, although it is the version that was seen.
    NeverHolds,
}

impl Form {
    const ALL: [Self; 2] = [Self::AsGiven, Self::Bare];

    /// The condition that the object is `version`.
    pub fn condition(self, version: UpdateVersion) -> PutMode {
        PutMode::Update(match self {
            Self::AsGiven => version,
            Self::Bare => UpdateVersion { e_tag: version.e_tag.map(bare), ..version },
        })
    }

    /// The other one.
    pub fn other(self) -> Self {
        if self == Self::Bare { Self::AsGiven } else { Self::Bare }
    }
}

impl Bucket {
    /// Finds the form that the store takes, and remembers it. For that it replaces the object at `path` by `text`. The object must
    /// exist, and no other program may write it.
    pub async fn find_form(
        &self,
        objects: &dyn Objects,
        path: &Path,
        text: &'static str,
    ) -> Result<Found, CallFailure> {
        let seen = self.version(path).await?;
        let put = |mode: PutMode| {
            self.repeated("replace", path, PATIENCE, move || {
                let mode = mode.clone();
                async move { objects.put_opts(path, text.into(), mode.into()).await.map(drop) }
            })
        };
        for form in Form::ALL {
            match put(form.condition(other_than(&seen))).await {
                Ok(()) => return Ok(Found::Ignored),
                Err(failed) if failed.is_conflict() => {}
                Err(failed) => return Err(failed),
            }
            match put(form.condition(seen.clone())).await {
                Ok(()) => return Ok(self.takes(form)),
                // An earlier attempt was done, and its answer got lost.
                Err(failed) if failed.is_conflict() && self.version(path).await?.e_tag != seen.e_tag => {
                    return Ok(self.takes(form));
                }
                Err(failed) if failed.is_conflict() => {}
                Err(failed) => return Err(failed),
            }
        }
        Ok(Found::NeverHolds)
    }

    fn takes(&self, form: Form) -> Found {
        if form == Form::Bare {
            tracing::info!("the store takes ETags in conditions without quotation marks only");
        }
        // A later try of the same store finds the same.
        Found::Form(*self.form.get_or_init(|| form))
    }

    async fn version(&self, path: &Path) -> Result<UpdateVersion, CallFailure> {
        Ok(self.repeated("look at", path, PATIENCE, || self.api.head(path)).await?.version)
    }
}

fn bare(etag: String) -> String {
    let hash = etag.strip_prefix('"').and_then(|rest| rest.strip_suffix('"'));
    hash.map(str::to_owned).unwrap_or(etag)
}

/// A version that no object has, and that looks like `version`. Google's are numbers.
fn other_than(version: &UpdateVersion) -> UpdateVersion {
    let zeros = |etag: &String| {
        etag.chars().map(|char| if char.is_ascii_alphanumeric() { '0' } else { char }).collect()
    };
    let e_tag = version.e_tag.as_ref().map(zeros);
    UpdateVersion { e_tag, version: version.version.as_ref().map(|_| "1".to_owned()) }
}
