//! The namespaces that a server serves.

use std::collections::BTreeSet;
use std::fmt;

use super::OwnerError;
use super::owner::check_namespace;

/// A list of namespaces; never empty.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Namespaces(BTreeSet<String>);

impl Namespaces {
    /// Reads a comma-separated list of namespaces; at least one.
    pub fn parse(text: &str) -> Result<Self, OwnerError> {
        let names: BTreeSet<String> =
            text.split(',').map(str::trim).filter(|name| !name.is_empty()).map(str::to_owned).collect();
        names.iter().try_for_each(|name| check_namespace(name))?;
        if names.is_empty() { Err(OwnerError::NoNamespace) } else { Ok(Self(names)) }
    }

    /// Accepts `namespace`, or returns an error that lists the namespaces of this server.
    pub fn check(&self, namespace: &str) -> Result<(), OwnerError> {
        if self.0.contains(namespace) {
            return Ok(());
        }
        Err(OwnerError::OtherNamespace { namespace: namespace.to_owned(), known: self.to_string() })
    }

    /// All namespaces, in alphabetical order.
    pub fn iter(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(String::as_str)
    }
}

impl fmt::Display for Namespaces {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.iter().collect::<Vec<_>>().join(","))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_of_namespaces_is_read_and_checked() {
        let namespaces = Namespaces::parse(" spark, etl,spark,").unwrap();
        assert_eq!(namespaces.to_string(), "etl,spark");
        namespaces.check("etl").unwrap();
        let refused = namespaces.check("demo").unwrap_err().to_string();
        assert!(refused.contains("“demo”") && refused.contains("etl,spark"), "{refused}");
        for text in ["", " , ", "Spark", "a,b_c", "a b"] {
            assert!(Namespaces::parse(text).is_err(), "{text}");
        }
    }
}
