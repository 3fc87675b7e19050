//! The objects of the cluster, and the history of their changes.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use jiff::Timestamp;
use serde_json::{Value, json};

use super::answers::{Refusal, qualified};
use super::selectors::Selectors;
use crate::cluster::{Kind, NAMESPACE, POD};

/// One change of one object.
#[derive(Debug, Clone)]
pub struct Change {
    pub version: u64,
    pub namespace: String,
    pub before: Option<Arc<Value>>,
    /// `None` if the change was a deletion.
    pub after: Option<Arc<Value>>,
}

/// Objects by namespace (empty for kinds without one) and name.
type Objects = BTreeMap<(String, String), Arc<Value>>;

/// The rest of a list for later pages, so that all pages show one moment.
struct Rest {
    version: u64,
    items: Vec<Arc<Value>>,
}

/// One page of a list.
pub struct Page {
    pub version: u64,
    pub items: Vec<Arc<Value>>,
    pub continue_token: Option<String>,
    pub remaining: usize,
}

#[derive(Default)]
pub struct World {
    pub version: u64,
    /// Watches that resume before this version get a 410.
    pub oldest: u64,
    objects: BTreeMap<Kind, Objects>,
    history: BTreeMap<Kind, Vec<Change>>,
    rests: HashMap<String, Rest>,
    uids: u64,
}

impl World {
    /// Versions begin at 1, because 0 has a special meaning in requests.
    pub fn new() -> Self {
        Self { version: 1, ..Self::default() }
    }

    pub fn get(&self, kind: &Kind, namespace: &str, name: &str) -> Option<&Arc<Value>> {
        self.objects.get(kind)?.get(&(namespace.to_owned(), name.to_owned()))
    }

    /// The objects of a kind, in one namespace or in all, that selectors ask for.
    pub fn select(&self, kind: &Kind, namespace: Option<&str>, selectors: &Selectors) -> Vec<Arc<Value>> {
        let objects = self.objects.get(kind).into_iter().flatten();
        objects
            .filter(|((place, _), object)| {
                namespace.is_none_or(|only| only == place) && selectors.match_object(object)
            })
            .map(|(_, object)| Arc::clone(object))
            .collect()
    }

    /// The first page of the selected objects.
    pub fn page(&mut self, items: Vec<Arc<Value>>, limit: usize) -> Page {
        self.cut(Rest { version: self.version, items }, limit)
    }

    /// The page that a continue token stands for.
    pub fn next_page(&mut self, continue_token: &str, limit: usize) -> Result<Page, Refusal> {
        let expired = "The provided continue parameter is too old to display a consistent list result.";
        let rest = self.rests.remove(continue_token).ok_or_else(|| Refusal::new(410, expired))?;
        Ok(self.cut(rest, limit))
    }

    fn cut(&mut self, rest: Rest, limit: usize) -> Page {
        let Rest { version, mut items } = rest;
        let later = if limit == 0 || items.len() <= limit { Vec::new() } else { items.split_off(limit) };
        let remaining = later.len();
        let continue_token = (!later.is_empty()).then(|| format!("page-{}", self.fresh()));
        if let Some(token) = &continue_token {
            self.rests.insert(token.clone(), Rest { version, items: later });
        }
        Page { version, items, continue_token, remaining }
    }

    /// The changes of a kind after a version.
    pub fn changes_after(&self, kind: &Kind, version: u64) -> &[Change] {
        let changes = self.history.get(kind).map(Vec::as_slice).unwrap_or_default();
        &changes[changes.partition_point(|change| change.version <= version)..]
    }

    /// From now on, watches cannot resume at earlier versions.
    pub fn forget_the_past(&mut self) {
        // Consumes a version that no client has seen, as a change of another object would.
        self.version += 1;
        self.oldest = self.version;
        self.history.clear();
        self.rests.clear();
    }

    /// Refuses a creation that the real server would refuse.
    pub fn try_to_create(&mut self, kind: &Kind, namespace: &str, object: &Value) -> Result<(), Refusal> {
        if kind.is_namespaced && self.get(&NAMESPACE, "", namespace).is_none() {
            return Err(Refusal::not_found(&NAMESPACE, namespace));
        }
        let name = self.name(object)?;
        if self.get(kind, namespace, &name).is_some() {
            return Err(Refusal::new(409, format!("{} \"{name}\" already exists", qualified(kind))));
        }
        let labels = object["metadata"]["labels"].as_object().into_iter().flatten();
        let bad = labels.filter_map(|(_, value)| value.as_str()).find(|value| value.contains(' '));
        if let Some(value) = bad {
            let kind = kind.kind;
            let message = format!(
                "{kind} \"{name}\" is invalid: metadata.labels: Invalid value: \"{value}\": a valid label"
            );
            return Err(Refusal::new(422, message));
        }
        Ok(())
    }

    pub fn create(&mut self, kind: &Kind, namespace: &str, mut object: Value) -> Result<Arc<Value>, Refusal> {
        self.try_to_create(kind, namespace, &object)?;
        let name = self.name(&object)?;
        object["kind"] = kind.kind.into();
        object["apiVersion"] = kind.group_version().into();
        let uid = self.fresh();
        let metadata = &mut object["metadata"];
        metadata["name"] = name.as_str().into();
        metadata["uid"] = format!("00000000-0000-4000-8000-{uid:012}").into();
        metadata["creationTimestamp"] = now().into();
        if kind.is_namespaced {
            metadata["namespace"] = namespace.into();
        }
        match *kind {
            POD => object["status"] = json!({"phase": "Pending"}),
            NAMESPACE => {
                metadata["labels"]["kubernetes.io/metadata.name"] = name.as_str().into();
                object["status"] = json!({"phase": "Active"});
            }
            _ => {}
        }
        Ok(self.put(kind, namespace, &name, object))
    }

    fn name(&mut self, object: &Value) -> Result<String, Refusal> {
        match (object["metadata"]["name"].as_str(), object["metadata"]["generateName"].as_str()) {
            (Some(name), _) => Ok(name.to_owned()),
            (None, Some(prefix)) => Ok(format!("{prefix}{:05}", self.fresh())),
            (None, None) => Err(Refusal::new(422, "name or generateName is required")),
        }
    }

    /// A merge patch (RFC 7386), of the object or of its status alone.
    pub fn merge(
        &mut self,
        kind: &Kind,
        namespace: &str,
        name: &str,
        patch: &Value,
        is_status: bool,
    ) -> Result<Arc<Value>, Refusal> {
        let found = self.get(kind, namespace, name).ok_or_else(|| Refusal::not_found(kind, name))?;
        let mut object = Value::clone(found);
        if is_status {
            merge(&mut object["status"], &patch["status"]);
        } else {
            let status = object["status"].clone();
            merge(&mut object, patch);
            if !status.is_null() {
                object["status"] = status;
            }
        }
        Ok(self.put(kind, namespace, name, object))
    }

    /// Server-side apply by a single field manager, as far as this project uses it. Fields are merged, and owners that
    /// were applied before and are now absent are removed. Returns whether the object is new.
    pub fn apply(
        &mut self,
        kind: &Kind,
        namespace: &str,
        name: &str,
        object: &Value,
    ) -> Result<(bool, Arc<Value>), Refusal> {
        if self.get(kind, namespace, name).is_none() {
            return self.create(kind, namespace, object.clone()).map(|made| (true, made));
        }
        let owners = &object["metadata"]["ownerReferences"];
        let owners = json!({"metadata": {"ownerReferences": owners}});
        self.merge(kind, namespace, name, object, false)?;
        self.merge(kind, namespace, name, &owners, false).map(|merged| (false, merged))
    }

    /// As [`Self::delete`], but only if the object has this unique id.
    pub fn delete_if(
        &mut self,
        kind: &Kind,
        namespace: &str,
        name: &str,
        uid: Option<&str>,
    ) -> Result<Arc<Value>, Refusal> {
        let found = self.get(kind, namespace, name).map(|object| object["metadata"]["uid"].clone());
        if let (Some(wanted), Some(is)) = (uid, found)
            && is != wanted
        {
            let kind = kind.kind;
            return Err(Refusal::new(
                409,
                format!(
                    "Operation cannot be fulfilled on {kind} \"{name}\": the UID in the precondition ({wanted}) does \
                     not match the UID in record ({is}). The object might have been deleted and then recreated"
                ),
            ));
        }
        self.delete(kind, namespace, name)
    }

    /// Deletes the objects of an owner, as the garbage collector does.
    fn collect_garbage(&mut self, owner: &Value) {
        let is_owned = |object: &Value| {
            let owners = object["metadata"]["ownerReferences"].as_array();
            owners.into_iter().flatten().any(|reference| reference["uid"] == *owner)
        };
        let owned: Vec<(Kind, (String, String))> = self
            .objects
            .iter()
            .flat_map(|(kind, objects)| objects.iter().map(|(key, object)| (*kind, key.clone(), object)))
            .filter(|(_, _, object)| is_owned(object))
            .map(|(kind, key, _)| (kind, key))
            .collect();
        for (kind, (namespace, name)) in owned {
            self.remove(&kind, &namespace, &name);
        }
    }

    /// Deletes an object at once. A namespace is deleted with everything in it. Returns the answer of DELETE.
    pub fn delete(&mut self, kind: &Kind, namespace: &str, name: &str) -> Result<Arc<Value>, Refusal> {
        let found = self.get(kind, namespace, name).ok_or_else(|| Refusal::not_found(kind, name))?;
        let mut ending = Value::clone(found);
        ending["metadata"]["deletionTimestamp"] = now().into();
        match *kind {
            POD => ending["metadata"]["deletionGracePeriodSeconds"] = 0.into(),
            NAMESPACE => ending["status"]["phase"] = "Terminating".into(),
            _ => return Ok(self.remove(kind, namespace, name)),
        }
        // Objects of these two kinds get a deletion timestamp before they are gone.
        let last = self.put(kind, namespace, name, ending);
        if *kind == NAMESPACE {
            self.empty(name);
        }
        self.remove(kind, namespace, name);
        Ok(last)
    }

    fn empty(&mut self, namespace: &str) {
        let keys = |objects: &Objects| -> Vec<String> {
            objects.keys().filter(|(place, _)| place == namespace).map(|(_, name)| name.clone()).collect()
        };
        let all: Vec<(Kind, Vec<String>)> =
            self.objects.iter().map(|(kind, objects)| (*kind, keys(objects))).collect();
        for (kind, names) in all {
            for name in names {
                self.remove(&kind, namespace, &name);
            }
        }
    }

    /// Keeps an object as its new state.
    pub fn put(&mut self, kind: &Kind, namespace: &str, name: &str, mut object: Value) -> Arc<Value> {
        self.version += 1;
        object["metadata"]["resourceVersion"] = self.version.to_string().into();
        let object = Arc::new(object);
        let key = (namespace.to_owned(), name.to_owned());
        let before = self.objects.entry(*kind).or_default().insert(key, Arc::clone(&object));
        self.record(kind, namespace, before, Some(Arc::clone(&object)));
        object
    }

    /// Removes an object, which must exist.
    fn remove(&mut self, kind: &Kind, namespace: &str, name: &str) -> Arc<Value> {
        let key = (namespace.to_owned(), name.to_owned());
        let last = self.objects.get_mut(kind).unwrap().remove(&key).unwrap();
        self.version += 1;
        self.record(kind, namespace, Some(Arc::clone(&last)), None);
        self.collect_garbage(&last["metadata"]["uid"]);
        last
    }

    fn record(
        &mut self,
        kind: &Kind,
        namespace: &str,
        before: Option<Arc<Value>>,
        after: Option<Arc<Value>>,
    ) {
        let change = Change { version: self.version, namespace: namespace.to_owned(), before, after };
        self.history.entry(*kind).or_default().push(change);
    }

    fn fresh(&mut self) -> u64 {
        self.uids += 1;
        self.uids
    }
}

impl Change {
    /// The event for a watch with these selectors. If an object no longer matches them, the watch gets DELETED, with
    /// the old object at the version of the change.
    pub fn event(&self, selectors: &Selectors) -> Option<(&'static str, Value)> {
        let is_selected = |object: &&Arc<Value>| selectors.match_object(object);
        match (self.before.as_ref().filter(is_selected), self.after.as_ref().filter(is_selected)) {
            (None, Some(after)) => Some(("ADDED", Value::clone(after))),
            (Some(_), Some(after)) => Some(("MODIFIED", Value::clone(after))),
            (Some(before), None) => {
                let mut last = Value::clone(before);
                last["metadata"]["resourceVersion"] = self.version.to_string().into();
                Some(("DELETED", last))
            }
            (None, None) => None,
        }
    }
}

fn merge(target: &mut Value, patch: &Value) {
    let Value::Object(patch) = patch else {
        *target = patch.clone();
        return;
    };
    if !target.is_object() {
        *target = json!({});
    }
    for (key, value) in patch {
        if value.is_null() {
            target.as_object_mut().unwrap().remove(key);
        } else {
            merge(&mut target[key], value);
        }
    }
}

/// The current time in whole seconds, as Kubernetes writes times.
fn now() -> String {
    Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}
