//! The registry of all configuration keys: Spark's own that matter while submitting, kubespark's, and cloakroom's.
//!
//! Code reads a key through its entry here. The tables of keys in docs/reference/keys.md are made from the entries;
//! each `keys!` makes one table.

mod application;
mod credentials;
mod driver;
mod kind;
mod known;
mod own;
mod server;
mod staging;
mod suggestions;
mod volumes;

use std::fmt;
use std::ops::Deref;

pub use application::*;
pub use credentials::*;
pub use driver::*;
pub use kind::Kind;
pub use known::default_of_spark;
pub use own::*;
pub use server::*;
pub use staging::*;
pub use suggestions::{near_miss, nearest_own};
pub use volumes::{
    DRIVER_VOLUMES, EXECUTOR_VOLUMES, LOCAL_DIRS, LOCAL_DIRS_IN_MEMORY, SHARED_CLAIMS, VolumeKeys,
};

/// The prefix of Spark's keys. Spark drops other keys.
pub const PREFIX: &str = "spark.";

/// The description of one key, or of a family of keys.
#[derive(Debug, PartialEq, Eq)]
pub struct Entry {
    /// The key as it is written. A part in capitals stands for any text, as in `spark.kubernetes.driver.label.KEY`.
    pub name: &'static str,
    /// The effect of the key, for tables.
    pub meaning: &'static str,
    /// The kind of its value, for tables.
    pub value: &'static str,
    /// The value or behaviour without the key; `None` if nothing replaces it.
    pub default: Option<&'static str>,
    /// Names that are read if this one is not set, in order of precedence.
    pub alternatives: &'static [&'static str],
    /// The name in kubespark; `None` if it is the same or there is none. A warning suggests today's name.
    pub older_name: Option<&'static str>,
    /// The first Spark version with the key; `None` if 3.5 has it.
    pub since: Option<&'static str>,
    /// The last Spark version with the key; `None` if the newest has it.
    pub until: Option<&'static str>,
    /// Whether Spark fills in `${…}` in the value (`ConfigReader`).
    pub is_substituted: bool,
    /// Whether the value names files of the submitting machine.
    pub names_files: bool,
}

/// A key whose value is read as a `T`. It dereferences to its name.
#[derive(Debug)]
pub struct Key<T: 'static> {
    pub entry: Entry,
    /// How the value is read.
    pub kind: Kind<T>,
}

/// The keys of one table, in the table's order.
#[derive(Debug)]
pub struct KeyTable {
    pub title: &'static str,
    pub entries: &'static [&'static Entry],
}

/// Every table, in the order of the documentation.
pub static TABLES: [&KeyTable; 11] = [
    &application::TABLE,
    &driver::TABLE,
    &volumes::TABLE,
    &driver::NETWORK,
    &credentials::TABLE,
    &staging::TABLE,
    &application::WAITING,
    &own::TABLE,
    &driver::ALWAYS_SET,
    &server::INIT_CONTAINER,
    &server::TABLE,
];

/// Declares the keys of a table, and the table. The doc comment of a key becomes its meaning.
macro_rules! keys {
    ($table:ident = $title:literal: $($(#[doc = $meaning:literal])+ $name:ident: $type:ty = $key:expr;)+) => {
        $(
            $(#[doc = $meaning])+
            pub const $name: $crate::keys::Key<$type> = $key.meaning(concat!($($meaning),+));
        )+
        pub(super) static $table: $crate::keys::KeyTable =
            $crate::keys::KeyTable { title: $title, entries: &[$(&$name.entry),+] };
    };
}
use keys;

impl<T> Key<T> {
    const fn new(name: &'static str, kind: Kind<T>) -> Self {
        let entry = Entry {
            name,
            meaning: "",
            value: kind.value,
            default: None,
            alternatives: &[],
            older_name: None,
            since: None,
            until: None,
            is_substituted: false,
            names_files: false,
        };
        Self { entry, kind }
    }

    const fn meaning(mut self, meaning: &'static str) -> Self {
        self.entry.meaning = meaning;
        self
    }

    const fn or(mut self, default: &'static str) -> Self {
        self.entry.default = Some(default);
        self
    }

    const fn also(mut self, alternatives: &'static [&'static str]) -> Self {
        self.entry.alternatives = alternatives;
        self
    }

    const fn renamed(mut self, older_name: &'static str) -> Self {
        self.entry.older_name = Some(older_name);
        self
    }

    const fn since(mut self, version: &'static str) -> Self {
        self.entry.since = Some(version);
        self
    }

    const fn until(mut self, version: &'static str) -> Self {
        self.entry.until = Some(version);
        self
    }

    const fn substituted(mut self) -> Self {
        self.entry.is_substituted = true;
        self
    }

    const fn file(mut self) -> Self {
        self.entry.names_files = true;
        self
    }

    /// The key's name, usable in constants.
    pub const fn name(&self) -> &'static str {
        self.entry.name
    }

    /// The part of a family's name before the first part in capitals, with the dot.
    pub fn prefix(&self) -> &'static str {
        self.entry.prefix()
    }

    /// Makes the key of a family, with these texts in place of the parts in capitals.
    pub fn of(&self, parts: &[&str]) -> String {
        let mut parts = parts.iter();
        let filled = |part| if is_placeholder(part) { parts.next().copied().unwrap_or(part) } else { part };
        self.entry.name.split('.').map(filled).collect::<Vec<_>>().join(".")
    }
}

impl Entry {
    /// The part of the name before the first part in capitals, with the dot. The whole name if there is no such part.
    pub fn prefix(&self) -> &'static str {
        let mut end = 0;
        for part in self.name.split('.') {
            if is_placeholder(part) {
                return &self.name[..end];
            }
            end += part.len() + 1;
        }
        self.name
    }

    /// Whether `key` belongs to this entry: by its name, by another name, or as a member of the family.
    pub fn is_of(&self, key: &str) -> bool {
        self.name == key
            || self.alternatives.contains(&key)
            || self.older_name == Some(key)
            || self.is_family() && self.has_member(key)
    }

    /// Whether the entry stands for several keys.
    pub fn is_family(&self) -> bool {
        self.name.split('.').any(is_placeholder)
    }

    /// Whether a key is in the family. If the last part is in capitals, it may stand for text with dots, as in keys of
    /// labels.
    fn has_member(&self, key: &str) -> bool {
        let (mut own, mut given) = (self.name.split('.').peekable(), key.split('.'));
        while let Some(part) = own.next() {
            match given.next() {
                None | Some("") if is_placeholder(part) => return false,
                Some(_) if is_placeholder(part) && own.peek().is_none() => return true,
                Some(other) if is_placeholder(part) || other == part => {}
                _ => return false,
            }
        }
        given.next().is_none()
    }
}

/// The entry of a key; `None` if the registry does not have the key.
pub fn find(key: &str) -> Option<&'static Entry> {
    entries().find(|entry| entry.is_of(key))
}

/// All entries of all tables.
pub fn entries() -> impl Iterator<Item = &'static Entry> {
    TABLES.iter().flat_map(|table| table.entries.iter().copied())
}

fn is_placeholder(part: &str) -> bool {
    !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_uppercase())
}

impl<T> Deref for Key<T> {
    type Target = str;

    fn deref(&self) -> &str {
        self.entry.name
    }
}

impl<T> fmt::Display for Key<T> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.entry.name)
    }
}
