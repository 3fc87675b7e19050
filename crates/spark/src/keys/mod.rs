//! The one registry of configuration keys: Spark's own that act while submitting, kubespark's, and this program's.
//!
//! Code reads a key through its entry here, and the tables of keys in docs/submit-reference.md are made from the entries.
//! Each file has the keys of one table.

mod application;
mod credentials;
mod driver;
mod init_container;
mod kind;
mod known;
mod near;
mod network;
mod own;
mod server;
mod staging;
mod told;
mod volumes;
mod waiting;

use std::fmt;
use std::ops::Deref;

pub use application::*;
pub use credentials::*;
pub use driver::*;
pub use init_container::*;
pub use kind::Kind;
pub use known::default_of_spark;
pub use near::{near_miss, nearest_own, without_prefix};
pub use network::*;
pub use own::*;
pub use server::*;
pub use staging::*;
pub use told::*;
pub use volumes::{
    DRIVER_VOLUMES, EXECUTOR_VOLUMES, LOCAL_DIRS, LOCAL_DIRS_IN_MEMORY, SHARED_CLAIMS, VolumeKeys,
};
pub use waiting::*;

/// What every key of Spark begins with; it drops others.
pub const PREFIX: &str = "spark.";

/// What is known of one key, or of a family of keys.
#[derive(Debug, PartialEq, Eq)]
pub struct Entry {
    /// As it is written. A part in capitals stands for any text, as in `spark.kubernetes.driver.label.KEY`.
    pub name: &'static str,
    /// What it does.
    pub meaning: &'static str,
    /// What its value must be.
    pub value: &'static str,
    /// What counts where it is not set.
    pub default: Option<&'static str>,
    /// Names that are read where this one is not set, the first one first.
    pub alternatives: &'static [&'static str],
    /// Its name in kubespark. A warning asks for today's.
    pub older_name: Option<&'static str>,
    /// The first Spark that has it, if that is one after 3.5.
    pub since: Option<&'static str>,
    /// The last Spark that has it, if that is one before the newest.
    pub until: Option<&'static str>,
    /// Whether `${…}` in its value is filled in (Spark's `ConfigReader`).
    pub is_substituted: bool,
    /// Whether it names files of the submitting machine.
    pub names_files: bool,
}

/// A key whose value is read as a `T`. Wherever text is wanted it is its name.
#[derive(Debug)]
pub struct Key<T: 'static> {
    /// What is known of it.
    pub entry: Entry,
    /// How its value is read.
    pub kind: Kind<T>,
}

/// The keys of one table, in its order.
#[derive(Debug)]
pub struct Table {
    /// What they are about.
    pub title: &'static str,
    /// The keys.
    pub entries: &'static [&'static Entry],
}

/// Every key that there is.
pub static TABLES: [&Table; 11] = [
    &application::TABLE,
    &driver::TABLE,
    &volumes::TABLE,
    &network::TABLE,
    &credentials::TABLE,
    &staging::TABLE,
    &waiting::TABLE,
    &own::TABLE,
    &told::TABLE,
    &init_container::TABLE,
    &server::TABLE,
];

/// Declares the keys of a table. What their comments say is their meaning.
macro_rules! keys {
    ($title:literal: $($(#[doc = $meaning:literal])+ $name:ident: $type:ty = $key:expr;)+) => {
        $(
            $(#[doc = $meaning])+
            pub const $name: $crate::keys::Key<$type> = $key.meaning(concat!($($meaning),+));
        )+
        pub(super) static TABLE: $crate::keys::Table =
            $crate::keys::Table { title: $title, entries: &[$(&$name.entry),+] };
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

    /// Its name, also in constants.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        self.entry.name
    }

    /// What stands before the part of a family that differs, with the dot.
    #[must_use]
    pub fn prefix(&self) -> &'static str {
        self.entry.prefix()
    }

    /// The key of a family with these texts in place of its parts in capitals.
    #[must_use]
    pub fn of(&self, parts: &[&str]) -> String {
        let mut parts = parts.iter();
        let filled = |part| if is_placeholder(part) { parts.next().copied().unwrap_or(part) } else { part };
        self.entry.name.split('.').map(filled).collect::<Vec<_>>().join(".")
    }
}

impl Entry {
    /// What stands before the first part that differs, with the dot; the whole name where none does.
    #[must_use]
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

    /// Whether this is the entry of a key.
    #[must_use]
    pub fn is_of(&self, key: &str) -> bool {
        self.name == key
            || self.alternatives.contains(&key)
            || self.older_name == Some(key)
            || self.is_family() && self.has_member(key)
    }

    /// Whether it stands for several keys.
    #[must_use]
    pub fn is_family(&self) -> bool {
        self.name.split('.').any(is_placeholder)
    }

    /// A last part that differs may have dots in it, as keys of labels have.
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

/// The entry that a key has in the registry.
#[must_use]
pub fn find(key: &str) -> Option<&'static Entry> {
    entries().find(|entry| entry.is_of(key))
}

/// All entries.
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
