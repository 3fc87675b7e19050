//! The log lines of this process, and the check that no secret is in them.

use std::io::{self, Write};
use std::sync::{Arc, LazyLock, Mutex, Once};

use tracing_subscriber::fmt::MakeWriter;

static LOG: LazyLock<Arc<Mutex<Vec<u8>>>> = LazyLock::new(Arc::default);
static START: Once = Once::new();

/// Starts capturing, once for the whole test binary. Lines have no time, because its digits can be those that a test looks
/// for.
pub fn capture() {
    START.call_once(|| {
        let _ = tracing_subscriber::fmt()
            .with_max_level(tracing::Level::TRACE)
            .with_ansi(false)
            .without_time()
            .with_writer(Buffer)
            .try_init();
    });
}

/// All lines so far, of all tests.
pub fn text() -> String {
    String::from_utf8_lossy(&LOG.lock().unwrap()).into_owned()
}

/// The lines that contain `needle`, such as a resource id.
pub fn lines_with(needle: &str) -> Vec<String> {
    text().lines().filter(|line| line.contains(needle)).map(str::to_owned).collect()
}

/// Fails if any of the secrets was logged.
pub fn assert_free_of(secrets: &[String]) {
    let text = text();
    for secret in secrets {
        assert!(!text.contains(secret.as_str()), "a secret was logged");
    }
}

#[derive(Clone)]
struct Buffer;

impl Write for Buffer {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        LOG.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl<'a> MakeWriter<'a> for Buffer {
    type Writer = Self;

    fn make_writer(&'a self) -> Self {
        Self
    }
}
