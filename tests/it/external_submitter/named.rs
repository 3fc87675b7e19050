//! Settings that cannot be used are named as they were given, by flag or by variable, before anything is sent.

use super::*;

impl Stager {
    /// A command line about the server of this machine alone, without another address for pods.
    fn run(&self, arguments: &[&str], variables: &[(&str, &str)]) -> Output {
        let mut command = command();
        command.current_dir(self.folder.root()).env("KUBECONFIG", self.path("kubeconfig"));
        command.env("HOME", self.folder.root());
        command.args(arguments).envs(variables.iter().copied()).output().unwrap()
    }

    /// `cloakroom submit` of a jar of this machine.
    fn submit(&self, more: &[&str], variables: &[(&str, &str)]) -> Output {
        let master = format!("k8s://http://{}", self.api_server.address());
        let cluster =
            ["submit", "--master", &master, "--deploy-mode", "cluster", "--class", "org.example.App"];
        let image = ["--conf", "spark.kubernetes.container.image=repo.example/spark:4"];
        self.run(&[&cluster[..], &image, more, &["app.jar"]].concat(), variables)
    }

    fn assert_refused(&self, output: &Output) -> String {
        let said = stderr(output);
        assert_eq!((output.status.code(), output.stdout.as_slice()), (Some(1), &b""[..]), "{said}");
        self.assert_nothing_is_left(&said);
        assert_eq!(self.api_server.calls(), [], "{said}");
        said
    }
}

const STAGE: [&str; 5] = ["stage", "--for", "spark-submit", "--namespace", "demo"];

#[test]
fn a_server_of_this_machine_alone_is_refused_for_pods() {
    let stager = Stager::new();
    let url = stager.server.url("");
    let setting = format!("spark.kubernetes.resourceStagingServer.uri={url}");
    let by_variable = [("CLOAKROOM_SERVER", url.as_str())];
    for more in [&[][..], &["--dry-run"]] {
        let stage = [&STAGE[..], more, &["app.jar"]].concat();
        let by_flag = [&stage[..], &["--server", &url]].concat();
        for (output, named) in [
            (stager.run(&by_flag, &[]), "--server (`spark."),
            (stager.run(&stage, &by_variable), "the environment variable CLOAKROOM_SERVER is `http"),
            (
                stager.submit(&[more, &["--conf", &setting]].concat(), &[]),
                "`spark.kubernetes.resourceStagingServer.uri` is",
            ),
            (stager.submit(more, &by_variable), "the environment variable CLOAKROOM_SERVER is `http"),
        ] {
            let said = stager.assert_refused(&output);
            assert!(said.contains(named), "{said}");
            let way_out = "set `spark.kubernetes.resourceStagingServer.internal.uri` to the address that they reach it at";
            assert!(said.contains(way_out) && said.contains("http://SERVICE.NAMESPACE:10000"), "{said}");
        }
    }
}

#[test]
fn a_file_that_a_variable_names_is_said_to_be_the_variables() {
    let stager = Stager::new();
    let url = stager.server.url("");
    let (token, ca) = ("CLOAKROOM_UPLOAD_TOKEN_FILE", "CLOAKROOM_CA_FILE");
    let pods = pods_too(&url);
    let pods = pods.each_ref().map(String::as_str);
    let stage_for = [&STAGE[..], &["--server", &url], &pods, &["app.jar"]].concat();
    let stage = ["stage", "-n", "demo", "-l", "app=x", "--server", &url, "app.jar"];
    let server = ("CLOAKROOM_SERVER", url.as_str());
    let variable = |name: &str| format!("the environment variable {name} is `nosuch`");
    for (output, named) in [
        (stager.run(&stage, &[(token, "nosuch")]), format!("the environment variable {token} names nosuch,")),
        (
            stager.run(&[&stage[..], &["--token-file", "nosuch"]].concat(), &[]),
            "--token-file names nosuch,".to_owned(),
        ),
        (stager.run(&stage_for, &[(token, "nosuch")]), variable(token)),
        (stager.run(&stage_for, &[(ca, "nosuch")]), variable(ca)),
        (stager.submit(&pods, &[server, (token, "nosuch")]), variable(token)),
        (stager.submit(&pods, &[server, (ca, "nosuch")]), variable(ca)),
        (
            stager.run(&["ls"], &[("CLOAKROOM_ADMIN_TOKEN_FILE", "nosuch")]),
            "the environment variable CLOAKROOM_ADMIN_TOKEN_FILE names nosuch,".to_owned(),
        ),
    ] {
        let said = stager.assert_refused(&output);
        assert!(said.contains(&named), "{named}: {said}");
    }
}
