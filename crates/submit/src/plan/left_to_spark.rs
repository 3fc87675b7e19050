//! Checks of settings that have no effect here. spark-submit refuses wrong values of them, and so does this.

use super::folder;
use super::submitter::Machine;
use cloakroom_spark::keys::{EXCLUDED_PACKAGES, IVY_SETTINGS, PACKAGES, PYTHON_VERSION};
use cloakroom_spark::version::SparkVersion;
use cloakroom_spark::{DependencyUri, MainResource, SettingError, SparkConf};

/// Checks packages, and the version of Python.
pub(super) fn check(
    conf: &SparkConf,
    resource: &MainResource,
    version: SparkVersion,
) -> Result<(), SettingError> {
    check_packages(conf)?;
    let is_python = matches!(resource, MainResource::Python(_));
    match conf.get(&PYTHON_VERSION) {
        Some(given) if is_python && version.has_python_version() && given != "3" => {
            Err(conf.refuse(&PYTHON_VERSION, "it must be 3: Spark has no other Python since 3.1"))
        }
        _ => Ok(()),
    }
}

/// Checks the form of coordinates, as spark-submit does before it resolves them (`MavenUtils.extractMavenCoordinates`).
/// It accepts blanks in them, but never finds such packages, so they are refused here.
fn check_packages(conf: &SparkConf) -> Result<(), SettingError> {
    let Some(packages) = conf.get(&PACKAGES).filter(|list| !list.trim().is_empty()) else { return Ok(()) };
    if !listed(packages).all(|package| is_coordinate(&package.replace('/', ":"), 3)) {
        return Err(conf.refuse(
            &PACKAGES,
            "it must be coordinates of Maven, groupId:artifactId:version, with commas between them and no blanks",
        ));
    }
    let excluded = conf.get(&EXCLUDED_PACKAGES).filter(|list| !list.trim().is_empty());
    if excluded.is_some_and(|list| !listed(list).all(|name| is_coordinate(&name.replace('/', ":"), 2))) {
        return Err(conf.refuse(
            &EXCLUDED_PACKAGES,
            "it must be names of Maven, groupId:artifactId, with commas between them and no blanks",
        ));
    }
    Ok(())
}

/// The entries of a list as Java's `split` gives them: empty entries at the end are dropped.
fn listed(list: &str) -> impl Iterator<Item = &str> {
    list.trim_end_matches(',').split(',')
}

/// Whether a text is `words` words with colons between them. Java's `split` ignores more colons at the end.
fn is_coordinate(text: &str, words: usize) -> bool {
    let is_word = |word: &str| !word.is_empty() && !word.contains(char::is_whitespace);
    let text = text.trim_end_matches(':');
    text.split(':').count() == words && text.split(':').all(is_word)
}

/// Checks that the settings of Ivy can be read. spark-submit reads them (`MavenUtils.loadIvySettings`), although the
/// driver resolves the packages. Nothing here uses the content.
pub(super) fn check_ivy_settings(conf: &SparkConf, machine: Machine) -> Result<(), SettingError> {
    let Some(place) = conf.get(&IVY_SETTINGS) else { return Ok(()) };
    let refuse = |problem: String| conf.refuse(&IVY_SETTINGS, problem);
    match DependencyUri::parse(place).map_err(|error| refuse(error.to_string()))? {
        DependencyUri::Submitter(file) => {
            machine.read(file.whole_path()).map(drop).map_err(|error| refuse(folder::unreadable(&error)))
        }
        _ => Err(refuse("it must be a path or a file: URI of the submitting machine".to_owned())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cloakroom_spark::Origin;

    fn checked(packages: &str, excluded: &str) -> Result<(), String> {
        let mut conf = SparkConf::default();
        conf.set(&PACKAGES, packages, Origin::Conf);
        conf.set(&EXCLUDED_PACKAGES, excluded, Origin::Conf);
        check_packages(&conf).map_err(|error| error.to_string())
    }

    #[test]
    fn packages_are_coordinates_of_three_words() {
        for packages in ["", " ", "g:a:1", "g:a:1,g.h:b-c:2.0", "g/a/1", "g:a:1,", "g:a:1::"] {
            checked(packages, "").unwrap();
        }
        for packages in
            ["a:b", "a", "g:a:1:jar", "g:a:1,,g:b:1", ",", ":a:1", "g::1", " g:a:1", "g:a:1, g:b:1"]
        {
            let said = checked(packages, "").unwrap_err();
            assert!(said.contains("groupId:artifactId:version"), "{packages}: {said}");
        }
    }

    #[test]
    fn what_is_excluded_is_two_words_and_matters_only_with_packages() {
        for (packages, excluded) in [("g:a:1", "g:b"), ("g:a:1", "g:b,h/c"), ("g:a:1", ""), ("", "x")] {
            checked(packages, excluded).unwrap();
        }
        for excluded in ["x", "g:b:1", "g: b"] {
            let said = checked("g:a:1", excluded).unwrap_err();
            assert!(said.starts_with("`spark.jars.excludes` is "), "{said}");
        }
    }
}
