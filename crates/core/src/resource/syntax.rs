//! The syntax of names, labels and the like in Kubernetes (`apimachinery/pkg/util/validation`).

/// Whether the text is a name without dots, such as a namespace: `IsDNS1123Label`.
pub fn is_dns_label(text: &str) -> bool {
    text.len() <= 63 && is_dns_word(text)
}

/// Whether the text is a name that may have dots, such as a pod's: `IsDNS1123Subdomain`.
pub fn is_dns_subdomain(text: &str) -> bool {
    text.len() <= 253 && text.split('.').all(is_dns_word)
}

fn is_dns_word(text: &str) -> bool {
    let edge = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
    text.starts_with(edge) && text.ends_with(edge) && text.chars().all(|c| edge(c) || c == '-')
}

/// Whether the text is the key of a label, an optional DNS prefix and a name: `IsQualifiedName`.
pub fn is_label_key(text: &str) -> bool {
    match text.split_once('/') {
        Some((prefix, name)) => is_dns_subdomain(prefix) && is_qualified_name(name),
        None => is_qualified_name(text),
    }
}

/// Whether the text is the key of an annotation, which may have capitals in its prefix: `ValidateAnnotations`.
pub fn is_annotation_key(text: &str) -> bool {
    is_label_key(&text.to_lowercase())
}

/// Whether the text is the value of a label, which may be empty: `IsValidLabelValue`.
pub fn is_label_value(text: &str) -> bool {
    text.is_empty() || is_qualified_name(text)
}

fn is_qualified_name(text: &str) -> bool {
    let edge = |c: char| c.is_ascii_alphanumeric();
    text.len() <= 63
        && text.starts_with(edge)
        && text.ends_with(edge)
        && text.chars().all(|c| edge(c) || matches!(c, '-' | '_' | '.'))
}

/// Whether `resource.ParseQuantity` reads the text: a decimal number, perhaps with a sign, a suffix or an exponent.
pub fn is_quantity(text: &str) -> bool {
    let text = text.strip_prefix(['+', '-']).unwrap_or(text);
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, suffix) = text.split_at(end);
    let has_digit = number.bytes().any(|byte| byte.is_ascii_digit());
    let is_number = has_digit && number.matches('.').count() <= 1;
    is_number && (QUANTITY_SUFFIXES.contains(&suffix) || is_exponent(suffix))
}

const QUANTITY_SUFFIXES: [&str; 16] =
    ["", "n", "u", "m", "k", "M", "G", "T", "P", "E", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"];

fn is_exponent(text: &str) -> bool {
    let Some(digits) = text.strip_prefix(['e', 'E']) else { return false };
    let digits = digits.strip_prefix(['+', '-']).unwrap_or(digits);
    !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantities_are_those_of_kubernetes() {
        for text in
            ["1", "0", "0.5", ".5", "5.", "500m", "2Gi", "1e3", "1E-3", "100n", "+1", "-1", "4E", "1k"]
        {
            assert!(is_quantity(text), "{text}");
        }
        for text in
            ["", "m", "two", "1 ", " 1", "1g", "1K", "1.2.3", "1e", "1e+", "0x1", "1Mii", "1mi", "--1"]
        {
            assert!(!is_quantity(text), "{text}");
        }
    }

    #[test]
    fn annotation_keys_may_have_capitals_in_their_prefix() {
        assert!(is_annotation_key("Example.COM/Key") && !is_label_key("Example.COM/Key"));
        for key in ["", "a b", "/a", "a/", "a/b/c"] {
            assert!(!is_annotation_key(key), "{key}");
        }
    }
}
