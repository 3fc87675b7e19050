//! Which file has which name: in the folder of staged files, or in the driver's working directory.

use std::collections::BTreeMap;

use super::entries::{Entry, List, keeps_fragment};
use super::source::Source;
use crate::plan::error::PlanError;
use cloakroom_spark::DependencyUri;

/// Names, each with the file that has it.
#[derive(Default)]
pub(super) struct Holders(BTreeMap<String, Holder>);

#[derive(PartialEq)]
enum Holder {
    /// A file that this plan places. An archive counts apart, because Spark unpacks it to a folder of that name.
    Placed { source: Source, is_archive: bool },
    /// A file that is left to Spark, as messages may show it.
    Left(String),
}

impl Holders {
    /// All names that are taken.
    pub fn names(&self) -> Vec<String> {
        self.0.keys().cloned().collect()
    }

    /// Takes the names of entries that are left to Spark, because Spark copies those files into the same folder. If two
    /// of them have one name, that is not refused here: spark-submit accepts it.
    pub fn reserve(&mut self, list: &List) {
        for entry in &list.entries {
            let Entry::Other(text) = entry else { continue };
            let Ok(uri) = DependencyUri::parse(text) else { continue };
            let (before, fragment) = text.split_once('#').unwrap_or((text, ""));
            let path = before.split('?').next().unwrap_or_default();
            let own = path.rsplit('/').next().unwrap_or_default();
            let is_renamed = keeps_fragment(list.key) && !fragment.is_empty();
            let name = if is_renamed { fragment } else { own };
            self.0.entry(name.to_owned()).or_insert_with(|| Holder::Left(uri.redacted()));
        }
    }

    /// Takes a name, and says whether it was new. It is an error if another file has the name: Spark would let the last
    /// file win without a message.
    pub fn take(
        &mut self,
        key: &'static str,
        name: &str,
        source: &Source,
        is_archive: bool,
    ) -> Result<bool, PlanError> {
        let taker = Holder::Placed { source: source.clone(), is_archive };
        match self.0.get(name) {
            None => {
                self.0.insert(name.to_owned(), taker);
                Ok(true)
            }
            Some(holder) if *holder == taker => Ok(false),
            Some(holder) => {
                let problem = format!(
                    "would be {name} in the driver's working directory, as {} is: {}",
                    holder.shown(),
                    way_out(source, holder)
                );
                Err(source.refuse(key, problem))
            }
        }
    }
}

/// How to get another name. Only a file of this machine can have one.
fn way_out(taker: &Source, holder: &Holder) -> &'static str {
    let is_local_holder = matches!(holder, Holder::Placed { source: Source::File(_), .. });
    match taker {
        Source::File(_) if is_local_holder => {
            "give one of them another name (“#name” behind it, or rename it)"
        }
        Source::Web(_) if !is_local_holder => {
            "what the init-container fetches keeps its name, so download it and give it as a local file, which may have \
             another name"
        }
        _ => "give the one of this machine another name (“#name” behind it, or rename it)",
    }
}

impl Holder {
    fn shown(&self) -> String {
        match self {
            Self::Placed { source, .. } => source.shown(),
            Self::Left(text) => text.clone(),
        }
    }
}
