//! The flags of `cloakroom stage --for pods`.

use clap::Args;

use cloakroom_core::resource::is_dns_subdomain;

/// Where the files go in the containers.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "For the pods of a Pod or a Job (--for pods)")]
pub struct PodsArgs {
    /// Folder of the containers that has the files [default: /work]
    #[arg(long, value_name = "DIR", value_parser = folder, requires = "submitter")]
    pub mount: Option<String>,

    /// Make that folder the working directory
    #[arg(long, requires = "submitter")]
    pub workdir: bool,

    /// Container that gets the files; repeatable [default: all]
    #[arg(long = "container", value_name = "NAME", requires = "submitter")]
    pub containers: Vec<String>,

    /// Put the Secret with the ticket into the cluster under this name, and print the rest [default: print it too]
    #[arg(long, value_name = "NAME", value_parser = secret, requires = "submitter")]
    pub secret: Option<String>,
}

impl PodsArgs {
    /// The first of these flags that is given.
    pub fn first_given(&self) -> Option<&'static str> {
        let given = [
            ("--mount", self.mount.is_some()),
            ("--workdir", self.workdir),
            ("--container", !self.containers.is_empty()),
            ("--secret", self.secret.is_some()),
        ];
        given.into_iter().find_map(|(flag, is_given)| is_given.then_some(flag))
    }
}

/// A folder in a container, without a slash at its end.
fn folder(text: &str) -> Result<String, &'static str> {
    let folder = text.trim_end_matches('/');
    let Some(parts) = folder.strip_prefix('/') else {
        return Err("it is no folder of a container: it begins with a slash, such as /work");
    };
    if parts.split('/').any(|part| ["", ".", ".."].contains(&part)) {
        return Err("no part of its path may be empty, “.” or “..”");
    }
    if parts.contains(|c: char| c == ':' || c.is_control()) {
        return Err("Kubernetes takes no folder with “:” or a control character in it");
    }
    Ok(folder.to_owned())
}

fn secret(text: &str) -> Result<String, &'static str> {
    if is_dns_subdomain(text) { Ok(text.to_owned()) } else { Err("it is no name of a Secret") }
}
