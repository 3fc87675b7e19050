//! One container of a pod: starts its process from spec and image, and reports its end.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use jiff::Timestamp;
use serde_json::Value;

use super::Node;
use super::environment::{self, Environment};
use super::image::Image;
use super::objects::{Objects, items};
use super::process::{Bind, Plan, Process, Stop};
use super::status::{End, State};
use super::volume;
use super::waiting::Waiting;
use crate::cluster::text;

/// The longest name of a host (RFC 1123).
const LONGEST_HOST_NAME: usize = 63;

/// The longest termination message that the kubelet reports.
const LONGEST_MESSAGE: usize = 4096;

/// The parts of a pod that its containers use.
pub struct Surroundings<'a> {
    pub node: &'a Node,
    pub pod: &'a Value,
    pub objects: &'a Objects,
    pub folder: &'a Path,
    pub volumes: &'a HashMap<String, PathBuf>,
}

/// A container that was started.
pub struct Running {
    process: Process,
    since: Timestamp,
    message: PathBuf,
    log: PathBuf,
    /// Whether the end of the log replaces a missing message.
    is_log_a_message: bool,
}

/// The host name in a pod's containers.
pub fn host_name(pod: &Value) -> String {
    let given = text(&pod["spec"]["hostname"]);
    let name = if given.is_empty() { text(&pod["metadata"]["name"]) } else { given };
    name[..name.len().min(LONGEST_HOST_NAME)].trim_end_matches(['-', '.']).to_owned()
}

impl Surroundings<'_> {
    pub async fn start(&self, spec: &Value) -> Result<Running, Waiting> {
        let name = text(&spec["name"]);
        let image_name = text(&spec["image"]);
        let image = self.node.image(&image_name).ok_or_else(|| {
            Waiting::new("ErrImagePull", format!("failed to pull image \"{image_name}\": not found"))
        })?;
        let folder = self.folder.join("containers").join(&name);
        let message = folder.join("termination-log");
        let metadata = &self.pod["metadata"];
        let log = self.node.log(&text(&metadata["namespace"]), &text(&metadata["name"]), &name);
        let mut plan = self.plan(spec, image, folder, log).await?;
        plan.binds.push(Bind {
            source: message.clone(),
            target: text(&spec["terminationMessagePath"]),
            is_writable: true,
        });
        lay_out(&plan, image, &message);
        let is_log_a_message = spec["terminationMessagePolicy"] == "FallbackToLogsOnError";
        let log = plan.log.clone();
        Ok(Running { process: plan.start(), since: Timestamp::now(), message, log, is_log_a_message })
    }

    async fn plan(
        &self,
        spec: &Value,
        image: &Image,
        folder: PathBuf,
        log: PathBuf,
    ) -> Result<Plan, Waiting> {
        let environment = self.environment(spec, image).await?;
        let expanded = |list: &Value| -> Vec<String> {
            items(list).map(|part| environment::expand(&text(part), &environment)).collect()
        };
        let (command, args) = (expanded(&spec["command"]), expanded(&spec["args"]));
        let command = if command.is_empty() {
            image.entrypoint.command(args, &environment)
        } else {
            [command, args].concat()
        };
        let pod_wide = &self.pod["spec"]["securityContext"];
        let (context, number) =
            (&spec["securityContext"], |value: &Value| value.as_u64().map(|id| id as u32));
        let of_either = |key: &str| number(&context[key]).or_else(|| number(&pod_wide[key]));
        let user = of_either("runAsUser");
        let groups = items(&pod_wide["supplementalGroups"]).chain([&pod_wide["fsGroup"]]);
        let working_folder = text(&spec["workingDir"]);
        Ok(Plan {
            user: user.unwrap_or(image.user),
            // The group of an image belongs to its user: another user gets root's group.
            group: of_either("runAsGroup").unwrap_or(if user.is_some() { 0 } else { image.group }),
            groups: groups.filter_map(number).collect(),
            host_name: host_name(self.pod),
            working_folder: if working_folder.is_empty() { image.folder.clone() } else { working_folder },
            is_read_only: context["readOnlyRootFilesystem"] == true,
            binds: self.binds(spec, image),
            folder,
            environment,
            command,
            log,
        })
    }

    /// The environment: the API server's service, then that of the image, then that of the spec.
    async fn environment(&self, spec: &Value, image: &Image) -> Result<Environment, Waiting> {
        let (address, port) = self.node.network.service();
        let mut environment = vec![
            ("HOSTNAME".to_owned(), host_name(self.pod)),
            ("KUBERNETES_SERVICE_HOST".to_owned(), address.to_string()),
            ("KUBERNETES_SERVICE_PORT".to_owned(), port.to_string()),
        ];
        environment.extend(image.environment.iter().cloned());
        environment::extend(&mut environment, spec, self.pod, self.objects).await?;
        Ok(environment)
    }

    /// The mounts: the image's files, the hosts file, then the volumes, outer mounts before inner ones.
    fn binds(&self, spec: &Value, image: &Image) -> Vec<Bind> {
        let read_only = |source: PathBuf, target: String| Bind { source, target, is_writable: false };
        let mut binds: Vec<Bind> =
            image.shown.iter().map(|(source, target)| read_only(source.clone(), target.clone())).collect();
        binds.push(read_only(self.node.network.hosts().to_owned(), "/etc/hosts".to_owned()));
        let mut mounts: Vec<Bind> = items(&spec["volumeMounts"]).map(|mount| self.mount(mount)).collect();
        mounts.sort_by(|one, other| one.target.cmp(&other.target));
        binds.extend(mounts);
        binds
    }

    fn mount(&self, mount: &Value) -> Bind {
        assert!(text(&mount["subPathExpr"]).is_empty(), "the runner does not know subPathExpr");
        let name = text(&mount["name"]);
        let specs = items(&self.pod["spec"]["volumes"]);
        let is_given = specs
            .filter(|spec| spec["name"] == *name)
            .any(|spec| ["configMap", "secret", "projected"].iter().any(|kind| !spec[kind].is_null()));
        let sub_path = text(&mount["subPath"]);
        let source = &self.volumes[&name];
        Bind {
            source: if sub_path.is_empty() { source.clone() } else { source.join(sub_path) },
            target: volume::absolute(&text(&mount["mountPath"])),
            is_writable: !is_given && mount["readOnly"] != true,
        }
    }
}

/// Lays out the container's own files before it starts.
fn lay_out(plan: &Plan, image: &Image, message: &Path) {
    use std::os::unix::fs::PermissionsExt as _;
    for folder in [plan.log.parent().unwrap(), &plan.folder] {
        std::fs::create_dir_all(folder).unwrap();
    }
    std::fs::write(message, "").unwrap();
    std::fs::set_permissions(message, std::fs::Permissions::from_mode(0o666)).unwrap();
    let copied = Command::new("cp").arg("-al").arg(&image.root).arg(plan.root()).status().unwrap();
    assert!(copied.success(), "the files of {} cannot be linked", image.name);
}

impl Running {
    pub fn state(&self) -> State {
        State::Running { since: self.since }
    }

    /// Waits for the end, which `stop` may ask for.
    pub async fn end(&mut self, stop: &Stop) -> State {
        let code = self.process.end(stop).await;
        State::Terminated(End {
            since: self.since,
            until: Timestamp::now(),
            code,
            message: self.message(code),
            was_out_of_memory: stop.was_out_of_memory(),
        })
    }

    fn message(&self, code: i32) -> String {
        let read = |path: &Path| String::from_utf8_lossy(&std::fs::read(path).unwrap()).into_owned();
        let message = read(&self.message);
        let message = if message.is_empty() && code != 0 && self.is_log_a_message {
            let log = read(&self.log);
            let lines: Vec<&str> = log.lines().collect();
            lines[lines.len().saturating_sub(10)..].join("\n")
        } else {
            message
        };
        message.chars().take(LONGEST_MESSAGE).collect()
    }
}
