//! Gives every file of a flat bundle its own name.

use std::collections::{HashMap, HashSet};

/// Returns one name for each of `names`, in the same order. The first file with a name keeps it, the second becomes
/// `name-1.ext`, the third `name-2.ext`. A number is skipped if another file of the list already has that name.
pub fn unique_names(names: &[String]) -> Vec<String> {
    let mut taken: HashSet<String> = names.iter().cloned().collect();
    let mut copies: HashMap<&str, u64> = HashMap::new();
    names
        .iter()
        .map(|name| match copies.get_mut(name.as_str()) {
            None => {
                copies.insert(name, 0);
                name.clone()
            }
            Some(number) => next_free(name, number, &mut taken),
        })
        .collect()
}

/// Counts up from `number` until the numbered name is free, and takes that name.
fn next_free(name: &str, number: &mut u64, taken: &mut HashSet<String>) -> String {
    let (stem, extension) = split_extension(name);
    loop {
        *number += 1;
        let candidate = format!("{stem}-{number}{extension}");
        if taken.insert(candidate.clone()) {
            return candidate;
        }
    }
}

/// Splits before the last dot, or before `.tar` if that comes right before the last dot. A dot at the beginning does
/// not start an extension.
fn split_extension(name: &str) -> (&str, &str) {
    let Some(dot) = name.rfind('.').filter(|&dot| dot > 0) else {
        return (name, "");
    };
    let stem = &name.as_bytes()[..dot];
    let tar = b".tar";
    let doubled = stem.len() > tar.len() && stem[stem.len() - tar.len()..].eq_ignore_ascii_case(tar);
    name.split_at(if doubled { dot - tar.len() } else { dot })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn unique(names: &[&str]) -> Vec<String> {
        unique_names(&names.iter().map(|&name| name.to_owned()).collect::<Vec<_>>())
    }

    #[test]
    fn same_names_are_numbered_before_their_extension() {
        assert_eq!(unique(&["a.jar", "a.jar", "b.jar", "a.jar"]), ["a.jar", "a-1.jar", "b.jar", "a-2.jar"]);
    }

    #[test]
    fn a_number_never_takes_a_real_name_whichever_comes_first() {
        assert_eq!(unique(&["a.jar", "a.jar", "a-1.jar"]), ["a.jar", "a-2.jar", "a-1.jar"]);
        assert_eq!(unique(&["a-1.jar", "a.jar", "a.jar"]), ["a-1.jar", "a.jar", "a-2.jar"]);
        assert_eq!(unique(&["a-1", "a-1", "a", "a"]), ["a-1", "a-1-1", "a", "a-2"]);
    }

    #[test]
    fn double_extensions_stay_together() {
        for (name, second) in [
            ("a.tar.gz", "a-1.tar.gz"),
            ("a.b.TAR.bz2", "a.b-1.TAR.bz2"),
            (".tar.gz", ".tar-1.gz"),
            ("a-1.2.jar", "a-1.2-1.jar"),
            (".hidden", ".hidden-1"),
            ("README", "README-1"),
            ("größe.tar.gz", "größe-1.tar.gz"),
            ("éa.x", "éa-1.x"),
        ] {
            assert_eq!(unique(&[name, name]), [name, second]);
        }
    }

    proptest! {
        #[test]
        fn no_two_names_are_ever_the_same(
            names in prop::collection::vec("[ab](-[12]){0,2}(\\.tar)?(\\.(gz|jar))?", 0..40)
        ) {
            let unique = unique_names(&names);
            let distinct: HashSet<&String> = unique.iter().collect();
            prop_assert_eq!(distinct.len(), names.len());
            let real: HashSet<&String> = names.iter().collect();
            for (name, given) in names.iter().zip(&unique) {
                prop_assert!(name == given || !real.contains(given));
            }
        }
    }
}
