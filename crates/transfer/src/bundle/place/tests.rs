use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};

use tempfile::TempDir;

use super::*;

/// Unpacked files, and a target beside them.
struct Unpacked {
    outer: TempDir,
    tree: UnpackedTree,
}

impl Unpacked {
    fn new(files: &[(&str, &[u8])]) -> Unpacked {
        let unpacked = Unpacked { outer: tempfile::tempdir().unwrap(), tree: UnpackedTree::default() };
        let files = files
            .iter()
            .map(|(name, content)| {
                let path = unpacked.from().join(name);
                fs::create_dir_all(path.parent().unwrap()).unwrap();
                fs::write(path, content).unwrap();
                UnpackedFile { name: (*name).to_owned(), size_bytes: content.len() as u64 }
            })
            .collect();
        Unpacked { tree: UnpackedTree { files, ..UnpackedTree::default() }, ..unpacked }
    }

    fn from(&self) -> PathBuf {
        self.outer.path().join("from")
    }

    fn to(&self) -> PathBuf {
        self.outer.path().join("to")
    }

    fn place(&self) -> Result<(), PlaceError> {
        let open = |path: &Path| Folder::at(path).unwrap();
        place(&open(&self.from()), &self.tree, &open(&self.to()))
    }

    /// Puts something at the target, places, and returns the error. Checks that no file was moved.
    fn refused(&self, prepare: impl FnOnce(&Path)) -> PlaceError {
        fs::create_dir_all(self.to()).unwrap();
        prepare(&self.to());
        let error = self.place().unwrap_err();
        for file in &self.tree.files {
            assert!(self.from().join(&file.name).is_file(), "{} was moved", file.name);
        }
        error
    }
}

#[test]
fn files_move_into_folders_that_all_users_can_read() {
    let unpacked = Unpacked::new(&[("a.jar", b"a"), ("x/y/b", b"b"), ("x/c", b"c")]);
    unpacked.place().unwrap();
    assert_eq!(fs::read(unpacked.to().join("x/y/b")).unwrap(), b"b");
    assert!(!unpacked.from().join("a.jar").exists());
    for folder in ["x", "x/y"] {
        assert_eq!(fs::metadata(unpacked.to().join(folder)).unwrap().permissions().mode() & 0o7777, 0o755);
    }
}

#[test]
fn a_second_run_finds_its_own_files() {
    let unpacked = Unpacked::new(&[("a.jar", &vec![1; 300_000]), ("x/b", b"b")]);
    fs::create_dir_all(unpacked.to().join("x")).unwrap();
    fs::write(unpacked.to().join("a.jar"), vec![1; 300_000]).unwrap();
    unpacked.place().unwrap();
    assert!(unpacked.from().join("a.jar").is_file());
    assert_eq!(fs::read(unpacked.to().join("x/b")).unwrap(), b"b");
}

#[test]
fn other_content_under_the_same_name_is_kept_and_named() {
    let unpacked = Unpacked::new(&[("first", b"1"), ("a.jar", b"new")]);
    let error = unpacked.refused(|to| fs::write(to.join("a.jar"), b"old").unwrap());
    let expected = format!(
        "a.jar already exists in {} with other content; choose an empty folder",
        unpacked.to().display()
    );
    assert_eq!(error.to_string(), expected);
    assert_eq!(fs::read(unpacked.to().join("a.jar")).unwrap(), b"old");
    let longer = unpacked.refused(|to| fs::write(to.join("a.jar"), b"newer").unwrap());
    assert!(matches!(longer, PlaceError::OtherContent { .. }));
}

#[test]
fn anything_but_a_file_at_the_target_is_never_replaced() {
    let folder = Unpacked::new(&[("a", b"1")]).refused(|to| fs::create_dir(to.join("a")).unwrap());
    assert!(matches!(folder, PlaceError::NotAFile { what: "a folder", .. }));
    let unpacked = Unpacked::new(&[("a", b"1")]);
    let link = unpacked.refused(|to| symlink("../from/a", to.join("a")).unwrap());
    assert!(matches!(link, PlaceError::NotAFile { what: "a symbolic link", .. }));
}

#[test]
fn a_folder_that_is_a_link_or_a_file_is_refused() {
    let link = Unpacked::new(&[("x/y/a", b"1")]).refused(|to| symlink("/tmp", to.join("x")).unwrap());
    assert!(matches!(link, PlaceError::NotAFolder { what: "a symbolic link", .. }));
    let file = Unpacked::new(&[("x/a", b"1")]).refused(|to| fs::write(to.join("x"), b"").unwrap());
    assert!(matches!(file, PlaceError::NotAFolder { what: "a file", .. }));
}

#[test]
fn a_folder_that_becomes_a_link_after_the_checks_leads_no_file_elsewhere() {
    let unpacked = Unpacked::new(&[("x/a", b"1"), ("x/y/b", b"2")]);
    fs::create_dir_all(unpacked.to().join("x/y")).unwrap();
    let (from, to) = (Folder::at(&unpacked.from()).unwrap(), Folder::at(&unpacked.to()).unwrap());
    let work = plan(&from, &unpacked.tree, &to).unwrap();
    let [elsewhere, aside] = ["elsewhere", "aside"].map(|name| unpacked.outer.path().join(name));
    fs::create_dir_all(elsewhere.join("y")).unwrap();
    fs::rename(unpacked.to().join("x"), &aside).unwrap();
    symlink(&elsewhere, unpacked.to().join("x")).unwrap();
    let refused = cloakroom_core::text::chain(&carry_out(&work, &from, &to).unwrap_err());
    let path = unpacked.to().join("x");
    let expected = format!(
        "cannot move a file to {path}/a: {path} is a symbolic link, not a folder; check what else writes there, or choose \
         another folder",
        path = path.display()
    );
    assert_eq!(refused, expected);
    assert_eq!(fs::read_dir(&elsewhere).unwrap().count(), 1);
    assert_eq!(fs::read_dir(elsewhere.join("y")).unwrap().count(), 0);
}

#[test]
fn an_unpacked_folder_that_is_taken_away_after_the_checks_is_named() {
    let unpacked = Unpacked::new(&[("x/a", b"1")]);
    fs::create_dir_all(unpacked.to().join("x")).unwrap();
    let (from, to) = (Folder::at(&unpacked.from()).unwrap(), Folder::at(&unpacked.to()).unwrap());
    let work = plan(&from, &unpacked.tree, &to).unwrap();
    let refused = || cloakroom_core::text::chain(&carry_out(&work, &from, &to).unwrap_err());
    fs::rename(unpacked.from().join("x"), unpacked.outer.path().join("aside")).unwrap();
    let gone =
        |path| format!(": {} is gone; check what else writes there", unpacked.from().join(path).display());
    assert!(refused().contains(&gone("x")), "{}", refused());
    fs::create_dir(unpacked.from().join("x")).unwrap();
    assert!(refused().contains(&gone("x/a")), "{}", refused());
}

#[test]
fn empty_folders_are_made_unless_something_else_is_there() {
    let mut unpacked = Unpacked::new(&[("a", b"1")]);
    unpacked.tree.empty_folders.extend(["logs".to_owned(), "x/y".to_owned()]);
    let error = unpacked.refused(|to| fs::write(to.join("logs"), b"a file").unwrap());
    assert!(error.to_string().contains("logs: it is a file, not a folder"), "{error}");
    fs::remove_file(unpacked.to().join("logs")).unwrap();
    fs::create_dir(unpacked.to().join("x")).unwrap();
    unpacked.place().unwrap();
    assert!(unpacked.to().join("logs").is_dir() && unpacked.to().join("x/y").is_dir());
}

#[test]
fn the_target_may_be_a_link() {
    let unpacked = Unpacked::new(&[("a", b"1")]);
    fs::create_dir(unpacked.outer.path().join("volume")).unwrap();
    symlink("volume", unpacked.to()).unwrap();
    unpacked.place().unwrap();
    assert!(unpacked.outer.path().join("volume/a").is_file());
}

#[test]
fn names_that_no_unpacking_gives_are_refused() {
    for name in ["../a", "/a", "", "./a", "a//b", "a/"] {
        let mut unpacked = Unpacked::new(&[("a", b"1")]);
        unpacked.tree.files.push(UnpackedFile { name: name.to_owned(), size_bytes: 1 });
        assert!(matches!(unpacked.place(), Err(PlaceError::Name { .. })), "{name}");
        assert!(unpacked.from().join("a").is_file());
    }
}
