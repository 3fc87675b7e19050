//! The commands of README and of the interface's page, in their order, in a folder of their own, as a reader types them.

use std::process::Command;

use libtest_mimic::Trial;

use crate::needs::{Need, trial};

pub fn trials() -> Vec<Trial> {
    let needs = [Need::Program("curl"), Need::Program("jq"), Need::Program("unshare"), Need::Root];
    vec![trial(
        "every_command_of_readme_and_of_the_interfaces_page_does_what_the_page_shows",
        &needs,
        every_command,
    )]
}

/// Begins each command in the transcript.
const MARK: &str = "=== command ";

/// One command of a page, and what the page shows below it.
#[derive(Debug)]
struct Shown {
    page: &'static str,
    command: String,
    output: Vec<String>,
}

/// Commands that begin with `$ ` in the indented blocks of these sections. A backslash at the end goes on in the next line.
fn commands(page: &'static str, sections: &[&str]) -> Vec<Shown> {
    let text = std::fs::read_to_string(format!("{}/{page}", env!("CARGO_MANIFEST_DIR"))).unwrap();
    let mut found: Vec<Shown> = Vec::new();
    let (mut is_meant, mut is_open) = (false, false);
    for line in text.lines() {
        if let Some(heading) = line.strip_prefix("## ").or_else(|| line.strip_prefix("### ")) {
            is_meant = sections.contains(&heading);
        }
        let Some(code) = line.strip_prefix("    ").filter(|_| is_meant) else {
            is_open = false;
            continue;
        };
        match (code.strip_prefix("$ "), found.last_mut()) {
            (Some(command), _) => {
                found.push(Shown { page, command: command.to_owned(), output: Vec::new() });
                is_open = true;
            }
            (None, Some(last)) if is_open && last.command.ends_with('\\') && last.output.is_empty() => {
                last.command = format!("{}{}", last.command.trim_end_matches('\\'), code.trim_start());
            }
            (None, Some(last)) if is_open => last.output.push(code.to_owned()),
            _ => {}
        }
    }
    found
}

/// What stays the same: ids, times, sizes and the like become a sign.
fn lasting(line: &str) -> Vec<String> {
    let separators = |c: char| c.is_whitespace() || "\",:;(){}=".contains(c);
    let words = line.split(separators).filter(|word| !word.is_empty());
    words
        .map(|word| {
            if word.contains(|c: char| c.is_ascii_digit()) || word.len() > 24 { "#" } else { word }.to_owned()
        })
        .collect()
}

/// The shell session of a reader: the server runs in one terminal, the rest in another one.
fn session(shown: &[Shown]) -> String {
    let mut script = String::from("ip link set lo up\n");
    for Shown { command, .. } in shown {
        script.push_str(&format!("echo '{MARK}'\n"));
        if command == "cloakroom serve" {
            script
                .push_str("cloakroom serve >said 2>&1 & server=$!\ntrap 'kill $server; wait $server' EXIT\n");
            script.push_str("for look in $(seq 600); do grep -q 'serves on' said && break; sleep 0.1; done\ngrep INFO said\n");
        } else {
            script.push_str(&format!("{{ {command}\n}} 2>&1 || exit 1\n"));
        }
    }
    script
}

fn every_command() {
    let mut shown = commands("README.md", &["Try it", "Stage and fetch", "See and free what is staged"]);
    shown.extend(commands("docs/api.md", &["Stage", "Fetch", "Metadata and release", "v0"]));
    assert!(shown.len() > 15, "the pages are read wrong: {shown:?}");
    let folder = tempfile::tempdir().unwrap();
    let programs = folder.path().join("bin");
    std::fs::create_dir(&programs).unwrap();
    std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_cloakroom"), programs.join("cloakroom")).unwrap();
    let path = format!("{}:{}", programs.display(), std::env::var("PATH").unwrap());
    // The pages' own address, which nothing else has there.
    let output = Command::new("unshare")
        .args(["--net", "bash", "-c", &session(&shown)])
        .current_dir(&folder)
        .env("PATH", path)
        .env("HOME", folder.path())
        .env_remove("http_proxy")
        .output()
        .unwrap();
    let transcript = String::from_utf8_lossy(&output.stdout).into_owned();
    let said: Vec<&str> = transcript.split(&format!("{MARK}\n")).skip(1).collect();
    let ended = format!("{transcript}\n{}", String::from_utf8_lossy(&output.stderr));
    assert!(
        output.status.success() && said.len() == shown.len(),
        "{}: {ended}",
        shown[said.len() - 1].command
    );
    for (Shown { page, command, output }, said) in shown.iter().zip(said) {
        let said: Vec<Vec<String>> = said.lines().map(lasting).collect();
        for line in output {
            // A page may break what is one line, and leave the rest out.
            let wanted = lasting(line.split('…').next().unwrap_or_default());
            let is_said =
                said.iter().any(|said| said.windows(wanted.len().max(1)).any(|part| part == wanted));
            assert!(wanted.is_empty() || is_said, "{page}: {command}\n  the page: {line}\n  said: {said:?}");
        }
    }
}
