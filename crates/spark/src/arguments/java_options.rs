//! Checks the driver's JVM options, which may not set the size of the heap (`SparkSubmitCommandBuilder`).

use crate::conf::{SettingError, SparkConf};
use crate::keys;
use crate::version::SparkVersion;

const KEYS: [&str; 2] = [keys::DRIVER_DEFAULT_JAVA_OPTIONS.name(), keys::DRIVER_JAVA_OPTIONS.name()];

const OPEN: &str = "it must have an end to each quotation mark, and no backslash at its end";

/// Refuses `-Xmx`, as Spark's launcher does. It does so even for `--kill` and `--status`.
pub fn check(conf: &SparkConf) -> Result<(), SettingError> {
    let is_word = SparkVersion::read(conf)?.0.looks_for_words();
    for key in KEYS {
        let options = conf.get(key).unwrap_or_default();
        let has_heap = if is_word {
            let words = words(options).ok_or_else(|| conf.refuse(key, OPEN))?;
            words.iter().any(|word| word.starts_with("-Xmx"))
        } else {
            options.contains("Xmx")
        };
        if has_heap {
            let way_out = "-Xmx is not allowed in it; give --driver-memory (`spark.driver.memory`) instead";
            return Err(conf.refuse(key, way_out));
        }
    }
    Ok(())
}

/// Splits options as Spark's launcher does (`CommandBuilderUtils.parseOptionString`). Quotation marks of both kinds
/// protect blanks. A backslash protects the next character, except inside single quotation marks. `None` if a quotation
/// mark or a backslash is left open. The crate shlex follows a POSIX shell instead: `#` begins a comment, and inside
/// double quotation marks a backslash stays before most characters.
pub(crate) fn words(text: &str) -> Option<Vec<String>> {
    let (mut words, mut word, mut quote) = (Vec::new(), None::<String>, None);
    let mut characters = text.chars();
    while let Some(character) = characters.next() {
        match (character, quote) {
            (' ' | '\t' | '\n' | '\r' | '\u{b}' | '\u{c}', None) => {
                words.extend(word.take());
                continue;
            }
            ('\\', None | Some('"')) => word.get_or_insert_default().push(characters.next()?),
            ('"' | '\'', None) => quote = Some(character),
            (_, Some(end)) if character == end => quote = None,
            _ => word.get_or_insert_default().push(character),
        }
        word.get_or_insert_default();
    }
    words.extend(word);
    quote.is_none().then_some(words)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Origin;

    fn is_taken(version: &str, key: &str, options: &str) -> bool {
        let mut conf = SparkConf::default();
        conf.set(&keys::CLOAKROOM_SPARK_VERSION, version, Origin::Conf);
        conf.set(key, options, Origin::Conf);
        check(&conf).is_ok()
    }

    #[test]
    fn the_size_of_the_heap_is_refused_among_the_drivers_options() {
        for key in KEYS {
            for version in ["3.5.9", "4.0.0", "4.3.0"] {
                for options in ["-Xmx2g", "-Da=b -Xmx2g", "-Da=b\t'-Xmx2g'", "\"-Da=b c\" -Xmx1g"] {
                    assert!(!is_taken(version, key, options), "{version}: {options}");
                }
                for options in ["", "-Xms2g -Xss1m", "-xmx2g", "${env:XMX}"] {
                    assert!(is_taken(version, key, options), "{version}: {options}");
                }
            }
        }
        assert!(is_taken("4.3.0", "spark.executor.extraJavaOptions", "-Xmx2g"));
    }

    #[test]
    fn spark_3_5_looks_for_the_letters_anywhere_and_later_ones_for_a_word() {
        for options in ["-DnotXmxed=1", "'-Da=b -Xmx2g'", "-Da=\"b -Xmx2g\""] {
            assert!(!is_taken("3.5.9", KEYS[1], options), "{options}");
            assert!(is_taken("4.0.0", KEYS[1], options), "{options}");
        }
    }

    #[test]
    fn words_are_taken_apart_as_a_shell_does() {
        let read = |text| words(text).unwrap();
        assert_eq!(read(" a 'b c'd \"e\\\"f\" g\\ h '' "), ["a", "b cd", "e\"f", "g h", ""]);
        for open in ["a 'b", "\"a", "a\\"] {
            assert_eq!(words(open), None, "{open}");
            assert!(!is_taken("4.0.0", KEYS[0], open) && is_taken("3.5.9", KEYS[0], open), "{open}");
        }
    }
}
