//! Help, completions, manual pages and colours.

use std::process::Command;

use crate::support::process::{self, stderr};

const COMMANDS: [&str; 10] =
    ["serve", "stage", "submit", "fetch", "ls", "show", "rm", "clean", "completions", "man"];

#[test]
fn every_command_has_help_that_ends_with_examples_and_fits_a_narrow_terminal() {
    for command in COMMANDS {
        for flag in ["-h", "--help"] {
            let help = process::command().env("COLUMNS", "80").args([command, flag]).output().unwrap();
            let help = String::from_utf8(help.stdout).unwrap();
            assert!(help.contains("\nExamples:\n") || help.contains("\nExample:\n"), "{command}: {help}");
            // Values of the environment and examples are not broken.
            let flags = process::flags_in(&help);
            let longest =
                flags.lines().filter(|line| !line.contains("[env: ")).map(|line| line.chars().count()).max();
            assert!(longest <= Some(86), "{command}: {longest:?}\n{flags}");
        }
    }
}

#[test]
fn a_flag_stands_below_the_heading_that_it_belongs_to() {
    let help = String::from_utf8(process::run(&["stage", "--help"]).stdout).unwrap();
    let (own, of_others) = help.split_once("For a Spark application that something else submits:").unwrap();
    for flag in ["--quiet", "[FILE]...", "--ttl"] {
        assert!(own.contains(flag) && !of_others.contains(&format!("  {flag}")), "{flag}: {help}");
    }
    assert!(of_others.contains("--for <SUBMITTER>") && of_others.contains("--dry-run"), "{help}");
}

#[test]
fn shells_take_the_completions() {
    for (shell, option) in
        [("bash", "--owner-kinds"), ("zsh", "--by-namespace"), ("fish", "kubernetes-namespace")]
    {
        let output = process::run(&["completions", shell]);
        let script = String::from_utf8(output.stdout).unwrap();
        assert!(script.contains(option), "{shell}: {script}");
    }
    let script = process::run(&["completions", "bash"]).stdout;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("completions");
    std::fs::write(&path, script).unwrap();
    // What a person sees who types this and then the key for completion.
    let typed = "source \"$0\"; COMP_WORDS=(cloakroom submit --kubernetes-n); COMP_CWORD=2; \
                 _cloakroom cloakroom --kubernetes-n submit; echo \"${COMPREPLY[*]}\"";
    let Ok(completed) = Command::new("bash").args(["-c", typed]).arg(&path).output() else { return };
    assert_eq!(
        String::from_utf8_lossy(&completed.stdout),
        "--kubernetes-namespace\n",
        "{}",
        stderr(&completed)
    );
}

#[test]
fn there_is_a_manual_page_for_the_program_and_each_command() {
    let folder = tempfile::tempdir().unwrap();
    let target = folder.path().join("man1");
    let written = process::run(&["man", target.to_str().unwrap()]);
    assert!(written.status.success(), "{}", stderr(&written));
    let page = |name: &str| std::fs::read_to_string(target.join(name)).unwrap();
    assert!(page("cloakroom-submit.1").contains("kubernetes\\-namespace"));
    for command in COMMANDS {
        assert!(page(&format!("cloakroom-{command}.1")).contains(".SH NAME"), "{command}");
    }
}

#[test]
fn errors_have_colours_where_they_are_wanted_and_nowhere_else() {
    // The first is said by this program, the second by the parser of its command line.
    for args in [&["fetch"][..], &["serve", "--nonsense"]] {
        let coloured = |name: &str| {
            let output = process::command().env(name, "1").args(args).output().unwrap();
            stderr(&output).starts_with("\u{1b}[1m\u{1b}[31merror:\u{1b}[0m ")
        };
        assert!(coloured("CLICOLOR_FORCE"), "{args:?}");
        assert!(!coloured("NO_COLOR") && !coloured("CLICOLOR"), "{args:?}: stderr is no terminal here");
        assert!(stderr(&process::run(args)).starts_with("error: "), "{args:?}");
    }
}

#[test]
fn a_removal_without_anything_to_remove_says_what_it_may_be_given() {
    let refused = stderr(&process::run(&["rm", "--yes"]));
    for part in ["not provided", "ID", "--namespace <NS>", "--older-than <TIME>"] {
        assert!(refused.contains(part), "no “{part}” in {refused}");
    }
}

#[test]
fn an_empty_variable_is_as_good_as_none() {
    let folder = tempfile::tempdir().unwrap();
    let ticket = r#"{"resourceId":"4c1a3c44-54d9-4a1f-9a6e-0b6f6fd7e7b1","resourceSecret":"s3cret"}"#;
    std::fs::write(folder.path().join("ticket.json"), ticket).unwrap();
    let mut count = 0;
    for (args, says) in [
        (&["serve", "--check"][..], "the configuration is valid"),
        (&["stage", "-n", "demo", "-l", "app=x", "missing.jar"], "missing.jar"),
        (&["fetch", "--ticket", "ticket.json", "--to", "there"], "--server is missing"),
        (&["ls"], "there is none in ./cloakroom-data"),
    ] {
        let help = String::from_utf8(process::run(&[args[0], "--help"]).stdout).unwrap();
        let names = help.split("[env: ").skip(1).filter_map(|rest| rest.split('=').next());
        for name in names {
            // Two servers of two tests must not want one port.
            let port = if name == "CLOAKROOM_LISTEN" { "" } else { "127.0.0.1:0" };
            let mut command = process::command();
            command.current_dir(&folder).args(args).env("CLOAKROOM_LISTEN", port).env(name, "");
            let output = command.output().unwrap();
            let said = stderr(&output) + &String::from_utf8_lossy(&output.stdout);
            let is_port_in_use = name == "CLOAKROOM_LISTEN" && said.contains("127.0.0.1:10000");
            assert!(said.contains(says) || is_port_in_use, "{name} {args:?}: {said}");
            count += 1;
        }
    }
    assert!(count > 30, "only {count} variables were tried");
}

#[test]
fn an_address_without_a_port_or_without_a_host_is_told_how_it_is_written() {
    for (text, says) in [
        ("10005", "127.0.0.1:10005 for this machine alone"),
        (":10005", "0.0.0.0:10005 for all"),
        ("localhost:10005", "127.0.0.1:10005"),
        ("10.0.0.1", "write ADDRESS:PORT"),
    ] {
        let refused = process::run(&["serve", "--listen", text]);
        assert_eq!(refused.status.code(), Some(2));
        assert!(stderr(&refused).contains(says), "{text}: {}", stderr(&refused));
    }
}
