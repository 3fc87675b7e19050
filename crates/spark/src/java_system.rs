//! The properties of the JVM in which spark-submit would run: `-DNAME=VALUE` in its environment variables and its file
//! of options.

use std::collections::BTreeMap;

use super::arguments::java_options::words;

/// The variables that a JVM and its launcher read. A later one wins.
const OF_JVM: [&str; 2] = ["JAVA_TOOL_OPTIONS", "JDK_JAVA_OPTIONS"];
/// The variable of Spark's launcher.
const OF_SPARK: &str = "SPARK_SUBMIT_OPTS";
/// The variable that a JVM reads after all other options.
const OF_JVM_AT_LAST: &str = "_JAVA_OPTIONS";

/// Returns the properties that the options set, by their names; the last value of a name wins. `java_opts` is the
/// content of the file `java-opts` in Spark's configuration folder.
pub fn properties_of_options(
    variables: &BTreeMap<String, String>,
    java_opts: Option<&str>,
) -> BTreeMap<String, String> {
    let of = |name: &str| variables.get(name).map(String::as_str).unwrap_or_default();
    let of_jvm = OF_JVM.into_iter().flat_map(|name| words_of_jvm(of(name)));
    let of_file = java_opts.unwrap_or_default().lines().flat_map(words_of_launcher);
    let all =
        of_jvm.chain(of_file).chain(words_of_launcher(of(OF_SPARK))).chain(words_of_jvm(of(OF_JVM_AT_LAST)));
    let property = |word: String| {
        let property = word.strip_prefix("-D")?;
        let (name, value) = property.split_once('=').unwrap_or((property, ""));
        Some((name.to_owned(), value.to_owned()))
    };
    all.filter_map(property).collect()
}

/// Splits options as Spark's launcher does. With an open quotation mark spark-submit would not start; here such options
/// have no effect.
fn words_of_launcher(text: &str) -> Vec<String> {
    words(text).unwrap_or_default()
}

/// Splits options as a JVM does. Quotation marks of both kinds protect blanks, and a backslash has no special meaning.
fn words_of_jvm(text: &str) -> Vec<String> {
    words(&text.replace('\\', r"\\")).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn properties(variables: &[(&str, &str)], java_opts: &str) -> Vec<(String, String)> {
        let variables = variables.iter().map(|&(name, value)| (name.to_owned(), value.to_owned())).collect();
        properties_of_options(&variables, Some(java_opts)).into_iter().collect()
    }

    fn one(name: &str, value: &str) -> Vec<(String, String)> {
        vec![(name.to_owned(), value.to_owned())]
    }

    #[test]
    fn options_that_begin_with_capital_d_are_properties_and_others_are_not() {
        let options = r#"-Xmx1g -Da=b=c -Dd "-De=f g" -Dh=i\ j -cp x"#;
        let expected = [("a", "b=c"), ("d", ""), ("e", "f g"), ("h", "i j")]
            .map(|(name, value)| (name.to_owned(), value.to_owned()));
        assert_eq!(properties(&[("SPARK_SUBMIT_OPTS", options)], ""), expected);
        assert_eq!(properties(&[("JAVA_TOOL_OPTIONS", r"'-Da=b c' -Dd=\e")], "").len(), 2);
        assert_eq!(properties(&[("JAVA_TOOL_OPTIONS", r"-Dd=\e")], ""), one("d", r"\e"));
        assert_eq!(properties(&[("SPARK_SUBMIT_OPTS", "-Da='b"), ("SPARK_LAUNCHER_OPTS", "-Dc=d")], ""), []);
    }

    #[test]
    fn later_places_win_over_earlier_ones() {
        let places = [
            ("JAVA_TOOL_OPTIONS", "-Da=1"),
            ("JDK_JAVA_OPTIONS", "-Da=2"),
            ("SPARK_SUBMIT_OPTS", "-Da=4"),
            ("_JAVA_OPTIONS", "-Da=5"),
        ];
        for (count, value) in [(1, "1"), (2, "2"), (3, "4"), (4, "5")] {
            assert_eq!(properties(&places[..count], ""), one("a", value));
        }
        assert_eq!(properties(&places[..2], "-Da=0\n-Da=3"), one("a", "3"));
        assert_eq!(properties(&places[..3], "-Da=3"), one("a", "4"));
    }
}
