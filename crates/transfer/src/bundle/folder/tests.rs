use std::os::unix::fs::{PermissionsExt as _, symlink};

use tempfile::TempDir;

use super::*;

/// A folder that is open, and one beside it in which nothing may appear.
struct Shared {
    outer: TempDir,
    folder: Folder,
}

impl Shared {
    fn new() -> Self {
        let outer = tempfile::tempdir().unwrap();
        let folder = Folder::at(&outer.path().join("target")).unwrap();
        fs::create_dir_all(outer.path().join("elsewhere/deep")).unwrap();
        fs::write(outer.path().join("elsewhere/theirs"), "theirs").unwrap();
        Self { outer, folder }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.outer.path().join(name)
    }

    /// Puts a link to the folder beside in the place of `name`, which is moved away.
    fn swap(&self, name: &str) {
        fs::rename(self.path(name), self.path("aside")).unwrap();
        symlink(self.path("elsewhere"), self.path(name)).unwrap();
    }

    fn assert_nothing_elsewhere(&self) {
        let names = |path| fs::read_dir(path).unwrap().count();
        assert_eq!((names(self.path("elsewhere")), names(self.path("elsewhere/deep"))), (2, 0));
        assert_eq!(fs::read_to_string(self.path("elsewhere/theirs")).unwrap(), "theirs");
        assert!(fs::metadata(self.path("elsewhere")).unwrap().permissions().mode() & 0o022 == 0);
    }
}

fn refusal<T>(outcome: io::Result<T>) -> String {
    outcome.err().unwrap().to_string()
}

#[test]
fn a_folder_that_is_open_is_written_to_wherever_its_path_leads_now() {
    let shared = Shared::new();
    shared.swap("target");
    let folder = &shared.folder;
    folder.create_file("new").unwrap();
    folder.write_whole("draft", "theirs", b"ours").unwrap();
    folder.make_empty("deep").unwrap().create_file("new").unwrap();
    folder.remove("new").unwrap();
    let mut walk = Walk::from(folder);
    walk.make_folder("a").unwrap();
    walk.create_file("a/b").unwrap();
    shared.assert_nothing_elsewhere();
    assert_eq!(fs::read_to_string(shared.path("aside/theirs")).unwrap(), "ours");
    assert!(shared.path("aside/a/b").is_file() && shared.path("aside/deep/new").is_file());
}

#[test]
fn a_link_below_an_open_folder_is_never_followed() {
    let shared = Shared::new();
    let mut walk = Walk::from(&shared.folder);
    walk.make_folder("a").unwrap();
    walk.make_folder("a/deep").unwrap();
    let mut kept_open = Walk::from(&shared.folder);
    kept_open.create_file("a/before").unwrap();
    shared.swap("target/a");
    kept_open.create_file("a/after").unwrap();
    assert!(shared.path("aside/after").is_file());

    let mut walk = Walk::from(&shared.folder);
    let path = shared.path("target/a");
    let expected = format!(
        "{} is a symbolic link, not a folder; check what else writes there, or choose another folder",
        path.display()
    );
    assert_eq!(refusal(walk.create_file("a/new")), expected);
    assert_eq!(refusal(walk.create_file("a/deep/new")), expected);
    assert_eq!(refusal(walk.make_folder("a/new")), expected);
    assert_eq!(refusal(walk.look("a/theirs")), expected);
    assert_eq!(refusal(walk.open_file("a/theirs")), expected);
    shared.folder.create_file("mine").unwrap();
    symlink(shared.path("elsewhere/theirs"), shared.path("target/link")).unwrap();
    assert_eq!(refusal(walk.make_folder("a")), expected);
    for name in ["a", "link"] {
        assert!(shared.folder.create_file(name).is_err(), "{name}");
        assert!(shared.folder.open_file(name, OFlags::WRONLY).is_err(), "{name}");
        assert!(walk.make_folder(name).is_err(), "{name}");
    }
    shared.assert_nothing_elsewhere();
}

#[test]
fn a_folder_that_another_process_takes_away_is_named() {
    let shared = Shared::new();
    let mut walk = Walk::from(&shared.folder);
    walk.make_folder("a").unwrap();
    fs::remove_dir(shared.path("target/a")).unwrap();
    let gone = |path| {
        format!(
            "{} is gone; check what else writes there, or choose another folder",
            shared.path(path).display()
        )
    };
    assert_eq!(refusal(walk.create_file("a/b/new")), gone("target/a"));
    assert!(walk.look("a/b").unwrap().is_none(), "a file that is not there is no error");
    let elsewhere = Folder::open(&shared.path("elsewhere")).unwrap();
    assert_eq!(refusal(walk.rename("b", &mut Walk::from(&elsewhere))), gone("target/b"));
    shared.assert_nothing_elsewhere();
}

#[test]
fn what_is_in_the_way_of_a_folder_is_named() {
    let shared = Shared::new();
    symlink("nowhere", shared.path("dangling")).unwrap();
    symlink("elsewhere/theirs", shared.path("to-a-file")).unwrap();
    for (name, what) in [
        ("elsewhere/theirs", "a file"),
        ("dangling", "a symbolic link that leads to no folder"),
        ("to-a-file", "a symbolic link that leads to no folder"),
    ] {
        let path = shared.path(name);
        let expected = format!("{} is {what}; remove it, or choose another folder", path.display());
        assert_eq!(refusal(Folder::at(&path)), expected);
        assert_eq!(refusal(Folder::at(&path.join("a/b"))), expected);
    }
    shared.assert_nothing_elsewhere();
}

#[test]
fn what_is_removed_is_a_link_and_not_what_it_leads_to() {
    let shared = Shared::new();
    fs::create_dir_all(shared.path("target/a/b/c")).unwrap();
    fs::write(shared.path("target/a/b/file"), "").unwrap();
    for link in ["target/a/b/c/link", "target/a/link", "target/link"] {
        symlink(shared.path("elsewhere"), shared.path(link)).unwrap();
    }
    for name in ["a", "link", "missing"] {
        shared.folder.remove(name).unwrap();
    }
    assert!(shared.folder.names().unwrap().is_empty());
    shared.assert_nothing_elsewhere();
}

#[test]
fn a_path_that_leads_out_of_its_folder_is_refused() {
    let shared = Shared::new();
    let mut walk = Walk::from(&shared.folder);
    for path in ["../elsewhere/new", "..", "/tmp/new", "", "a/../../elsewhere/new", "./new", "a//b"] {
        assert_eq!(refusal(walk.create_file(path)), "its name leads out of its folder", "{path:?}");
    }
    shared.assert_nothing_elsewhere();
}
