//! Warnings about environment variables with this program's prefix that have no effect, such as mistyped ones.

use std::ffi::{OsStr, OsString};

use cloakroom_core::suggestions::nearest;

use crate::cli::{Cli, SUBMIT_VARIABLES};

const PREFIX: &str = "CLOAKROOM_";

/// Prefixes of the variables that this project's tests, benchmarks, builds and releases read.
const OF_DEVELOPMENT: [&str; 4] = ["TEST_", "BENCH_", "CI_", "RELEASE_"];

/// For a server: one warning for each such variable, without its value, which may be a secret.
pub fn warnings() -> Vec<String> {
    let serve = of_command("serve");
    unknown_ones().iter().map(|name| warning(name, &serve)).collect()
}

/// For a client: the same for each variable that is nearly one of this command's. Others may be for another program.
pub fn near_misses(command: &str) -> Vec<String> {
    let unknown = unknown_ones();
    if unknown.is_empty() {
        return Vec::new();
    }
    let own = of_command(command);
    let near = unknown.iter().filter(|name| nearest(name, &own).is_some());
    near.map(|name| warning(name, &own)).collect()
}

/// The variables of this command's flags.
fn of_command(command: &str) -> Vec<String> {
    let described = Cli::described();
    let of_flags = described.find_subcommand(command).map(of_flags).unwrap_or_default();
    let of_submit = SUBMIT_VARIABLES.iter().filter(|_| command == "submit");
    of_flags.into_iter().chain(of_submit.map(|name| (*name).to_owned())).collect()
}

fn of_flags(command: &clap::Command) -> Vec<String> {
    command.get_arguments().filter_map(|arg| Some(arg.get_env()?.to_str()?.to_owned())).collect()
}

/// The names of all variables in this process's environment that no command reads.
fn unknown_ones() -> Vec<String> {
    let begins = |(name, _): (OsString, OsString)| name.to_str().is_some_and(|name| name.starts_with(PREFIX));
    if !std::env::vars_os().any(begins) {
        return Vec::new();
    }
    let described = Cli::described();
    let of_submit = SUBMIT_VARIABLES.map(str::to_owned);
    let all: Vec<String> = described.get_subcommands().flat_map(of_flags).chain(of_submit).collect();
    let mut unknown: Vec<String> =
        std::env::vars_os().filter_map(|variable| unknown(variable, &all)).collect();
    unknown.sort_unstable();
    unknown
}

/// The name of the variable, if it has no effect on any command.
fn unknown((name, value): (OsString, OsString), known: &[String]) -> Option<String> {
    let name = name.into_string().ok()?;
    let rest = name.strip_prefix(PREFIX)?;
    let is_of_development = OF_DEVELOPMENT.iter().any(|prefix| rest.starts_with(prefix));
    let has_effect = known.contains(&name) || is_of_development || is_of_service(&name, &value);
    (!has_effect).then_some(name)
}

/// Whether Kubernetes set the variable. It sets some in every container for each Service of the namespace, which may be
/// called `cloakroom` or `cloakroom-operations`: `…_SERVICE_HOST`, `…_SERVICE_PORT[_NAME]`, `…_PORT=tcp://…`,
/// `…_PORT_10000_TCP[_ADDR]`.
fn is_of_service(name: &str, value: &OsStr) -> bool {
    let is_link = || value.to_string_lossy().contains("://");
    let is_port = |rest: &str| {
        let mut parts = rest.split('_');
        let is_number = parts.next().is_some_and(|number| number.parse::<u16>().is_ok());
        is_number && matches!(parts.next(), Some("TCP" | "UDP" | "SCTP"))
    };
    let after_service = |rest: &str| rest == "HOST" || rest == "PORT" || rest.starts_with("PORT_");
    name.split_once("_SERVICE_").is_some_and(|(_, rest)| after_service(rest))
        || name.split_once("_PORT_").is_some_and(|(_, rest)| is_port(rest))
        // Kubernetes sets a URL here: a number alone was meant for this program.
        || name.ends_with("_PORT") && is_link()
}

fn warning(name: &str, of_command: &[String]) -> String {
    let advice = nearest(name, of_command).map_or_else(
        || "cloakroom serve --help lists the variables".to_owned(),
        |known| format!("is {known} meant?"),
    );
    format!("the environment variable {name} has no effect, because no flag has it: {advice}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_of_services_are_known_and_a_port_alone_is_not() {
        let is_known = |(name, value): (&str, &str)| unknown((name.into(), value.into()), &[]).is_none();
        for variable in [
            ("CLOAKROOM_SERVICE_HOST", "10.0.0.1"),
            ("CLOAKROOM_SERVICE_PORT", "10000"),
            ("CLOAKROOM_SERVICE_PORT_HTTP", "10000"),
            ("CLOAKROOM_PORT", "tcp://10.0.0.1:10000"),
            ("CLOAKROOM_PORT_10000_TCP", "tcp://10.0.0.1:10000"),
            ("CLOAKROOM_PORT_10000_TCP_PROTO", "tcp"),
            ("CLOAKROOM_OPERATIONS_SERVICE_HOST", "10.0.0.2"),
            ("CLOAKROOM_OPERATIONS_PORT", "tcp://10.0.0.2:10001"),
            ("CLOAKROOM_OPERATIONS_PORT_10001_TCP_ADDR", "10.0.0.2"),
            ("CLOAKROOM_TEST_REQUIRE", "node"),
            ("OTHER_MAX_TOTALSIZE", "1"),
        ] {
            assert!(is_known(variable), "{variable:?}");
        }
        for variable in [
            ("CLOAKROOM_PORT", "8080"),
            ("CLOAKROOM_PORT_MAX_TCP", "1"),
            ("CLOAKROOM_SERVICE_NAME", "x"),
            ("CLOAKROOM_", "x"),
        ] {
            assert!(!is_known(variable), "{variable:?}");
        }
    }
}
