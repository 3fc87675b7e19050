use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::symlink;
use std::os::unix::net::UnixListener;

use super::*;

fn plan_error(path: PathBuf) -> PackError {
    PackPlan::new(&[path]).unwrap_err()
}

#[test]
fn files_keep_their_order_and_the_second_of_a_name_is_numbered() {
    let folder = tempfile::tempdir().unwrap();
    let paths: Vec<PathBuf> =
        ["x/app.jar", "y/app.jar", "x/b.txt"].iter().map(|name| folder.path().join(name)).collect();
    for path in &paths {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, b"12345").unwrap();
    }
    let plan = PackPlan::new(&paths).unwrap();
    let names: Vec<&str> = plan.files().iter().map(|file| file.name.as_str()).collect();
    assert_eq!(names, ["app.jar", "app-1.jar", "b.txt"]);
    assert_eq!(plan.renamed(), [Renamed { path: paths[1].clone(), name: "app-1.jar".to_owned() }]);
    assert_eq!(plan.total_bytes(), 15);
}

#[test]
fn a_file_that_is_given_twice_is_packed_once_for_each_name() {
    let folder = tempfile::tempdir().unwrap();
    let [file, link] = ["a.jar", "b.jar"].map(|name| folder.path().join(name));
    fs::write(&file, b"12345").unwrap();
    symlink(&file, &link).unwrap();
    let plan =
        PackPlan::new(&[file, link, folder.path().join("./a.jar"), folder.path().join("b.jar")]).unwrap();
    let names: Vec<&str> = plan.files().iter().map(|file| file.name.as_str()).collect();
    assert_eq!((names, plan.renamed()), (vec!["a.jar", "b.jar"], &[][..]));
}

#[test]
fn a_file_may_get_another_name_than_it_has() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("prod.conf");
    fs::write(&path, b"1").unwrap();
    let named = |name: &str| {
        let file = PackPlan::new(std::slice::from_ref(&path)).unwrap().files()[0].clone();
        PackPlan::from_files(vec![PlannedFile { name: name.to_owned(), ..file }])
    };
    let plan = named("app.conf").unwrap();
    assert_eq!((plan.files()[0].name.as_str(), plan.renamed()), ("app.conf", &[][..]));
    assert!(matches!(named("a/b"), Err(PackError::Name { .. })));
}

#[test]
fn a_link_to_a_file_is_followed_and_keeps_its_own_name() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("real-1.2.jar"), b"123").unwrap();
    let link = folder.path().join("app.jar");
    symlink("real-1.2.jar", &link).unwrap();
    let plan = PackPlan::new(&[link]).unwrap();
    assert_eq!((plan.files()[0].name.as_str(), plan.files()[0].size_bytes), ("app.jar", 3));
}

#[test]
fn an_empty_list_is_refused() {
    assert!(matches!(PackPlan::new(&[]), Err(PackError::NoFiles)));
}

#[test]
fn sockets_and_missing_files_are_refused_before_packing() {
    let folder = tempfile::tempdir().unwrap();
    assert!(matches!(plan_error(folder.path().join("gone.jar")), PackError::Missing { .. }));
    let dangling = folder.path().join("dangling");
    symlink("nowhere", &dangling).unwrap();
    assert!(matches!(plan_error(dangling), PackError::Missing { .. }));
    let socket = folder.path().join("socket");
    let _listener = UnixListener::bind(&socket).unwrap();
    assert!(matches!(plan_error(socket), PackError::Special { .. }));
}

#[test]
fn names_that_could_not_be_unpacked_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    for (name, fault) in [
        (&b"a\nb.jar"[..], NameFault::Control),
        (b"a\\b.jar", NameFault::Backslash),
        (b"\xff.jar", NameFault::NotUtf8),
    ] {
        let path = folder.path().join(OsStr::from_bytes(name));
        fs::write(&path, b"").unwrap();
        assert!(matches!(plan_error(path), PackError::Name { source, .. } if source == fault));
    }
}

#[test]
fn a_number_that_makes_a_name_too_long_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let paths = ["a", "b"].map(|name| folder.path().join(name).join("x".repeat(255)));
    for path in &paths {
        fs::create_dir(path.parent().unwrap()).unwrap();
        fs::write(path, b"").unwrap();
    }
    assert!(PackPlan::new(&paths[..1]).is_ok());
    let error = PackPlan::new(&paths).unwrap_err();
    assert!(matches!(error, PackError::Name { source: NameFault::LongComponent, .. }));
}

#[test]
fn errors_say_what_to_do_next() {
    let error = plan_error(PathBuf::from("/no/such/app.jar"));
    assert_eq!(error.to_string(), "cannot pack /no/such/app.jar: no such file; check its path");
}
