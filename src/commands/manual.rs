//! `cloakroom completions` and `cloakroom man`.

use std::io::ErrorKind;
use std::io::Write as _;
use std::process::ExitCode;

use anyhow::Context as _;
use clap::Command;
use clap_mangen::Man;
use clap_mangen::roff::{Roff, roman};

use crate::cli::{Cli, CompletionsArgs, ManArgs};

const NAME: &str = "cloakroom";

/// Prints a shell's completions.
pub fn completions(args: &CompletionsArgs) -> anyhow::Result<ExitCode> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::described(), NAME, &mut script);
    match std::io::stdout().write_all(&script) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => Err(error).context("cannot print on stdout"),
        _ => Ok(ExitCode::SUCCESS),
    }
}

/// Writes a page for the program and one for each command.
pub fn man(args: &ManArgs) -> anyhow::Result<ExitCode> {
    let mut program = Cli::described().disable_help_subcommand(true);
    program.build();
    let write = || {
        std::fs::create_dir_all(&args.folder)?;
        program.get_subcommands().chain([&program]).try_for_each(|command| {
            let man = Man::new(command.clone()).source(format!("{NAME} {}", env!("CARGO_PKG_VERSION")));
            std::fs::write(args.folder.join(man.get_filename()), page(command, &man)?)
        })
    };
    write().with_context(|| format!("cannot write the manual pages into {}", args.folder.display()))?;
    Ok(ExitCode::SUCCESS)
}

/// The generator's page, with the text after the help as it is typed. The generator would fill its lines.
fn page(command: &Command, man: &Man) -> std::io::Result<Vec<u8>> {
    let mut page = Vec::new();
    man.render_title(&mut page)?;
    // A reader would take a hyphen for a part of an option or a kind.
    Roff::new().control("nh", []).control("ad", ["l"]).to_writer(&mut page)?;
    man.render_name_section(&mut page)?;
    man.render_synopsis_section(&mut page)?;
    man.render_description_section(&mut page)?;
    man.render_options_section(&mut page)?;
    if command.has_subcommands() {
        man.render_subcommands_section(&mut page)?;
    }
    if let Some(text) = command.get_after_help() {
        after_help(&text.to_string()).to_writer(&mut page)?;
    }
    Ok(page)
}

/// A line that is not indented and ends with a colon is a heading.
fn after_help(text: &str) -> Roff {
    let heading =
        |line: &str| line.strip_suffix(':').filter(|_| !line.starts_with(' ')).map(str::to_uppercase);
    let mut roff = Roff::new();
    if text.lines().next().and_then(heading).is_none() {
        roff.control("SH", ["NOTES"]);
    }
    for line in text.lines() {
        match heading(line) {
            Some(heading) => roff.control("fi", []).control("SH", [&*heading]).control("nf", []),
            None => roff.text([roman(line.strip_prefix("  ").unwrap_or(line))]),
        };
    }
    roff.control("fi", []);
    roff
}
