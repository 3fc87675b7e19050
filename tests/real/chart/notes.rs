//! What Helm prints after an installation leads to a first job, for every way to the server.

use std::process::Command;

use cloakroom_testing::control_plane::ControlPlane;
use cloakroom_testing::dist;
use cloakroom_testing::tls;

use super::helm::Helm;
use super::installed::define;

/// A way to the server, and what is said about it.
struct Way {
    files: &'static [&'static str],
    values: &'static [&'static str],
    says: &'static [&'static str],
    says_not: &'static [&'static str],
    /// Where the driver's pod fetches from; `None` if that is for the API server to say.
    pods: Option<&'static str>,
}

const FORWARD: &str = "kubectl port-forward -n notes service/notes-cloakroom 10000";
const BINDING: &str =
    "kubectl create rolebinding notes-cloakroom-users -n notes --role=notes-cloakroom-user --group=GROUP";
const PLACE: &str = "export CLOAKROOM_SERVER_NAMESPACE=notes CLOAKROOM_SERVER_SERVICE=notes-cloakroom";
const TOKEN_OF_THE_SECRET: &str = "openssl rand -base64 32 >upload-token";
const TOKENS_OF_THE_API_SERVER: &str = "Tokens for the API server are taken too";
const TOKEN_FILE: &str = "CLOAKROOM_UPLOAD_TOKEN_FILE=upload-token";

const WARNING: &str = "WARNING";

const WAYS: &[Way] = &[
    Way {
        files: &["base"],
        values: &[],
        says: &[BINDING, PLACE],
        says_not: &[
            FORWARD,
            TOKEN_OF_THE_SECRET,
            TOKEN_FILE,
            "CLOAKROOM_SERVER=",
            "CLOAKROOM_CA_FILE",
            "waits",
        ],
        pods: None,
    },
    Way {
        files: &["nodeport", "admin-token", "accept-cluster-tokens"],
        values: &["uploadAuth=kubernetes"],
        says: &[
            BINDING,
            PLACE,
            "--from-file=admin-token\n",
            "CLOAKROOM_CA_FILE=tls.crt",
            TOKENS_OF_THE_API_SERVER,
        ],
        says_not: &[FORWARD, TOKEN_OF_THE_SECRET, TOKEN_FILE],
        pods: None,
    },
    Way {
        files: &["upload-auth-token"],
        values: &[],
        says: &[FORWARD, "They send their token over https", TOKEN_OF_THE_SECRET, TOKEN_FILE],
        says_not: &[BINDING, "CLOAKROOM_CA_FILE", "localhost as well"],
        pods: Some("http://notes-cloakroom.notes:10000"),
    },
    Way {
        files: &["tls", "upload-auth-token"],
        values: &[],
        says: &[FORWARD, "The certificate has to name localhost as well", "CLOAKROOM_CA_FILE=tls.crt"],
        says_not: &["They send their token"],
        pods: Some("https://notes-cloakroom.notes:10000"),
    },
    Way {
        files: &["nodeport"],
        values: &[],
        says: &["Clients reach it at https://NODE:31000, with the address of any node."],
        says_not: &[FORWARD],
        pods: Some("https://192.0.2.7:31000"),
    },
    Way {
        files: &["base"],
        values: &["service.type=LoadBalancer", "tls.certManager.issuerRef.name=ca", "uploadAuth=token"],
        says: &["-o jsonpath='{.data.ca\\.crt}' | base64 -d >ca.crt", "CLOAKROOM_CA_FILE=ca.crt"],
        says_not: &[FORWARD],
        pods: Some("https://192.0.2.7:10000"),
    },
    Way {
        files: &["ingress", "upload-auth-token"],
        values: &[],
        says: &["If no public authority signed the certificate of cloakroom.example.com, CLOAKROOM_CA_FILE"],
        says_not: &[FORWARD],
        pods: Some("https://cloakroom.example.com"),
    },
    Way {
        files: &["base"],
        values: &["uploadAuth=none", "service.type=NodePort"],
        says: &["export CLOAKROOM_SERVER=http://NODE:31000\n"],
        says_not: &[FORWARD, BINDING, TOKEN_OF_THE_SECRET, TOKEN_FILE, WARNING],
        pods: Some("http://192.0.2.7:31000"),
    },
    Way {
        files: &["base"],
        values: &["extraArgs[0]=--upload-auth=none", "securityContext=null", "podSecurityContext=null"],
        says: &[
            "WARNING: extraArgs has --upload-auth=none, so the value uploadAuth (kubernetes) does not count",
            "everybody who reaches the port may upload",
            "WARNING: securityContext is empty",
            "WARNING: podSecurityContext is empty",
        ],
        says_not: &[],
        pods: None,
    },
];

/// The lines are typed as they stand; `submit` shows what it would make.
pub async fn the_notes_lead_to_a_first_job(plane: &ControlPlane) {
    define(plane, "certificates");
    for version in Helm::VERSIONS {
        let helm = Helm::new(version).release("notes").at(plane.admin_kubeconfig(), "notes");
        for way in WAYS {
            let files: Vec<_> = way.files.iter().map(|file| format!("ci/{file}-values.yaml")).collect();
            let output = helm.chart(&["install", "--dry-run=client"], &files, way.values);
            let said = String::from_utf8(output.stdout).unwrap();
            let place = format!("{version}, {:?} {:?}", way.files, way.values);
            let complaint = String::from_utf8_lossy(&output.stderr);
            let (_, notes) = said
                .split_once("\nNOTES:\n")
                .unwrap_or_else(|| panic!("{place}: no notes: {said}{complaint}"));
            for words in way.says {
                assert!(notes.contains(words), "{place}: no “{words}” in {notes}");
            }
            for words in way.says_not {
                assert!(!notes.contains(words), "{place}: “{words}” in {notes}");
            }
            let Some(pods) = way.pods else { continue };
            let made = submitted(notes).replace("\\:", ":");
            let fetches = format!(" spark.kubernetes.resourceStagingServer.uri={pods}\n");
            assert!(made.contains(&fetches), "{place}: pods do not fetch from {pods}:\n{made}");
        }
    }
}

/// What `submit` would make, by the lines of the notes, at an address that nothing has: nothing is asked.
fn submitted(notes: &str) -> String {
    let from = notes.find("  echo 'from pyspark").unwrap();
    let to = notes.find("count.py\n\n").unwrap() + "count.py".len();
    let script = notes[from..to].replace("cloakroom submit", "$CLOAKROOM submit --dry-run");
    let script = ["APISERVER", "NODE", "ADDRESS"]
        .iter()
        .fold(script, |script, sign| script.replace(&format!("https://{sign}:"), "https://192.0.2.7:"))
        .replace("http://NODE:", "http://192.0.2.7:");
    let folder = tempfile::tempdir().unwrap();
    let certificate = tls::self_signed(folder.path(), &["192.0.2.7"]);
    for name in ["tls.crt", "ca.crt"] {
        std::fs::copy(&certificate.cert, folder.path().join(name)).unwrap();
    }
    std::fs::write(folder.path().join("upload-token"), "a token of the notes\n").unwrap();
    let output = Command::new("bash")
        .args(["-euc", &script])
        .env("CLOAKROOM", dist::binary())
        .current_dir(&folder)
        .output()
        .unwrap();
    assert!(output.status.success(), "{script}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}
