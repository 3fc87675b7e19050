//! A submission while it runs, and after its end.

use std::io::Read;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

use cloakroom_testing::wait::until_true;

/// A submission that was started. Killed when dropped.
pub struct Running {
    child: Child,
    told: Arc<Mutex<String>>,
    readers: Vec<JoinHandle<()>>,
}

/// A submission that has ended.
pub struct Ended {
    pub code: i32,
    /// All that it printed.
    pub told: String,
}

impl Running {
    pub fn start(mut command: Command) -> Self {
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let told = Arc::new(Mutex::new(String::new()));
        let streams: [Box<dyn Read + Send>; 2] =
            [Box::new(child.stdout.take().unwrap()), Box::new(child.stderr.take().unwrap())];
        let readers = streams.map(|stream| {
            let told = Arc::clone(&told);
            std::thread::spawn(move || keep(stream, &told))
        });
        Self { child, told, readers: readers.into() }
    }

    pub fn told(&self) -> String {
        self.told.lock().unwrap().clone()
    }

    /// Waits until it was said.
    pub async fn says(&self, what: &str) {
        let mut last = String::new();
        let is_said = || {
            last = self.told();
            last.contains(what)
        };
        until_true(&format!("“{what}” is said"), is_said).await;
    }

    pub fn interrupt(&self) {
        self.signal("INT");
    }

    pub fn signal(&self, name: &str) {
        let pid = self.child.id().to_string();
        assert!(Command::new("kill").args(["-s", name, &pid]).status().unwrap().success());
    }

    /// Waits for as long as the test may take.
    pub async fn end(mut self) -> Ended {
        let code = loop {
            match self.child.try_wait().unwrap() {
                Some(status) => break status.code().unwrap(),
                None => tokio::time::sleep(Duration::from_millis(5)).await,
            }
        };
        self.readers.drain(..).for_each(|reader| reader.join().unwrap());
        Ended { code, told: self.told() }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn keep(mut stream: impl Read, told: &Mutex<String>) {
    let mut bytes = [0; 4096];
    while let Ok(read @ 1..) = stream.read(&mut bytes) {
        told.lock().unwrap().push_str(&String::from_utf8_lossy(&bytes[..read]));
    }
}
