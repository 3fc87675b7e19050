//! Completion of positional arguments. The generator completes only options and their values: for everything else it
//! offers files, or in bash options.

use std::fmt::Write as _;

use clap::{Arg, Command, ValueHint};
use clap_complete::Shell;

/// The text to append to the script for this shell; empty if it needs none.
pub(super) fn script(shell: Shell, program: &Command) -> String {
    match shell {
        Shell::Bash => bash(program),
        Shell::Fish => fish(program),
        _ => String::new(),
    }
}

/// Bash 4.4 or newer uses this function. An older one does not know `nosort`, and keeps the generator's function.
fn bash(program: &Command) -> String {
    let flags: Vec<String> =
        program.get_subcommands().flat_map(Command::get_arguments).flat_map(flag_names).collect();
    format!(
        r#"
# Files and folders where a command takes them, and nothing where it takes names.
_cloakroom_arguments() {{
    _cloakroom "$@"
    case "$3" in
        {flags}) ;;
        -*) return 0 ;;
    esac
    if [[ "$2" != -* && ( ${{#COMPREPLY[@]}} -eq 0 || "${{COMPREPLY[0]}}" == -* ) ]]; then
        case "${{COMP_WORDS[1]}}" in
            {files}) COMPREPLY=(); compopt -o default ;;
            {folders}) COMPREPLY=(); compopt -o dirnames ;;
        esac
    fi
}}
complete -F _cloakroom_arguments -o nosort cloakroom 2>/dev/null || :
"#,
        flags = sorted(flags),
        files = taking(program, ValueHint::FilePath),
        folders = taking(program, ValueHint::DirPath),
    )
}

/// Folders, known words, or nothing, for commands that take no files.
fn fish(program: &Command) -> String {
    let without_files = program.get_subcommands().filter(|command| !takes(command, ValueHint::FilePath));
    without_files.fold(String::new(), |mut text, command| {
        let values = command.get_positionals().flat_map(Arg::get_possible_values);
        let words: Vec<String> = values
            .map(|value| value.get_name().to_owned())
            // `help` takes the name of a command.
            .chain(command.get_subcommands().map(|command| command.get_name().to_owned()))
            .collect();
        let offered = if takes(command, ValueHint::DirPath) {
            " -a \"(__fish_complete_directories)\"".to_owned()
        } else if words.is_empty() {
            String::new()
        } else {
            format!(" -a \"{}\"", words.join(" "))
        };
        // Writing to a String does not fail.
        let _ = writeln!(
            text,
            "complete -c cloakroom -n \"__fish_cloakroom_using_subcommand {}\" -f{offered}",
            command.get_name()
        );
        text
    })
}

/// The names of the commands whose arguments have this hint, as a pattern of `case`.
fn taking(program: &Command, hint: ValueHint) -> String {
    let commands = program.get_subcommands().filter(|command| takes(command, hint));
    sorted(commands.map(|command| command.get_name().to_owned()).collect())
}

fn takes(command: &Command, hint: ValueHint) -> bool {
    command.get_positionals().any(|arg| arg.get_value_hint() == hint)
}

/// `-q` and `--quiet` of an option without a value.
fn flag_names(arg: &Arg) -> Vec<String> {
    if arg.get_action().takes_values() {
        return Vec::new();
    }
    let short = arg.get_short().map(|short| format!("-{short}"));
    let long = arg.get_long().map(|long| format!("--{long}"));
    short.into_iter().chain(long).collect()
}

fn sorted(mut words: Vec<String>) -> String {
    words.sort_unstable();
    words.dedup();
    words.join("|")
}
