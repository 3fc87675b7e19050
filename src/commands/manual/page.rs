//! A manual page. The generator renders name, description, options and commands. This module adds the synopsis with
//! values, the environment, and examples as a user types them.

use std::io;

use clap::{Arg, ArgAction, Command};
use clap_mangen::Man;
use clap_mangen::roff::{Inline, Roff, bold, italic, roman};

use super::NAME;
use crate::cli::SUBMIT_VARIABLES;

/// Defines the apostrophe. The generator repeats it in each section, but a page needs it once.
const PREAMBLE: &str = ".ie \\n(.g .ds Aq \\(aq\n.el .ds Aq '\n";

/// The heading for a help text that has none.
const NOTES: &str = "Notes";

pub(super) fn file_name(command: &Command) -> String {
    format!("{}.1", title(command))
}

/// The page of a command. Its program must have been built (`Command::build`).
pub(super) fn page(command: &Command) -> io::Result<String> {
    let man = Man::new(command.clone());
    let mut page = Vec::new();
    head(command).to_writer(&mut page)?;
    man.render_name_section(&mut page)?;
    synopsis(command).to_writer(&mut page)?;
    man.render_description_section(&mut page)?;
    man.render_options_section(&mut page)?;
    if command.has_subcommands() {
        man.render_subcommands_section(&mut page)?;
    }
    environment(command).to_writer(&mut page)?;
    if let Some(text) = command.get_after_help() {
        after_help(&text.to_string()).to_writer(&mut page)?;
    }
    if let Some(version) = command.get_long_version() {
        let mut roff = Roff::new();
        roff.control("SH", ["VERSION"]);
        as_typed(&mut roff, version.lines());
        roff.to_writer(&mut page)?;
    }
    Ok(format!("{PREAMBLE}{}", String::from_utf8_lossy(&page).replace(PREAMBLE, "")))
}

fn title(command: &Command) -> &str {
    command.get_display_name().unwrap_or_else(|| command.get_name())
}

/// Turns hyphenation off: a reader would take the hyphen for a part of an option or a kind.
fn head(command: &Command) -> Roff {
    let mut roff = Roff::new();
    let source = format!("{NAME} {}", env!("CARGO_PKG_VERSION"));
    roff.control("TH", [title(command), "1", "\"\"", &source, "\"\""]);
    roff.control("nh", []).control("ad", ["l"]);
    roff
}

fn synopsis(command: &Command) -> Roff {
    let mut roff = Roff::new();
    roff.control("SH", ["SYNOPSIS"]);
    if let Some(usage) = command.get_overridden_usage() {
        as_typed(&mut roff, usage.to_string().lines().map(str::trim));
        return roff;
    }
    let mut line = vec![bold(command.get_bin_name().unwrap_or(NAME))];
    let arguments = command.get_arguments().filter(|arg| !arg.is_hide_set());
    let (positionals, options): (Vec<&Arg>, Vec<&Arg>) = arguments.partition(|arg| arg.is_positional());
    for arg in options.into_iter().chain(positionals) {
        line.push(roman(if arg.is_required_set() { " " } else { " [" }));
        line.extend(names(arg));
        line.push(roman(if arg.is_required_set() { "" } else { "]" }));
        line.push(roman(if matches!(arg.get_action(), ArgAction::Append) { "..." } else { "" }));
    }
    if command.has_subcommands() {
        line.extend([roman(" "), italic("COMMAND"), roman(" ...")]);
    }
    roff.text(line);
    roff
}

/// `-o|--output FORMAT`, `FILE`.
fn names(arg: &Arg) -> Vec<Inline> {
    let short = arg.get_short().map(|short| bold(format!("-{short}")));
    let long = arg.get_long().map(|long| bold(format!("--{long}")));
    let both = (short.is_some() && long.is_some()).then(|| roman("|"));
    let has_names = short.is_some() || long.is_some();
    let values = arg.get_value_names().filter(|_| arg.get_action().takes_values()).unwrap_or_default();
    let value = values.first().map(|value| italic(value.as_str()));
    // A no-break space.
    let blank = (has_names && value.is_some()).then(|| roman("\u{a0}"));
    [short, both, long, blank, value].into_iter().flatten().collect()
}

/// The variables that stand for options.
fn environment(command: &Command) -> Roff {
    let mut variables: Vec<(String, Vec<Inline>)> = command
        .get_arguments()
        .filter_map(|arg| {
            let variable = arg.get_env()?.to_string_lossy().into_owned();
            let name = arg.get_long().map_or_else(|| names(arg), |long| vec![bold(format!("--{long}"))]);
            Some((variable, [vec![roman("Stands for ")], name, vec![roman(".")]].concat()))
        })
        .collect();
    if command.get_name() == "submit" {
        variables.extend(SUBMIT_VARIABLES.map(|(name, meaning)| (name.to_owned(), vec![roman(meaning)])));
    }
    variables.sort_by(|(one, _), (other, _)| one.cmp(other));
    let mut roff = Roff::new();
    if variables.is_empty() {
        return roff;
    }
    roff.control("SH", ["ENVIRONMENT"]);
    roff.text([roman("Options on the command line win over the environment.")]);
    for (variable, meaning) in variables {
        roff.control("TP", []).text([bold(variable)]).text(meaning);
    }
    roff
}

/// The parts of a help text. A heading is a line that is not indented and ends with a colon.
fn after_help(text: &str) -> Roff {
    let mut parts: Vec<(&str, Vec<&str>)> = Vec::new();
    for line in text.lines() {
        match (line.strip_suffix(':').filter(|_| !line.starts_with(' ')), parts.last_mut()) {
            (Some(heading), _) => parts.push((heading, Vec::new())),
            (None, Some((_, lines))) => lines.push(line),
            (None, None) => parts.push((NOTES, vec![line])),
        }
    }
    let mut roff = Roff::new();
    for (heading, lines) in parts {
        match heading {
            "Example" | "Examples" => {
                roff.control("SH", ["EXAMPLES"]);
                as_typed(&mut roff, lines.into_iter().map(|line| line.strip_prefix("  ").unwrap_or(line)));
            }
            _ => {
                roff.control("SH", [heading.to_uppercase().as_str()]);
                paragraphs(&mut roff, &lines);
            }
        }
    }
    roff
}

/// Prints each line unchanged.
fn as_typed<'a>(roff: &mut Roff, lines: impl Iterator<Item = &'a str>) {
    roff.control("nf", []);
    for line in lines {
        roff.text([roman(line)]);
    }
    roff.control("fi", []);
}

/// Prints paragraphs. A line that begins with an option is followed by the description of the option.
fn paragraphs(roff: &mut Roff, lines: &[&str]) {
    for line in lines.iter().map(|line| line.trim()).filter(|line| !line.is_empty()) {
        if line.starts_with('-') {
            roff.control("TP", []).text([bold(line)]);
        } else {
            roff.text([roman(line)]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn roff(command: Command) -> String {
        let mut program = Command::new(NAME).subcommand(command).disable_help_subcommand(true);
        program.build();
        let command = program.get_subcommands().next().unwrap();
        page(command).unwrap()
    }

    #[test]
    fn values_variables_and_examples_stand_in_their_sections() {
        let shown = roff(
            Command::new("pack")
                .args([
                    Arg::new("listen-on")
                        .short('o')
                        .long("listen-on")
                        .value_name("ADDRESS")
                        .env("PACK_LISTEN"),
                    Arg::new("dry").long("dry").action(ArgAction::SetTrue),
                    Arg::new("file")
                        .value_name("FILE")
                        .required(true)
                        .action(ArgAction::Append)
                        .env("PACK_FILE"),
                ])
                .after_help(
                    "Files:\n  --a=B\n      What a\n      does\n\nExamples:\n  pack \\\n      .file\n",
                ),
        );
        for part in [
            ".TH cloakroom-pack 1 \"\" \"cloakroom ",
            "\n.nh\n.ad l\n",
            "\\fBcloakroom pack\\fR [\\fB\\-o\\fR|\\fB\\-\\-listen\\-on\\fR\u{a0}\\fIADDRESS\\fR] [\\fB\\-\\-dry\\fR]",
            " \\fIFILE\\fR...\n.SH DESCRIPTION\n",
            ".SH ENVIRONMENT\n",
            ".TP\n\\fBPACK_FILE\\fR\nStands for \\fIFILE\\fR.\n.TP\n\\fBPACK_LISTEN\\fR\nStands for \\fB\\-\\-listen\\-on\\fR.\n",
            ".SH FILES\n.TP\n\\fB\\-\\-a=B\\fR\nWhat a\ndoes\n",
            ".SH EXAMPLES\n.nf\npack \\\\\n    .file\n.fi\n",
        ] {
            assert!(shown.contains(part), "no {part} in {shown}");
        }
    }

    #[test]
    fn text_without_a_heading_is_a_note_and_no_variables_are_no_section() {
        let shown = roff(Command::new("pack").after_help("Called under a name: it is another one."));
        assert!(shown.contains(".SH NOTES\nCalled under a name: it is another one.\n"), "{shown}");
        assert!(!shown.contains("ENVIRONMENT"), "{shown}");
    }
}
