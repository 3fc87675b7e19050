//! Events, kept as the data that they are.

use std::sync::{Arc, Mutex};

use cloakroom_submit::{Event, Events, Log};
use serde_json::Value;

#[derive(Default)]
pub struct Kept(Mutex<Vec<Value>>);

impl Kept {
    pub fn log(self: &Arc<Self>) -> Log {
        Log::to(Arc::clone(self) as Arc<dyn Events>)
    }

    pub fn all(&self) -> Vec<Value> {
        self.0.lock().unwrap().clone()
    }

    /// Those that are called so.
    pub fn called(&self, name: &str) -> Vec<Value> {
        self.all().into_iter().filter(|event| event["event"] == name).collect()
    }
}

impl Events for Kept {
    fn happened(&self, event: &Event) {
        self.0.lock().unwrap().push(serde_json::to_value(event).unwrap());
    }
}
