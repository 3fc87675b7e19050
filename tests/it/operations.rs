//! A listener for operations alone.

use cloakroom_testing::process::Cloakroom;
use cloakroom_testing::wire::ask;

#[tokio::test]
async fn operations_may_have_a_listener_of_their_own() {
    let folder = tempfile::tempdir().unwrap();
    let flags = ["--ops-listen", "127.0.0.1:0", "--min-free-space", "0b"];
    let mut server = Cloakroom::serve(folder.path(), &flags);
    let line = server.wait_for_log("health checks are on http://");
    let operations = line.rsplit_once("://").unwrap().1.trim().trim_end_matches("\u{1b}[0m").parse().unwrap();
    let main = server.address.parse().unwrap();
    for (path, on_main, on_operations) in [
        ("/healthz", 404, 200),
        ("/readyz", 404, 200),
        ("/metrics", 404, 200),
        ("/", 200, 404),
        ("/api/ping", 200, 404),
        ("/api/openapi.json", 200, 404),
        ("/api/v1/resources", 405, 404),
    ] {
        let request = format!("GET {path} HTTP/1.1\r\nHost: x\r\n\r\n");
        assert_eq!(ask(main, &request).await.status, on_main, "{path}");
        assert_eq!(ask(operations, &request).await.status, on_operations, "{path}");
    }
    let metrics = ask(operations, "GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n").await.text();
    assert!(metrics.contains("cloakroom_limit_used{of=\"ops-connections\"} "), "{metrics}");
    assert!(metrics.contains("cloakroom_limit{of=\"connections\"} 2048"), "{metrics}");
    server.kill();
}
