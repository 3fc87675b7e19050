//! Mistyped words.

/// The one of `known` that was probably meant by `typed`: at most two letters, and a third of the word, are wrong,
/// missing, swapped or superfluous. Capital and small letters are the same.
pub fn nearest<T: AsRef<str>>(typed: &str, known: impl IntoIterator<Item = T>) -> Option<T> {
    let typed = typed.to_lowercase();
    let near = known.into_iter().filter_map(|word| Some((distance(&typed, word.as_ref())?, word)));
    near.min_by_key(|(letters, _)| *letters).map(|(_, word)| word)
}

fn distance(typed: &str, word: &str) -> Option<usize> {
    const LETTERS: usize = 2;
    let (length, other) = (typed.chars().count(), word.chars().count());
    // The comparison takes the product of both lengths.
    if length.abs_diff(other) > LETTERS {
        return None;
    }
    let letters = strsim::osa_distance(typed, &word.to_lowercase());
    (letters <= LETTERS.min(length.max(other) / 3)).then_some(letters)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_wrong_letters_are_a_typing_mistake() {
        let known = ["Pod", "Job", "--driver-memory", "spark.kubernetes.container.image"];
        for (typed, meant) in [
            ("pods", Some("Pod")),
            ("JOB", Some("Job")),
            ("Jod", Some("Pod")),
            ("Jobber", None),
            ("Hob", Some("Job")),
            ("Hop", None),
            ("--driver-memroy", Some("--driver-memory")),
            ("--driver_memroy", Some("--driver-memory")),
            ("--driver_memroyy", None),
            ("spark.kubernetes.conatiner.image", Some("spark.kubernetes.container.image")),
            ("", None),
        ] {
            assert_eq!(nearest(typed, known), meant, "{typed}");
        }
    }
}
