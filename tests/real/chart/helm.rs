//! Helm, as an admin types it.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use cloakroom_testing::known;
use cloakroom_testing::needs::{Need, path};
use tempfile::TempDir;

use crate::manifests::rendered::Rendered;

/// Names the folder that `tests/programs/build-chart-tools` made.
pub const CHART_TOOLS: &str = "CLOAKROOM_TEST_CHART_TOOLS";

/// What tests with Helm need of a machine.
pub fn needs() -> Vec<Need> {
    let tools = Helm::VERSIONS.iter().chain(&["definitions"]);
    tools.map(|tool| Need::Below(CHART_TOOLS, (*tool).to_owned())).chain([Need::Kubectl]).collect()
}

/// One version of Helm, and the release that it is about.
pub struct Helm {
    program: PathBuf,
    release: String,
    namespace: String,
    kubeconfig: Option<PathBuf>,
    /// Where it keeps what it remembers.
    home: TempDir,
}

impl Helm {
    /// Both versions in use, by the names of their programs.
    pub const VERSIONS: [&str; 2] = ["helm-3", "helm-4"];

    /// The release and the namespace that the manifests' names come from.
    pub fn new(version: &str) -> Self {
        Self {
            program: path(CHART_TOOLS).join(version),
            release: "cloakroom".to_owned(),
            namespace: "cloakroom".to_owned(),
            kubeconfig: None,
            home: tempfile::tempdir().unwrap(),
        }
    }

    /// The same for another release.
    pub fn release(&self, name: &str) -> Self {
        Self {
            program: self.program.clone(),
            release: name.to_owned(),
            namespace: self.namespace.clone(),
            kubeconfig: self.kubeconfig.clone(),
            home: tempfile::tempdir().unwrap(),
        }
    }

    /// The same in another namespace.
    pub fn in_namespace(self, namespace: &str) -> Self {
        Self { namespace: namespace.to_owned(), ..self }
    }

    /// The same in a namespace of a cluster.
    pub fn at(self, kubeconfig: &Path, namespace: &str) -> Self {
        Self { kubeconfig: Some(kubeconfig.to_owned()), namespace: namespace.to_owned(), ..self }
    }

    /// Runs a command for the release with the chart, files with values (from the chart's folder) and single values.
    pub fn chart(&self, command: &[&str], files: &[String], values: &[&str]) -> Output {
        let mut helm = self.command(command);
        if command[0] != "lint" {
            helm.arg(&self.release);
        }
        helm.arg(chart()).arg("--namespace").arg(&self.namespace);
        for file in files {
            helm.arg("--values").arg(chart().join(file));
        }
        for value in values {
            helm.arg("--set").arg(value);
        }
        helm.output().unwrap()
    }

    /// The objects of another chart, with its own values.
    pub fn render_other(&self, chart: &Path) -> Rendered {
        let mut helm = self.command(&["template", "--skip-tests", &self.release]);
        Self::objects(helm.arg(chart).arg("--namespace").arg(&self.namespace).output().unwrap())
    }

    /// Runs a command for the release without the chart. Arguments follow the release's name.
    pub fn about(&self, command: &[&str]) -> Output {
        let (command, arguments) = command.split_at(1);
        let mut helm = self.command(command);
        helm.arg(&self.release).args(arguments).arg("--namespace").arg(&self.namespace).output().unwrap()
    }

    /// The objects that an installation would make.
    pub fn render(&self, files: &[String], values: &[&str]) -> Rendered {
        self.rendered(&["template", "--skip-tests"], files, values)
    }

    /// The same with one more value, as `NAME=JSON`.
    pub fn render_with(&self, files: &[String], value: &str) -> Rendered {
        self.rendered(&["template", "--skip-tests", "--set-json", value], files, &[])
    }

    fn rendered(&self, command: &[&str], files: &[String], values: &[&str]) -> Rendered {
        Self::objects(self.chart(command, files, values))
    }

    fn objects(output: Output) -> Rendered {
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success() && said.is_empty(), "{said}");
        Rendered::new(known::parse(&String::from_utf8(output.stdout).unwrap()))
    }

    fn command(&self, command: &[&str]) -> Command {
        let mut helm = Command::new(&self.program);
        helm.env_clear().env("HOME", self.home.path()).args(command);
        if let Some(kubeconfig) = &self.kubeconfig {
            helm.arg("--kubeconfig").arg(kubeconfig);
        }
        helm
    }
}

/// The chart's file with values for a folder of manifests.
pub fn values_of(overlay: &Path) -> String {
    format!("ci/{}-values.yaml", overlay.file_name().unwrap().to_str().unwrap())
}

pub fn chart() -> PathBuf {
    project().join("charts/cloakroom")
}

pub fn project() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}
