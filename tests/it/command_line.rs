//! Help, completions, manual pages and colours.

use std::path::{Path, PathBuf};
use std::process::Command;

use cloakroom_testing::needs::skip;
use cloakroom_testing::process::{self, stderr};

const COMMANDS: [&str; 10] =
    ["serve", "stage", "submit", "fetch", "ls", "show", "rm", "clean", "completions", "man"];

#[test]
fn every_commands_help_ends_with_examples_and_fits_a_narrow_terminal() {
    for command in COMMANDS {
        for flag in ["-h", "--help"] {
            let help = |columns: &str| {
                let help = process::command().env("COLUMNS", columns).args([command, flag]).output().unwrap();
                String::from_utf8(help.stdout).unwrap()
            };
            let narrow = help("80");
            let too_long = narrow.lines().find(|line| line.chars().count() > 80);
            assert_eq!(too_long, None, "{command} {flag}");
            let (_, examples) =
                narrow.split_once("\nExample").unwrap_or_else(|| panic!("{command}: {narrow}"));
            assert!(help("100").ends_with(examples), "an example of {command} is broken: {examples}");
        }
    }
}

#[test]
fn a_flag_stands_below_the_heading_that_it_belongs_to() {
    let help = String::from_utf8(process::run(&["stage", "--help"]).stdout).unwrap();
    let (own, of_others) = process::flags_in(&help)
        .split_once("For what something else submits: a Spark application, a Pod or a Job:")
        .unwrap();
    for flag in ["--quiet", "[FILE]...", "--ttl"] {
        assert!(own.contains(flag) && !of_others.contains(&format!("  {flag}")), "{flag}: {help}");
    }
    assert!(of_others.contains("--for <SUBMITTER>") && of_others.contains("--dry-run"), "{help}");
}

#[test]
fn shells_offer_words_files_or_nothing() {
    for (shell, parts) in [
        ("bash", ["--owner-kinds", "compopt -o plusdirs"]),
        ("zsh", ["'--kind=[Owners of this kind", ":FILE:_files'"]),
        ("fish", ["kubernetes-namespace -d", "_using_subcommand show\" -l admin-url"]),
    ] {
        let script = String::from_utf8(process::run(&["completions", shell]).stdout).unwrap();
        for part in parts {
            assert!(script.contains(part), "{shell}: no {part} in {script}");
        }
    }
}

/// What bash offers to a person who types this and then the key for completion: words, and what `compopt` adds to them.
fn offered(folder: &Path, typed: &str) -> String {
    let drive = r#"
        compopt() { option="$2"; }
        source ./script
        IFS=' ' read -ra COMP_WORDS <<<"$1"
        [[ $1 == *' ' ]] && COMP_WORDS+=("")
        COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
        _cloakroom cloakroom "${COMP_WORDS[-1]}" "${COMP_WORDS[-2]}"
        echo "${COMPREPLY[*]}|$option"
    "#;
    let output =
        Command::new("bash").args(["-c", drive, "bash", typed]).current_dir(folder).output().unwrap();
    assert!(output.stderr.is_empty(), "{typed}: {}", stderr(&output));
    String::from_utf8(output.stdout).unwrap().trim_end().to_owned()
}

#[test]
fn bash_completes_values_with_what_they_can_be() {
    if Command::new("bash").args(["-c", "true"]).status().is_err() {
        skip("there is no bash on this machine to complete command lines");
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("script"), process::run(&["completions", "bash"]).stdout).unwrap();
    std::fs::write(folder.path().join("age.jar"), "").unwrap();
    for (typed, expected) in [
        ("cloakroom submit --kubernetes-n", "--kubernetes-namespace|"),
        ("cloakroom ls --output ", "text json|"),
        ("cloakroom ls --output x", "|"),
        ("cloakroom ls -o j", "json|"),
        ("cloakroom ls --kind Dep", "Deployment|"),
        ("cloakroom rm --why d", "downloading due|"),
        ("cloakroom serve --log-format ", "text json|"),
        ("cloakroom clean --accept-cluster ", "without-uid|"),
        ("cloakroom submit --deploy-mode ", "cluster|"),
        ("cloakroom stage --for spark-s", "spark-submit|"),
        ("cloakroom completions z", "zsh|"),
        // Nothing is known of names, ids, times, sizes and addresses, and files are none.
        ("cloakroom ls -n a", "a|nospace"),
        ("cloakroom ls --older-than a", "a|nospace"),
        ("cloakroom serve --max-resource-size a", "a|nospace"),
        ("cloakroom stage --server a", "a|nospace"),
        ("cloakroom fetch --id a", "a|nospace"),
        // Files and folders as values.
        ("cloakroom stage --token-file a", "age.jar|filenames"),
        ("cloakroom submit --jars a", "age.jar|filenames"),
        ("cloakroom fetch --to ", "|plusdirs"),
        // With no word of its own, bash offers files.
        ("cloakroom stage a", "|"),
    ] {
        assert_eq!(offered(folder.path(), typed), expected, "{typed}");
    }
}

/// The folder with all manual pages.
fn manual() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let written = process::run(&["man", folder.path().join("man1").to_str().unwrap()]);
    assert!(written.status.success(), "{}", stderr(&written));
    folder
}

fn page(folder: &tempfile::TempDir, name: &str) -> PathBuf {
    folder.path().join("man1").join(name)
}

#[test]
fn there_is_a_manual_page_for_the_program_and_each_command() {
    let manual = manual();
    for command in COMMANDS {
        let page = process::read(&page(&manual, &format!("cloakroom-{command}.1")));
        assert!(page.contains(".SH NAME") && page.contains(".SH EXAMPLE"), "{command}: {page}");
        assert!(!page.contains("EXTRA"), "{command}");
    }
    assert!(process::read(&page(&manual, "cloakroom.1")).contains("cloakroom\\-submit(1)"));
}

#[test]
fn man_shows_options_whole_and_examples_as_they_are_typed() {
    let manual = manual();
    let shown = |name: &str| {
        // As man does it for a terminal of 80 columns, without bold and underlined letters.
        let mut groff = Command::new("groff");
        groff.args(["-k", "-man", "-Tutf8", "-ww", "-rLL=80n", "-P-c", "-P-b", "-P-o", "-P-u"]);
        let shown = groff.arg(page(&manual, name)).env("LC_ALL", "C.UTF-8").output().ok()?;
        assert!(shown.status.success() && shown.stderr.is_empty(), "{name}: {}", stderr(&shown));
        Some(String::from_utf8(shown.stdout).unwrap())
    };
    for command in COMMANDS {
        let Some(text) = shown(&format!("cloakroom-{command}.1")) else {
            skip("there is no groff on this machine to show manual pages");
            return;
        };
        let too_long = text.lines().find(|line| line.chars().count() > 80);
        assert_eq!(too_long, None, "{command}");
        assert!(!text.contains(['\u{2010}', '\u{ad}']), "a word of {command} is hyphenated: {text}");
        let help = process::command().env("COLUMNS", "80").args([command, "-h"]).output().unwrap();
        let help = String::from_utf8(help.stdout).unwrap();
        let (_, examples) = help.rsplit_once("Example").and_then(|(_, rest)| rest.split_once(":\n")).unwrap();
        for line in examples.lines() {
            assert!(text.lines().any(|shown| shown.trim() == line.trim()), "no {line} in: {text}");
        }
    }
    let serve = shown("cloakroom-serve.1").unwrap();
    assert!(serve.contains("CLOAKROOM_ADMIN_TOKEN_FILE"), "{serve}");
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
        (&["ls"], "no server has left an admin token in the data directory ./cloakroom-data"),
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

#[test]
fn clients_are_told_of_variables_that_are_nearly_theirs() {
    for (arguments, variable, says) in [
        (&["stage", "-n", "a", "-l", "a=b", "nothing"][..], "CLOAKROOM_SERVE", "is CLOAKROOM_SERVER meant?"),
        (&["fetch", "--to", "x", "--ticket", "nothing"], "CLOAKROOM_CA_FILES", "is CLOAKROOM_CA_FILE meant?"),
        (
            &["ls", "--admin-url", "http://127.0.0.1:9"],
            "CLOAKROOM_ADMIN_TOKENFILE",
            "is CLOAKROOM_ADMIN_TOKEN_FILE meant?",
        ),
        (&["submit", "app.py"], "CLOAKROOM_SERVE", "is CLOAKROOM_SERVER meant?"),
    ] {
        let output = process::command().args(arguments).env(variable, "s3cret").output().unwrap();
        let said = stderr(&output);
        let warning = format!("arning: the environment variable {variable} has no effect");
        assert!(said.contains(&warning) && said.contains(says) && !said.contains("s3cret"), "{said}");
    }
    let of_others = process::command()
        .args(["ls", "--admin-url", "http://127.0.0.1:9"])
        .env("CLOAKROOM_OTHER", "x")
        .output()
        .unwrap();
    assert!(!stderr(&of_others).contains("CLOAKROOM_OTHER"), "{}", stderr(&of_others));
}

#[test]
fn a_bad_value_of_a_variable_is_told_by_its_name() {
    let stage = |more: &[&str]| {
        let arguments = [&["stage", "-n", "a", "-l", "a=b"][..], more, &["nothing"]].concat();
        stderr(&process::command().args(arguments).env("CLOAKROOM_SERVER", "host:1").output().unwrap())
    };
    let said = stage(&[]);
    assert!(said.contains("invalid value 'host:1' for 'CLOAKROOM_SERVER'"), "{said}");
    let secret = process::command()
        .args(["stage", "-n", "a", "-l", "a=b", "nothing"])
        .env("CLOAKROOM_SERVER", "http://user:s3cret@h:1/?token=s3cret")
        .output();
    let said = stderr(&secret.unwrap());
    assert!(said.contains("'http://…@h:1/?…' for 'CLOAKROOM_SERVER'") && !said.contains("s3cret"), "{said}");
    for flag in [&["--server", "host:1"][..], &["--server=host:2"]] {
        let said = stage(flag);
        assert!(said.contains("for '--server <URI>'"), "{said}");
    }
}

#[test]
fn a_port_of_the_server_is_hinted_at_as_a_part_of_its_address() {
    for flag in ["--port", "--bind=127.0.0.1"] {
        let said = stderr(&process::run(&["serve", flag, "8080"]));
        assert!(said.contains("the address and the port are one flag: --listen ADDRESS:PORT"), "{said}");
    }
    assert!(!stderr(&process::run(&["ls", "--port", "1"])).contains("--listen"));
}

#[test]
fn an_image_that_no_node_can_pull_is_refused_at_the_start() {
    for (image, why) in [("${REGISTRY}/x", "a variable that was not filled in?"), ("", "it is empty")] {
        let output = process::run(&["serve", "--check", "--fetch-image", image]);
        assert_eq!(output.status.code(), Some(2));
        assert!(stderr(&output).contains(why), "{}", stderr(&output));
    }
}
