use super::*;

#[test]
fn rules_of_ignore_files_decide_as_with_git() {
    for (ignore_files, packed) in [
        (&[][..], "a.log a.py build/x.log build/y.py sub/a.log sub/deep/a.log"),
        (&[("tree/.gitignore", "*.log\n")], "a.py build/y.py sub/deep/"),
        (
            &[("tree/.gitignore", "# *.py\n\n*.log  \n!a.log\n")],
            "a.log a.py build/y.py sub/a.log sub/deep/a.log",
        ),
        (&[("tree/.gitignore", "/*.log\nbuild/\n")], "a.py sub/a.log sub/deep/a.log"),
        (&[("tree/.gitignore", "build/\n!build/y.py\n")], "a.log a.py sub/a.log sub/deep/a.log"),
        (&[("tree/.gitignore", "build/*\n!build/y.py\n")], "a.log a.py build/y.py sub/a.log sub/deep/a.log"),
        (&[("tree/.gitignore", "a.py/\nsub/**/a.log\n")], "a.log a.py build/x.log build/y.py sub/deep/"),
        (&[("tree/.gitignore", "\u{feff}build\r\nsub\r\n")], "a.log a.py"),
        // The deeper file decides, and .cloakroomignore over .gitignore.
        (
            &[("tree/.gitignore", "*.log\n"), ("tree/sub/.gitignore", "!a.log\n")],
            "a.py build/y.py sub/a.log sub/deep/a.log",
        ),
        (
            &[("tree/.gitignore", "*.log\n"), ("tree/.cloakroomignore", "!/a.log\n*.py")],
            "a.log build/ sub/deep/",
        ),
        // These do not count.
        (
            &[
                (".gitignore", "*"),
                ("tree/.ignore", "*"),
                ("tree/.git/info/exclude", "*"),
                (".git/info/exclude", "*"),
            ],
            ".ignore a.log a.py build/x.log build/y.py sub/a.log sub/deep/a.log",
        ),
    ] {
        let outer = Outer::with(&[
            "tree/a.py",
            "tree/a.log",
            "tree/build/x.log",
            "tree/build/y.py",
            "tree/sub/a.log",
            "tree/sub/deep/a.log",
        ]);
        for (path, text) in ignore_files {
            outer.add(path, text);
        }
        let plan = outer.tree();
        let is_ignore_file = |name: &&str| name.ends_with("ignore") && *name != ".ignore";
        let names = names(&plan);
        let found: Vec<&str> = names.split(' ').filter(|name| !is_ignore_file(name)).collect();
        assert_eq!(found.join(" "), packed, "{ignore_files:?}");
        let rules = PackRules { no_ignore: true, ..PackRules::default() };
        let all = outer.plan(&["tree"], &rules).unwrap();
        assert!(all.files().iter().filter(|file| !is_ignore_file(&&*file.name)).count() >= 6);
    }
}

#[test]
fn what_is_left_out_is_counted_by_rule() {
    let outer = Outer::with(&[
        "tree/a.py",
        "tree/.git/config",
        "tree/sub/.git",
        "tree/x.log",
        "tree/y.log",
        "tree/sub/t.tmp",
    ]);
    outer.add("tree/.gitignore", "*.log\nbuild/\n");
    outer.add("tree/sub/.cloakroomignore", "*.tmp");
    outer.add("tree/build/deep/x", "");
    outer.add("tree/data/1.csv", "");
    let rules = PackRules {
        exclude: vec!["/data".to_owned(), "#1#".to_owned(), "!x".to_owned()],
        ..PackRules::default()
    };
    let plan = outer.plan(&["tree"], &rules).unwrap();
    assert_eq!(names(&plan), ".gitignore a.py sub/.cloakroomignore");
    assert_eq!(
        outer.left_out(&plan),
        "1 folder by --exclude, 2 files and 1 folder by /tree/.gitignore, 1 file by /tree/sub/.cloakroomignore, \
         1 file and 1 folder named .git"
    );
    let rules = PackRules { no_ignore: true, ..rules };
    let plan = outer.plan(&["tree"], &rules).unwrap();
    assert_eq!(outer.left_out(&plan), "1 folder by --exclude, 1 file and 1 folder named .git");
}

#[test]
fn many_ignore_files_make_a_short_summary() {
    let outer = Outer::with(&["tree/a"]);
    for number in 0..50 {
        outer.add(&format!("tree/{number}/.gitignore"), "x");
        outer.add(&format!("tree/{number}/x"), "");
    }
    let told = outer.left_out(&outer.tree());
    assert!(told.ends_with(", 46 files by 46 other ignore files"), "{told}");
}

#[test]
fn a_file_that_is_named_is_under_no_rule() {
    let outer = Outer::with(&["tree/a.log", "tree/b.py", "tree/.gitignore"]);
    outer.add("tree/.gitignore", "*.log");
    let rules = PackRules { exclude: vec!["*.log".to_owned()], ..PackRules::default() };
    let plan = outer.plan(&["tree", "tree/a.log"], &rules).unwrap();
    assert_eq!(names(&plan), ".gitignore a.log b.py");
}

#[test]
fn an_ignore_file_whose_rules_would_not_count_is_refused() {
    let outer = Outer::with(&["tree/a", "tree/sub/a"]);
    let too_long = "x\n".repeat(1 << 20);
    for (name, text, why) in [
        (".gitignore", &*too_long, "it has more than 1048576 bytes; make it shorter"),
        (".cloakroomignore", "\u{feff}a\0", "it has a zero byte in it, as UTF-16 has; save it as UTF-8"),
        (".gitignore", "", "it is a link, which would leave nothing out; put the file in its place"),
    ] {
        let path = format!("tree/sub/{name}");
        if text.is_empty() {
            outer.link(&path, "../a");
        } else {
            outer.add(&path, text);
        }
        let expected = format!("cannot use the rules of /{path}: {why}, or give --no-ignore");
        assert_eq!(outer.refusal(&["tree"]), expected);
        let rules = PackRules { no_ignore: true, ..PackRules::default() };
        assert_eq!(names(&outer.plan(&["tree"], &rules).unwrap()), format!("a sub/{name} sub/a"));
        fs::remove_file(outer.path(&path)).unwrap();
    }
    outer.add("tree/.gitignore/x", "");
    assert_eq!(names(&outer.tree()), ".gitignore/x a sub/a");
}

#[test]
fn a_line_that_is_no_rule_leaves_nothing_out_and_no_glob_may_be_one() {
    let outer = Outer::with(&["tree/a", "tree/b"]);
    outer.add("tree/.gitignore", "[a\n[/]\na\\\n[[:x:]]\nb\n");
    assert_eq!(names(&outer.tree()), ".gitignore a");
    for (glob, is_usable) in [
        ("*.log", true),
        ("#x", true),
        ("{", true),
        ("[z-a]", true),
        ("[a", false),
        ("a\\", false),
        ("[[:x:]]", false),
        ("", false),
        ("/", false),
    ] {
        let said = check_exclude(glob).err();
        assert_eq!(said.is_none(), is_usable, "{glob}");
        assert!(said.is_none_or(|said| said.contains("would leave nothing out")), "{said:?}");
    }
}

#[test]
fn braces_are_plain_characters_as_for_git() {
    let outer = Outer::with(&["tree/a.bak", "tree/x.{bak,tmp}", "tree/b", "tree/{a,b}", "tree/[{]"]);
    outer.add("tree/.gitignore", "*.{bak,tmp}\n{a,b}\n\\{c\n[[{]*\n");
    let plan = outer.tree();
    let names: Vec<&str> = plan.files().iter().map(|file| file.name.as_str()).collect();
    assert_eq!(names, [".gitignore", "a.bak", "b"]);
}
