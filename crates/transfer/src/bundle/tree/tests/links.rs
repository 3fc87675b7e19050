use super::*;

#[test]
fn a_link_that_stays_inside_is_packed_as_what_it_names() {
    let outer = Outer::with(&["tree/real/a.sh", "tree/real/b/c", "tree/top"]);
    fs::set_permissions(outer.path("tree/real/a.sh"), Permissions::from_mode(0o750)).unwrap();
    outer.link("tree/copy", "real");
    outer.link("tree/run", "real/a.sh");
    outer.link("tree/real/b/up", "../../top");
    outer.link("tree/absolute", outer.path("tree/top").to_str().unwrap());
    let plan = outer.tree();
    assert_eq!(names(&plan), "absolute copy/a.sh copy/b/c copy/b/up real/a.sh real/b/c real/b/up run top");
    let executable: Vec<_> =
        plan.files().iter().filter(|file| file.executable).map(|file| &*file.name).collect();
    assert_eq!(executable, ["copy/a.sh", "real/a.sh", "run"]);
    assert_eq!(plan.files().iter().find(|file| file.name == "run").unwrap().size_bytes, 14);
}

#[test]
fn links_that_lead_elsewhere_are_refused_by_their_names() {
    for (to, why) in [
        ("../beside", "leads out of /tree"),
        ("../tree-2/x", "leads out of /tree"),
        ("/etc/passwd", "leads out of /tree"),
        ("nothing", "leads to nothing"),
        ("link", "leads in a circle or through too many links"),
        (".", "leads to a folder that it is in"),
        ("..", "leads out of /tree"),
    ] {
        let outer = Outer::with(&["tree/a", "beside", "tree-2/x"]);
        outer.link("tree/link", to);
        let said = outer.refusal(&["tree"]);
        assert!(
            said.starts_with(&format!("cannot pack /tree/link: it is a link that {why}; leave it out")),
            "{said}"
        );
        outer.add("tree/.gitignore", "link");
        assert_eq!(names(&outer.tree()), ".gitignore a", "one that is left out is no error");
    }
}

#[test]
fn the_target_of_a_link_is_looked_at_too() {
    for (to, is_secret) in [(".env", true), ("x/.ssh", true), ("key.pem", true), ("ok", false)] {
        let outer = Outer::with(&["tree/x/.ssh/config", "tree/.env", "tree/ok"]);
        outer.add("tree/key.pem", "PRIVATE KEY");
        outer.add("tree/.gitignore", ".env\n.ssh\n*.pem\n");
        outer.link("tree/link", to);
        let said = outer.plan(&["tree"], &PackRules::default()).err().map(|error| error.to_string());
        assert_eq!(said.is_some_and(|said| said.contains("/tree/link")), is_secret, "{to}");
    }
    let outer = Outer::with(&["tree/a", "tree/.git/config"]);
    outer.link("tree/config", ".git/config");
    let plan = outer.tree();
    assert_eq!(
        (names(&plan), outer.left_out(&plan)),
        ("a".to_owned(), "1 file and 1 folder named .git".to_owned())
    );
}

#[test]
fn loops_and_mazes_of_links_end() {
    let outer = Outer::with(&["tree/a/x", "tree/b/y"]);
    outer.link("tree/a/to-b", "../b");
    outer.link("tree/b/to-a", "../a");
    assert!(outer.refusal(&["tree"]).contains("it is a link that leads to a folder that it is in"));
    // Linux follows forty links in one path.
    let chain = |names: &[&str]| {
        let outer = Outer::with(&["tree/50/x"]);
        for number in 0..50 {
            outer.add(&format!("tree/{number}/"), "");
            for name in names {
                outer.link(&format!("tree/{number}/{name}"), &format!("../{}", number + 1));
            }
        }
        outer
    };
    assert_eq!(chain(&["r"]).tree().files().len(), 51);
    // Two links in each folder: two to the power of fifty paths.
    let [left, right] = ["l", "r"].map(|name| name.repeat(40));
    let said = chain(&[&left, &right]).refusal(&["tree"]);
    assert!(
        said.starts_with("cannot pack /tree: the names of its files have more than 16777216 bytes"),
        "{said}"
    );
}
