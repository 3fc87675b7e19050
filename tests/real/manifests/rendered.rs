//! The objects of one rendering.

use cloakroom_testing::known::{list, text};
use serde_json::Value;

#[derive(Clone)]
pub struct Rendered(Vec<Value>);

impl Rendered {
    pub fn new(objects: Vec<Value>) -> Self {
        Self(objects)
    }

    pub fn objects(&self) -> &[Value] {
        &self.0
    }

    pub fn of_kind<'a>(&'a self, kind: &'a str) -> impl Iterator<Item = &'a Value> {
        self.0.iter().filter(move |object| object["kind"] == kind)
    }

    pub fn find(&self, kind: &str, name: &str) -> Option<&Value> {
        self.0.iter().find(|object| object["kind"] == kind && object["metadata"]["name"] == name)
    }

    pub fn one(&self, kind: &str, name: &str) -> &Value {
        self.find(kind, name).unwrap_or_else(|| panic!("there is no {kind} {name}"))
    }

    pub fn deployment(&self) -> &Value {
        self.one("Deployment", "cloakroom")
    }

    pub fn pod(&self) -> &Value {
        &self.deployment()["spec"]["template"]["spec"]
    }

    pub fn container(&self) -> &Value {
        &self.pod()["containers"][0]
    }

    /// Names and values of the container's environment, without those that come from Secrets.
    pub fn environment(&self) -> Vec<(String, String)> {
        let pairs = list(&self.container()["env"]).iter().filter(|pair| pair["valueFrom"].is_null());
        pairs.map(|pair| (text(&pair["name"]).to_owned(), text(&pair["value"]).to_owned())).collect()
    }

    /// One value of the environment.
    pub fn variable(&self, name: &str) -> Option<String> {
        self.environment().into_iter().find(|(known, _)| known == name).map(|(_, value)| value)
    }

    /// Breaks something.
    pub fn set(&mut self, kind: &str, name: &str, pointer: &str, value: Value) {
        let mut objects = self.0.iter_mut();
        let object = objects.find(|object| object["kind"] == kind && object["metadata"]["name"] == name);
        let place = object.and_then(|object| object.pointer_mut(pointer));
        *place.unwrap_or_else(|| panic!("{kind} {name} has no {pointer}")) = value;
    }
}
