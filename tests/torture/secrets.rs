//! Every secret that a test knows, to be looked for where it must not be.

use std::collections::HashSet;
use std::sync::Mutex;

use crate::connection::Answer;

/// The length of a ticket's secret: 256 bits in base64 without padding.
const SECRET_LENGTH: usize = 43;

/// Tokens and the secrets of tickets.
#[derive(Default)]
pub struct Secrets {
    /// Long and few: looked for one by one.
    tokens: Mutex<Vec<String>>,
    /// Of one length, and thousands.
    tickets: Mutex<HashSet<String>>,
}

impl Secrets {
    pub fn keep_token(&self, token: &str) {
        self.tokens.lock().unwrap().push(token.to_owned());
    }

    /// Keeps the secret of an answer that is a ticket, and returns id and secret.
    pub fn keep_ticket(&self, answer: &Answer) -> Option<(String, String)> {
        let (id, secret) = (answer.field("resourceId"), answer.field("resourceSecret"));
        if secret.is_empty() {
            return None;
        }
        assert_eq!(secret.len(), SECRET_LENGTH, "secrets have another length now: look for those");
        self.tickets.lock().unwrap().insert(secret.clone());
        Some((id, secret))
    }

    /// Fails, without the secret, if one is in the text.
    pub fn assert_none_in(&self, place: &str, text: &str) {
        assert!(!self.is_one_in(text), "a token, or the secret of a ticket, is in {place}");
    }

    fn is_one_in(&self, text: &str) -> bool {
        let tickets = self.tickets.lock().unwrap();
        let is_ticket = |part: &[u8]| tickets.contains(std::str::from_utf8(part).unwrap());
        let is_of_secret = |byte: &u8| byte.is_ascii_alphanumeric() || b"-_".contains(byte);
        let mut words = text.as_bytes().split(|byte| !is_of_secret(byte));
        words.any(|word| word.windows(SECRET_LENGTH).any(is_ticket))
            || self.tokens.lock().unwrap().iter().any(|token| text.contains(token))
    }
}

/// A check that finds nothing must be one that would.
pub fn planted_secrets_are_found() {
    let secrets = Secrets::default();
    secrets.keep_token("a-token");
    let secret = "s".repeat(SECRET_LENGTH);
    secrets.tickets.lock().unwrap().insert(secret.clone());
    for (text, expected) in [
        (format!("x{secret}y"), true),
        ("bearer=a-token;".to_owned(), true),
        (format!("{} and a.token", &secret[1..]), false),
    ] {
        assert_eq!(secrets.is_one_in(&text), expected, "{text}");
    }
}
