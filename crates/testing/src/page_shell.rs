//! A shell for the commands of the documentation.

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};

use tempfile::TempDir;

use crate::documentation::{Block, Shown};
use crate::wait::BOUND;

/// Begins the line after the output of a command; its exit code follows.
const ENDED: &str = "=== ended with ";

/// A shell in a folder of its own, with the program in `/usr/local/bin`, where users install it.
pub struct Terminal {
    shell: Child,
    input: Option<ChildStdin>,
    said: Receiver<String>,
    folder: TempDir,
    /// The ids that pages show, and the real ids in their place.
    ids: BTreeMap<String, String>,
    /// Placeholders of the pages, and the reader's values for them.
    places: Vec<(String, String)>,
}

impl Terminal {
    /// Opens it in new namespaces, which include one for mounts.
    pub fn open(namespaces: &[&str], program: &Path) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let mut shell = Command::new("unshare")
            .args(namespaces)
            .arg("bash")
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap())
            .env("HOME", folder.path())
            .env("DIST", std::env::var_os("CLOAKROOM_TEST_DIST").unwrap_or_default())
            .current_dir(&folder)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let (line, said) = channel();
        let output = BufReader::new(shell.stdout.take().unwrap());
        std::thread::spawn(move || output.lines().map_while(Result::ok).try_for_each(|said| line.send(said)));
        let input = shell.stdin.take();
        let (ids, places) = (BTreeMap::new(), Vec::new());
        let mut terminal = Self { shell, input, said, folder, ids, places };
        terminal.prepare("mount -t tmpfs none /usr/local/bin");
        terminal.prepare(&format!("ln -s {} /usr/local/bin/cloakroom", program.display()));
        terminal
    }

    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Sets the reader's value for a placeholder.
    pub fn replace(&mut self, sign: &str, place: &str) {
        self.places.push((sign.to_owned(), place.to_owned()));
    }

    /// Types a command that is on no page. It has to succeed.
    #[track_caller]
    pub fn prepare(&mut self, command: &str) {
        let (said, code) = self.say(command);
        assert_eq!(code, 0, "{command}: {}", said.join("\n"));
    }

    /// Types the commands of a block. Each must print what the page shows, and may fail only if the page shows an
    /// error.
    #[track_caller]
    pub fn type_block(&mut self, block: &Block) {
        let commands = block.commands();
        for (index, Shown { command, output }) in commands.iter().enumerate() {
            let (said, code) = match command.as_str() {
                "cloakroom serve" => self.say("serve"),
                command => self.say(&self.as_of_the_reader(command)),
            };
            let asks = commands.get(index + 1).is_some_and(|next| next.command == "echo $?");
            let fails = asks || output.iter().any(|line| line.starts_with("error: "));
            let place = format!("{}: {command}", block.page);
            assert_eq!(code != 0, fails, "{place}: ended with {code}: {}", said.join("\n"));
            for line in output {
                assert!(
                    self.is_said(line, &said),
                    "{place}\n  the page: {line}\n  said: {}",
                    said.join("\n")
                );
            }
        }
    }

    fn as_of_the_reader(&self, command: &str) -> String {
        let signs = self.places.iter().map(|(sign, place)| (sign, place)).chain(&self.ids);
        signs.fold(command.to_owned(), |command, (shown, own)| command.replace(shown, own))
    }

    /// Whether a line of the page was printed. A page may break a long line, and leave out the rest after `…`.
    fn is_said(&mut self, line: &str, said: &[String]) -> bool {
        let line = self.as_of_the_reader(line.split('…').next().unwrap_or_default());
        let shown = words(&line);
        let of_shown: Vec<&str> = shown.iter().copied().map(lasting).collect();
        for said in said {
            let said = words(said);
            let of_said: Vec<&str> = said.iter().copied().map(lasting).collect();
            let found = of_said.windows(of_shown.len().max(1)).position(|part| part == of_shown);
            if let Some(at) = found {
                let pairs = shown.iter().zip(&said[at..]).filter(|(shown, _)| is_id(shown));
                self.ids.extend(pairs.map(|(shown, said)| ((*shown).to_owned(), (*said).to_owned())));
                return true;
            }
        }
        shown.is_empty()
    }

    /// Types a command, and returns its output and its exit code.
    fn say(&mut self, command: &str) -> (Vec<String>, i32) {
        let input = self.input.as_mut().unwrap();
        // The subshell passes the exit code on to the next command.
        let script =
            format!("{{ {command}\n}} 2>&1 </dev/null\ncode=$?; echo \"\n{ENDED}$code\"; (exit $code)\n");
        input.write_all(script.as_bytes()).unwrap();
        let mut said = Vec::new();
        loop {
            match self.said.recv_timeout(4 * BOUND) {
                Ok(line) => match line.strip_prefix(ENDED) {
                    Some(code) => return (said, code.parse().unwrap()),
                    None => said.push(line),
                },
                Err(error) => panic!("{command}: no end ({error}): {}", said.join("\n")),
            }
        }
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        // The shell reads the end of its input, and ends what it has started.
        drop(self.input.take());
        let _ = self.shell.wait();
    }
}

fn words(line: &str) -> Vec<&str> {
    let separators = |c: char| c.is_whitespace() || "\",:;(){}=".contains(c);
    line.split(separators).filter(|word| !word.is_empty()).collect()
}

/// The word as it is compared: ids, times, sizes and the like, which differ each time, become a placeholder.
fn lasting(word: &str) -> &str {
    if word.contains(|c: char| c.is_ascii_digit()) || word.len() > 24 { "#" } else { word }
}

fn is_id(word: &str) -> bool {
    word.len() == 36 && word.chars().all(|c| c.is_ascii_hexdigit() || c == '-')
}
