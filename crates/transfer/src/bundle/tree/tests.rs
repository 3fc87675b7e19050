mod beside_git;
mod links;
mod rules;

use std::ffi::OsStr;
use std::fs::{File, Permissions};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::os::unix::net::UnixListener;

use tempfile::TempDir;

use super::*;
use crate::bundle::{Disk, Folder, PackPlan, UnpackLimits, pack, unpack};

/// A folder `tree`, and what is beside it.
struct Outer(TempDir);

impl Outer {
    /// With files that have their own paths as content; a path with a slash at its end is a folder.
    fn with(paths: &[&str]) -> Self {
        let outer = Self(tempfile::tempdir().unwrap());
        fs::create_dir(outer.path("tree")).unwrap();
        for path in paths {
            outer.add(path, path);
        }
        outer
    }

    fn path(&self, path: &str) -> PathBuf {
        self.0.path().join(path)
    }

    fn add(&self, path: &str, content: &str) {
        let path = self.path(path);
        if path.to_str().unwrap().ends_with('/') {
            return fs::create_dir_all(path).unwrap();
        }
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }

    fn link(&self, path: &str, to: &str) {
        symlink(to, self.path(path)).unwrap();
    }

    fn plan(&self, paths: &[&str], rules: &PackRules) -> Result<PackPlan, PackError> {
        let paths: Vec<PathBuf> = paths.iter().map(|path| self.path(path)).collect();
        PackPlan::of(&paths, rules)
    }

    /// The plan of `tree` alone.
    fn tree(&self) -> PackPlan {
        self.plan(&["tree"], &PackRules::default()).unwrap()
    }

    fn refusal(&self, paths: &[&str]) -> String {
        let error = self.plan(paths, &PackRules::default()).unwrap_err();
        cloakroom_core::text::chain(&error).replace(self.0.path().to_str().unwrap(), "")
    }

    fn left_out(&self, plan: &PackPlan) -> String {
        plan.left_out().unwrap().to_string().replace(self.0.path().to_str().unwrap(), "")
    }
}

fn names(plan: &PackPlan) -> String {
    let files = plan.files().iter().map(|file| file.name.clone());
    let folders = plan.empty_folders().iter().map(|name| format!("{name}/"));
    files.chain(folders).collect::<Vec<_>>().join(" ")
}

#[test]
fn a_folder_is_packed_with_paths_sorted_and_with_empty_folders() {
    let outer = Outer::with(&["tree/b/c.py", "tree/a-b", "tree/a/x", "tree/B", "tree/.hidden", "tree/logs/"]);
    let plan = outer.tree();
    assert_eq!(names(&plan), ".hidden B a-b a/x b/c.py logs/");
    assert!(plan.left_out().unwrap().is_empty());
}

#[test]
fn entries_are_counted_as_unpacking_counts_them() {
    let long = format!("tree/{}/{}", "x".repeat(60), "y".repeat(60));
    let outer = Outer::with(&["tree/a/b/c", "tree/a/d", &long, "tree/e/f/"]);
    let plan = outer.tree();
    let bundle = pack(&plan, &Disk, Vec::new(), &mut |_| ()).unwrap();
    let unpacks = |max_entries| {
        let target = tempfile::tempdir().unwrap();
        let limits = UnpackLimits { max_entries, ..UnpackLimits::default() };
        unpack(&bundle[..], &Folder::at(target.path()).unwrap(), &limits).is_ok()
    };
    let entries = plan.entries() as u64;
    assert!(unpacks(entries) && !unpacks(entries - 1), "{entries}");
}

#[test]
fn secrets_are_refused_by_name_unless_they_are_included_or_left_out() {
    let pem = format!("{}-----BEGIN RSA PRIVATE KEY-----\n", "x".repeat((64 << 10) - 20));
    for (path, content, is_secret) in [
        ("id_rsa", "", true),
        ("keys/id_dsa", "", true),
        ("id_ecdsa", "", true),
        ("id_ed25519", "", true),
        ("id_rsa.pub", "", false),
        ("my_id_rsa", "", false),
        (".netrc", "", true),
        ("sub/.env", "", true),
        (".ENV", "", true),
        (".env.local", "", true),
        (".env/bin/python", "", false),
        (".env.example", "", false),
        (".env.sample", "", false),
        (".env.template", "", false),
        (".environment", "", false),
        ("tls.pem", &pem, true),
        ("TLS.PEM", &pem, true),
        ("ca.pem", "-----BEGIN CERTIFICATE-----", false),
        ("key.txt", &pem, false),
        ("x/.ssh/known_hosts", "", true),
        (".aws/config", "", true),
        (".kube/cache/x", "", true),
        ("ssh/config", "", false),
    ] {
        let outer = Outer::with(&["tree/a"]);
        outer.add(&format!("tree/{path}"), content);
        let plan = |rules: &PackRules| outer.plan(&["tree"], rules);
        assert_eq!(plan(&PackRules::default()).is_err(), is_secret, "{path}");
        let all = PackRules { include_secrets: true, ..PackRules::default() };
        assert_eq!(plan(&all).unwrap().files().len(), 2);
        let without = PackRules { exclude: vec![path.to_owned()], ..PackRules::default() };
        assert_eq!(names(&plan(&without).unwrap()).split(' ').next(), Some("a"));
        let alone = outer.plan(&[&format!("tree/{path}")], &PackRules::default());
        assert_eq!(alone.is_err(), is_secret, "{path} alone");
    }
}

#[test]
fn the_first_secrets_are_named_with_what_to_do() {
    let outer = Outer::with(&["tree/.env", "tree/.gitignore"]);
    let expected = "not packed, because they look like private keys or credentials: /tree/.env; leave them out (--exclude, \
                    or .cloakroomignore), or send them with --include-secrets";
    assert_eq!(outer.refusal(&["tree"]), expected);
    outer.add("tree/.gitignore", ".env");
    assert_eq!(names(&outer.tree()), ".gitignore");
    for number in 0..10 {
        outer.add(&format!("tree/.kube/{number}"), "");
    }
    let said = outer.refusal(&["tree"]);
    assert!(said.contains(" and 5 more;"), "{said}");
}

#[test]
fn what_no_bundle_can_have_is_refused_with_its_path() {
    let outer = Outer::with(&["tree/a"]);
    let _listener = UnixListener::bind(outer.path("tree/socket")).unwrap();
    assert!(
        outer.refusal(&["tree"]).starts_with("cannot pack /tree/socket: it is a device, a pipe or a socket")
    );
    fs::remove_file(outer.path("tree/socket")).unwrap();
    rustix::fs::mknodat(
        rustix::fs::CWD,
        outer.path("tree/.gitignore"),
        rustix::fs::FileType::Fifo,
        0o644.into(),
        0,
    )
    .unwrap();
    assert!(outer.refusal(&["tree"]).starts_with("cannot pack /tree/.gitignore: it is a device, a pipe"));
    fs::remove_file(outer.path("tree/.gitignore")).unwrap();
    for (name, why) in [
        (&b"b\xff"[..], "the name is not UTF-8"),
        (b"b\n", "control character"),
        (b"b\\c", "backslash"),
        (b".cloakroom-x", "not for bundles"),
    ] {
        let path = outer.path("tree").join(OsStr::from_bytes(name));
        File::create(&path).unwrap();
        let said = outer.refusal(&["tree"]);
        assert!(said.starts_with("cannot pack /tree/") && said.contains(why), "{said}");
        outer.add("tree/.gitignore", "b*\n.cloakroom-*");
        assert_eq!(names(&outer.tree()), ".gitignore a");
        fs::remove_file(outer.path("tree/.gitignore")).unwrap();
        fs::remove_file(path).unwrap();
    }
}

#[test]
fn what_cannot_be_read_is_refused_with_its_path() {
    for (path, mode) in [("tree/a", 0o000), ("tree/sub", 0o000), ("tree/sub/.gitignore", 0o000)] {
        let outer = Outer::with(&["tree/a", "tree/sub/b", "tree/sub/.gitignore"]);
        fs::set_permissions(outer.path(path), Permissions::from_mode(mode)).unwrap();
        if File::open(outer.path(path)).is_ok() {
            return eprintln!("not tested: root reads everything");
        }
        let said = outer.refusal(&["tree"]);
        fs::set_permissions(outer.path(path), Permissions::from_mode(0o755)).unwrap();
        assert!(said.starts_with(&format!("cannot read /{path}")), "{said}");
    }
}

#[test]
fn nothing_left_is_an_error_that_says_why() {
    let outer = Outer::with(&["tree/logs/"]);
    assert_eq!(outer.refusal(&["tree"]), "there is no file to pack in the folders");
    outer.add("tree/.gitignore", "*");
    outer.add("tree/a", "");
    let expected = "there is no file to pack in the folders: 2 files and 1 folder by /tree/.gitignore left out; change the \
                    rules, or give --no-ignore";
    assert_eq!(outer.refusal(&["tree"]), expected);
}

#[test]
fn no_path_of_a_bundle_is_two_things() {
    let outer = Outer::with(&["a/x/1", "b/x/2", "c/x", "d/1", "e/x/1", "f/x/", "1", "g/1"]);
    let merged = |paths: &[&str]| outer.plan(paths, &PackRules::default()).map(|plan| names(&plan));
    assert_eq!(merged(&["b", "a", "f", "a/.", "1"]).unwrap(), "1 x/1 x/2 x/");
    assert_eq!(merged(&["a", "a/x/1"]).unwrap(), "1 x/1");
    assert_eq!(merged(&["d", "d/1"]).unwrap(), "1", "the same file");
    for (paths, first, second, name) in [
        (["a", "e"], "/a/x/1", "/e/x/1", "x/1"),
        (["a", "c"], "/c/x", "/a/x/1", "x"),
        (["c", "f"], "/c/x", "/f/x", "x"),
        (["f", "c"], "/c/x", "/f/x", "x"),
        (["d", "1"], "/1", "/d/1", "1"),
    ] {
        let said = outer.refusal(&paths);
        let expected =
            format!("cannot pack {first} and {second} together: both become {name} in the bundle; ");
        assert!(said.starts_with(&expected), "{said}");
    }
}

#[test]
fn top_is_a_folder_for_everything() {
    let outer = Outer::with(&["tree/a/b", "tree/logs/", "x/c.jar", "y/c.jar"]);
    let rules =
        PackRules { top: Some("app".to_owned()), exclude: vec!["/a/z".to_owned()], ..PackRules::default() };
    outer.add("tree/.gitignore", "/a/y");
    outer.add("tree/a/y", "");
    outer.add("tree/a/z", "");
    let plan = outer.plan(&["tree", "x/c.jar", "y/c.jar"], &rules).unwrap();
    assert_eq!(names(&plan), "app/.gitignore app/a/b app/c-1.jar app/c.jar app/logs/");
    let plan = outer.plan(&["x/c.jar"], &rules).unwrap();
    assert_eq!((names(&plan), plan.left_out()), ("app/c.jar".to_owned(), None));
}

#[test]
fn top_makes_no_secrets() {
    let outer = Outer::with(&["tree/a", "b", "secret/.ssh/x"]);
    for top in [".ssh", ".aws", ".env"] {
        let rules = PackRules { top: Some(top.to_owned()), ..PackRules::default() };
        assert_eq!(names(&outer.plan(&["tree", "b"], &rules).unwrap()), format!("{top}/a {top}/b"));
        let error = outer.plan(&["secret"], &rules).unwrap_err();
        assert!(matches!(error, PackError::Secrets { .. }), "{error}");
    }
}

#[test]
fn a_path_that_would_break_a_line_is_shown_escaped() {
    let outer = Outer::with(&["tree\n\u{202e}/b\n", "tree\n\u{202e}/.gitignore"]);
    let tree = "tree\n\u{202e}";
    let said = outer.refusal(&[tree]);
    assert!(said.starts_with(r"cannot pack /tree\n\u{202e}/b\n: rename it"), "{said}");
    outer.add(&format!("{tree}/.gitignore"), "b*");
    outer.add(&format!("{tree}/a"), "");
    let plan = outer.plan(&[tree], &PackRules::default()).unwrap();
    assert_eq!(outer.left_out(&plan), r"1 file by /tree\n\u{202e}/.gitignore");
    outer.link(&format!("{tree}/link"), "..");
    let said = outer.refusal(&[tree]);
    assert!(said.contains(r"a link that leads out of /tree\n\u{202e};"), "{said}");
    fs::remove_file(outer.path(tree).join("link")).unwrap();
    outer.add(&format!("{tree}/.netrc"), "");
    let said = outer.refusal(&[tree]);
    assert!(said.contains(r"credentials: /tree\n\u{202e}/.netrc;"), "{said}");
}

#[test]
fn the_same_tree_makes_the_same_bytes_and_modes_are_those_of_git() {
    let outer = Outer::with(&["tree/z", "tree/m/run", "tree/a", "tree/empty/"]);
    let mode =
        |path: &str, mode| fs::set_permissions(outer.path(path), Permissions::from_mode(mode)).unwrap();
    mode("tree/m/run", 0o700);
    mode("tree/z", 0o666);
    let bytes = || pack(&outer.tree(), &Disk, Vec::new(), &mut |_| ()).unwrap();
    let before = bytes();
    // Another order in the folder.
    fs::rename(outer.path("tree/a"), outer.path("a")).unwrap();
    fs::rename(outer.path("a"), outer.path("tree/a")).unwrap();
    assert!(before == bytes());
    let mut archive = tar::Archive::new(flate2::read::GzDecoder::new(&before[..]));
    let entries = archive.entries().unwrap().map(|entry| {
        let entry = entry.unwrap();
        (entry.path().unwrap().to_str().unwrap().to_owned(), entry.header().mode().unwrap())
    });
    let expected = [("empty/", 0o755), ("a", 0o644), ("m/run", 0o755), ("z", 0o644)];
    assert_eq!(entries.collect::<Vec<_>>(), expected.map(|(path, mode)| (path.to_owned(), mode)));
}

/// With the same size and time, only the place tells them apart.
#[test]
fn what_takes_the_place_of_a_planned_file_does_not_travel() {
    let refused = |change: &dyn Fn(&Outer)| {
        let outer = Outer::with(&["tree/a/file", "beside/file"]);
        let plan = outer.tree();
        change(&outer);
        let modified = plan.files()[0].modified.unwrap();
        let taken = File::options().append(true).open(outer.path("beside/file")).unwrap();
        taken.set_modified(modified).unwrap();
        let error = pack(&plan, &Disk, Vec::new(), &mut |_| ()).unwrap_err();
        cloakroom_core::text::chain(&error)
    };
    let said = refused(&|outer| {
        fs::write(outer.path("beside/file"), "tree/b/file").unwrap();
        fs::rename(outer.path("tree/a"), outer.path("gone")).unwrap();
        outer.link("tree/a", "../beside");
    });
    assert!(said.contains("a link has taken its place"), "{said}");
    let said = refused(&|outer| {
        fs::remove_file(outer.path("tree/a/file")).unwrap();
        let pipe = outer.path("tree/a/file");
        rustix::fs::mknodat(rustix::fs::CWD, &pipe, rustix::fs::FileType::Fifo, rustix::fs::Mode::RUSR, 0)
            .unwrap();
    });
    assert!(said.contains("no regular file any more"), "{said}");
}
