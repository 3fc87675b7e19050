//! The submission that README shows, as a reader types it, where pods run.

use std::path::Path;
use std::sync::Arc;

use cloakroom_testing::cluster::{Account, Cluster as _};
use cloakroom_testing::documentation::blocks;
use cloakroom_testing::needs::Need;
use cloakroom_testing::page_shell::Terminal;
use cloakroom_testing::process;
use cloakroom_testing::wait::until;
use libtest_mimic::Trial;

use crate::shared::SharedCluster;

pub fn trials(shared: &Arc<SharedCluster>) -> Vec<Trial> {
    let name = "pages::the_submission_of_readme_says_why_it_failed_and_ends_with_the_applications_code";
    vec![shared.trial_that_needs(name, vec![Need::Root], readme)]
}

async fn readme(shared: Arc<SharedCluster>) {
    let cluster = shared.cluster().await;
    let admin = cluster.plane.api(Account::Admin);
    let account = "/api/v1/namespaces/default/serviceaccounts/default";
    until("the default account is there", async || admin.get(account).await.0 == 200).await;
    let command = process::command();
    let mut terminal = Terminal::open(&["--mount"], Path::new(command.get_program()));
    let address = cluster.plane.address();
    let kubeconfig = cluster.plane.kubeconfig(Account::Admin, address);
    std::fs::write(terminal.folder().join("kubeconfig"), kubeconfig).unwrap();
    terminal.prepare("export KUBECONFIG=$PWD/kubeconfig");
    terminal.replace("APISERVER:6443", &address.to_string());
    let submit = blocks("README.md").into_iter().filter(|block| block.is_in("Submit"));
    submit.for_each(|block| terminal.type_block(&block));
}
