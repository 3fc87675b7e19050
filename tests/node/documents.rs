//! The documentation's own commands and manifests, so that they stay true.

use std::path::Path;

/// A page of this project.
pub fn page(name: &str) -> String {
    std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(name)).unwrap()
}

/// A chapter of a page, from its heading to the next one of the same or a higher level.
pub fn chapter(name: &str, heading: &str) -> String {
    let page = page(name);
    let level = heading.split(' ').next().unwrap();
    let (_, rest) =
        page.split_once(&format!("\n{heading}\n")).unwrap_or_else(|| panic!("{name} has no {heading}"));
    let is_end = |line: &&str| line.starts_with('#') && line.split(' ').next().unwrap().len() <= level.len();
    rest.lines().take_while(|line| !is_end(line)).map(|line| format!("{line}\n")).collect()
}

/// The commands that a chapter shows behind `$`, each with the lines that continue it.
pub fn commands(chapter: &str) -> Vec<String> {
    let mut commands: Vec<String> = Vec::new();
    let mut goes_on = false;
    for line in chapter.lines() {
        if let Some(command) = line.strip_prefix("    $ ") {
            commands.push(command.to_owned());
        } else if goes_on {
            let command = commands.last_mut().unwrap();
            command.push('\n');
            command.push_str(line);
        } else {
            continue;
        }
        goes_on = line.ends_with('\\');
    }
    commands
}

/// The blocks of code that are indented, whole.
pub fn blocks(chapter: &str) -> Vec<String> {
    let mut blocks: Vec<String> = Vec::new();
    let mut inside = false;
    for line in chapter.lines() {
        match line.strip_prefix("    ") {
            Some(line) if inside => blocks.last_mut().unwrap().push_str(&format!("\n{line}")),
            Some(line) => blocks.push(line.to_owned()),
            None => {}
        }
        inside = line.starts_with("    ");
    }
    blocks
}

/// The first block that is fenced as YAML.
pub fn yaml(chapter: &str) -> String {
    chapter.split("```yaml\n").nth(1).unwrap().split("```").next().unwrap().to_owned()
}
