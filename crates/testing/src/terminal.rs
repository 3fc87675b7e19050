//! A pseudo-terminal. A program has one end. A test has the other one, and sees what a user would see.

use std::fs::File;
use std::io::Read as _;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;
use std::process::Stdio;
use std::sync::{Arc, Condvar, Mutex};

use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};

use super::wait::BOUND;

/// Columns between two tabulator stops.
const TAB: usize = 8;

/// The output of a program so far.
#[derive(Default)]
struct Written {
    bytes: Vec<u8>,
    is_all: bool,
}

pub struct Terminal {
    columns: u16,
    name: Vec<u8>,
    written: Arc<(Mutex<Written>, Condvar)>,
}

impl Terminal {
    pub fn new(columns: u16) -> Self {
        let controller = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
        grantpt(&controller).unwrap();
        unlockpt(&controller).unwrap();
        let name = ptsname(&controller, Vec::new()).unwrap().into_bytes();
        tcsetwinsize(&controller, Winsize { ws_row: 24, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 })
            .unwrap();
        let written = Arc::<(Mutex<Written>, Condvar)>::default();
        let kept = Arc::clone(&written);
        // Reading fails once the other end is closed everywhere.
        let mut controller = File::from(controller);
        std::thread::spawn(move || {
            let mut bytes = [0; 4096];
            loop {
                let read = controller.read(&mut bytes).unwrap_or_default();
                let mut written = kept.0.lock().unwrap();
                written.bytes.extend_from_slice(&bytes[..read]);
                written.is_all = read == 0;
                kept.1.notify_all();
                if read == 0 {
                    return;
                }
            }
        });
        Self { columns, name, written }
    }

    /// The end that a program writes to. It must not stay open in the test.
    pub fn end(&self) -> Stdio {
        let path = Path::new(std::ffi::OsStr::from_bytes(&self.name));
        File::options().read(true).write(true).open(path).unwrap().into()
    }

    /// Waits until the output contains `needle`, and returns all output.
    pub fn until(&self, needle: &str) -> String {
        self.wait(needle, |written| String::from_utf8_lossy(&written.bytes).contains(needle))
    }

    /// Waits until the other end is closed everywhere, and returns all output.
    pub fn until_closed(&self) -> String {
        self.wait("the end", |written| written.is_all)
    }

    fn wait(&self, what: &str, is_there: impl Fn(&Written) -> bool) -> String {
        let written = self.written.0.lock().unwrap();
        let waited = self.written.1.wait_timeout_while(written, BOUND, |written| !is_there(written)).unwrap();
        let text = String::from_utf8_lossy(&waited.0.bytes).into_owned();
        assert!(!waited.1.timed_out(), "waited in vain for “{what}”: {text}");
        text
    }

    /// The lines on the screen after `written`, without empty lines at the end.
    pub fn seen(&self, written: &str) -> Vec<String> {
        let mut seen =
            Seen { columns: usize::from(self.columns), lines: vec![Vec::new()], row: 0, column: 0 };
        let mut letters = written.chars();
        while let Some(letter) = letters.next() {
            match letter {
                '\r' => seen.column = 0,
                '\n' => seen.down(1),
                '\t' => seen.column = (seen.column / TAB + 1) * TAB,
                '\u{1b}' => seen.obey(&mut letters),
                letter => seen.put(letter),
            }
        }
        seen.text()
    }
}

/// All lines since the beginning, and the cursor's position.
struct Seen {
    columns: usize,
    lines: Vec<Vec<char>>,
    row: usize,
    column: usize,
}

impl Seen {
    fn put(&mut self, letter: char) {
        if self.column == self.columns {
            self.column = 0;
            self.down(1);
        }
        let line = &mut self.lines[self.row];
        line.resize(line.len().max(self.column + 1), ' ');
        line[self.column] = letter;
        self.column += 1;
    }

    fn down(&mut self, rows: usize) {
        self.row += rows;
        let needed = self.lines.len().max(self.row + 1);
        self.lines.resize(needed, Vec::new());
    }

    /// Obeys the control sequences that this project uses (ECMA-48): up, down, erase a line, erase below.
    fn obey(&mut self, letters: &mut impl Iterator<Item = char>) {
        assert_eq!(letters.next(), Some('['));
        let mut number = String::new();
        let order = letters.find(|letter| {
            number.extend(Some(*letter).filter(char::is_ascii_digit));
            !letter.is_ascii_digit()
        });
        let number = number.parse().ok();
        match order.unwrap() {
            'A' => self.row -= number.unwrap_or(1),
            'B' => self.down(number.unwrap_or(1)),
            'K' if number == Some(2) => self.lines[self.row].clear(),
            'K' => self.lines[self.row].truncate(self.column),
            'J' => {
                self.lines[self.row].truncate(self.column);
                self.lines.truncate(self.row + 1);
            }
            order => panic!("an unexpected control sequence: {order:?}"),
        }
    }

    fn text(self) -> Vec<String> {
        let lines =
            self.lines.into_iter().map(|line| line.into_iter().collect::<String>().trim_end().to_owned());
        let mut lines: Vec<String> = lines.collect();
        while lines.last().is_some_and(String::is_empty) {
            lines.pop();
        }
        lines
    }
}
