use std::fs;
use std::io::{self, Read};
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::PathBuf;
use std::time::{Duration, UNIX_EPOCH};

use proptest::prelude::*;
use tempfile::TempDir;

use super::*;
use cloakroom_testing::bundles::{self, header, octal};

/// A folder to unpack into, with a neighbour file that must stay unchanged.
struct Target {
    outer: TempDir,
}

impl Target {
    fn new() -> Target {
        let outer = tempfile::tempdir().unwrap();
        fs::write(outer.path().join("neighbour"), b"untouched").unwrap();
        Target { outer }
    }

    fn inside(&self) -> PathBuf {
        self.outer.path().join("target")
    }

    fn folder(&self) -> Folder {
        Folder::at(&self.inside()).unwrap()
    }

    fn unpack(&self, bundle: &[u8]) -> Result<Vec<UnpackedFile>, UnpackError> {
        unpack(bundle, &self.folder(), &UnpackLimits::default()).map(|tree| tree.files)
    }

    fn assert_nothing_outside(&self) {
        let mut names: Vec<_> =
            fs::read_dir(self.outer.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        names.retain(|name| name != "target");
        assert_eq!(names, ["neighbour"]);
        assert_eq!(fs::read(self.outer.path().join("neighbour")).unwrap(), b"untouched");
        assert!(!PathBuf::from("/tmp/owned").exists());
    }
}

fn limited(bundle: &[u8], max_entries: u64, max_bytes: u64) -> Result<Vec<UnpackedFile>, UnpackError> {
    unpack(bundle, &Target::new().folder(), &UnpackLimits { max_entries, max_bytes }).map(|tree| tree.files)
}

fn refusal(bundle: &[u8]) -> UnpackError {
    Target::new().unpack(bundle).unwrap_err()
}

fn names(files: &[UnpackedFile]) -> Vec<&str> {
    files.iter().map(|file| file.name.as_str()).collect()
}

/// Counts the bytes that were read. Can fail at the end, or return small pieces.
struct Source<'a> {
    bytes: &'a [u8],
    read: usize,
    piece: usize,
    fails_at_end: bool,
}

impl<'a> Source<'a> {
    fn new(bytes: &'a [u8]) -> Source<'a> {
        Source { bytes, read: 0, piece: usize::MAX, fails_at_end: false }
    }
}

impl Read for Source<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let rest = &self.bytes[self.read..];
        if rest.is_empty() && self.fails_at_end {
            return Err(io::Error::new(io::ErrorKind::UnexpectedEof, "the connection broke"));
        }
        let now = rest.len().min(buffer.len()).min(self.piece);
        buffer[..now].copy_from_slice(&rest[..now]);
        self.read += now;
        Ok(now)
    }
}

#[test]
fn folders_with_nothing_in_them_are_told() {
    let folder = |name: &str| (header(name.as_bytes(), b'5', octal(0)), &b""[..]);
    let file = |name: &str| (header(name.as_bytes(), b'0', octal(1)), &b"1"[..]);
    let entries = ["./", "a/", "a/b/", "a/b/c/", "d/", "e/f/", "g/"].map(folder);
    let bundle =
        bundles::tgz_of(&[&entries[..], &[file("d/x"), file("e/y"), folder("g/"), folder("g/")]].concat());
    let tree = unpack(&bundle[..], &Target::new().folder(), &UnpackLimits::default()).unwrap();
    assert_eq!(names(&tree.files), ["d/x", "e/y"]);
    assert_eq!(tree.empty_folders.into_iter().collect::<Vec<_>>(), ["a/b/c", "e/f", "g"]);
}

#[test]
fn files_and_folders_come_out_readable_for_all_users() {
    let mut script = header(b"bin/run", b'0', octal(2));
    script[100..108].copy_from_slice(b"0006710\0");
    let bundle = bundles::tgz_of(&[
        (header(b"./", b'5', octal(0)), b""),
        (header(b"./empty/", b'5', octal(0)), b""),
        (header(b"./a.jar", b'0', octal(3)), b"jar"),
        (script, b"sh"),
    ]);
    let target = Target::new();
    let files = target.unpack(&bundle).unwrap();
    assert_eq!(names(&files), ["a.jar", "bin/run"]);
    let mode = |name| fs::metadata(target.inside().join(name)).unwrap().permissions().mode() & 0o7777;
    assert_eq!([mode("a.jar"), mode("bin/run"), mode("bin"), mode("empty")], [0o644, 0o755, 0o755, 0o755]);
    assert_eq!(fs::read(target.inside().join("a.jar")).unwrap(), b"jar");
    assert_eq!(fs::metadata(target.inside().join("a.jar")).unwrap().mtime(), 0o14_000_000_000);
}

// Invariant: unpacking never writes outside its folder, and refuses before the entry is on the disk.
#[test]
fn every_hostile_bundle_is_refused_and_nothing_is_written_outside() {
    for (attack, bundle) in bundles::hostile() {
        let target = Target::new();
        let error = target.unpack(&bundle);
        assert!(error.is_err(), "{attack} was accepted");
        target.assert_nothing_outside();
        let message = error.unwrap_err().to_string();
        assert!(!message.ends_with('.') && !message.contains(char::is_control), "{attack}: {message}");
    }
}

#[test]
fn the_offending_entry_never_reaches_the_disk() {
    for bundle in [
        bundles::bare("pipe", b'6'),
        bundles::bare("sparse", b'S'),
        bundles::claiming(bundles::base256(1 << 60)),
    ] {
        let target = Target::new();
        target.unpack(&bundle).unwrap_err();
        assert_eq!(fs::read_dir(target.inside()).unwrap().count(), 0);
    }
}

/// Python compiles a module anew if the time of its source has other whole seconds than the compiled file remembers.
#[test]
fn a_files_time_is_from_its_record_and_not_the_rounded_one_of_its_header() {
    let modified = |bundle: &[u8]| {
        let target = Target::new();
        let files = target.unpack(bundle).unwrap();
        let file = target.inside().join(&files[0].name);
        fs::metadata(file).unwrap().modified().unwrap()
    };
    let of_record = |mtime: &str| modified(&bundles::with_pax(&[("mtime", mtime)], b"x"));
    let after = |seconds, nanoseconds| UNIX_EPOCH + Duration::new(seconds, nanoseconds);
    // As Python's tarfile writes it, with 1350244993 in the header.
    assert_eq!(of_record("1350244992.9600000"), after(1_350_244_992, 960_000_000));
    assert_eq!(of_record("-86400"), UNIX_EPOCH - Duration::from_hours(24));
    assert_eq!(of_record("9000000000"), after(9_000_000_000, 0));
    let of_header = after(0o14_000_000_000, 0);
    assert_eq!(of_record("soon"), of_header);
    assert_eq!(modified(&bundles::tgz(&[("a", b"")])), of_header);
    let body = bundles::pax(&[("mtime", "7.5"), ("comment", "of all")]);
    let global = header(b"pax_global_header", b'g', octal(body.len() as u64));
    let file = header(b"a", b'0', octal(0));
    assert_eq!(modified(&bundles::tgz_of(&[(global, &body), (file, b"")])), after(7, 500_000_000));
}

#[test]
fn labels_and_lists_of_folders_are_no_files() {
    let list = b"Ya.jar\0\0";
    let bundle = bundles::tgz_of(&[
        (header(b"backup of monday", b'V', octal(0)), b""),
        (header(b"lib/", b'D', octal(list.len() as u64)), list),
        (header(b"lib/a.jar", b'0', octal(1)), b"x"),
    ]);
    let target = Target::new();
    assert_eq!(names(&target.unpack(&bundle).unwrap()), ["lib/a.jar"]);
    assert!(target.inside().join("lib").is_dir());
    // They count against the limits all the same.
    assert!(matches!(limited(&bundle, 2, 1 << 20), Err(UnpackError::TooManyEntries { .. })));
    assert!(matches!(limited(&bundle, 10, 8), Err(UnpackError::TooManyBytes { .. })));
    let endless = bundles::tgz_with_raw_header(&header(b"lib/", b'D', bundles::base256(1 << 60)), b"");
    assert!(matches!(refusal(&endless), UnpackError::TooManyBytes { .. }));
}

#[test]
fn each_refusal_has_its_own_reason() {
    use UnpackError as E;
    assert!(matches!(
        refusal(&bundles::named(b"/tmp/owned")),
        E::Name { source: crate::bundle::NameFault::Absolute, .. }
    ));
    assert!(matches!(refusal(&bundles::tgz(&[("a", b""), ("./a", b"")])), E::Duplicate { .. }));
    assert!(matches!(refusal(&bundles::tgz(&[("a", b""), ("a/b", b"")])), E::FileAndFolder { .. }));
    assert!(matches!(refusal(&bundles::truncated()), E::Truncated));
    assert!(matches!(refusal(&bundles::wrong_checksum()), E::Corrupt(_)));
    assert!(matches!(refusal(&bundles::trailing_garbage()), E::TrailingData));
    assert!(matches!(refusal(&bundles::joined_archives()), E::DataAfterEnd));
    assert!(matches!(refusal(&bundles::claiming([0xff; 12])), E::BadHeader { .. }));
    assert!(matches!(refusal(&bundles::claiming(bundles::base256(1 << 60))), E::TooManyBytes { .. }));
    assert!(matches!(refusal(&bundles::many_global_records(200_001)), E::TooManyEntries { limit: 200_000 }));
    assert!(matches!(refusal(&bundles::long_record(b'L', 8 << 20)), E::LongRecord { .. }));
    assert!(matches!(
        refusal(&bundles::with_pax(&[("GNU.sparse.major", "1")], b"")),
        E::Unsupported { what: "a sparse file", .. }
    ));
}

#[test]
fn refusals_speak_to_the_person_who_made_the_bundle() {
    assert_eq!(
        refusal(b"PK\x03\x04").to_string(),
        "this is not a bundle: it looks like a zip or jar file; expected a .tar.gz or a .tar, as tar czf makes"
    );
    assert_eq!(
        refusal(&bundles::through_link(b'2', "/tmp")).to_string(),
        "entry link is a symbolic link; a bundle may hold files and folders only: pack with tar --dereference --hard-dereference"
    );
    assert_eq!(
        refusal(b"").to_string().split(';').next(),
        Some("this is not a bundle: it looks like an empty file")
    );
}

#[test]
fn long_names_of_both_kinds_are_read() {
    let long = "n".repeat(200);
    let deep = format!("{}file", "folder/".repeat(40));
    let bundle = bundles::tgz_of(&[
        (header(b"././@LongLink", b'L', octal(201)), format!("{long}\0").as_bytes()),
        (header(long.as_bytes(), b'0', octal(1)), b"1"),
    ]);
    assert_eq!(names(&Target::new().unpack(&bundle).unwrap()), [long.as_str()]);
    let bundle = bundles::with_pax(&[("mtime", "1.5"), ("path", &deep), ("size", "3")], b"abc");
    assert_eq!(names(&Target::new().unpack(&bundle).unwrap()), [deep.as_str()]);
}

#[test]
fn a_long_name_that_its_header_cuts_behind_a_slash_is_no_folder() {
    let long = format!("{}/__init__.py", "x".repeat(99));
    for content in [&b""[..], b"1"] {
        let bundle = bundles::tgz_of(&[
            (header(b"././@LongLink", b'L', octal(long.len() as u64 + 1)), format!("{long}\0").as_bytes()),
            (header(&long.as_bytes()[..100], b'0', octal(content.len() as u64)), content),
        ]);
        assert_eq!(names(&Target::new().unpack(&bundle).unwrap()), [long.as_str()]);
    }
}

#[test]
fn the_global_remark_of_git_archive_is_passed_over() {
    let remark = bundles::pax(&[("comment", "9f1c2a3b4d5e6f708192a3b4c5d6e7f809182736")]);
    let bundle = bundles::tgz_of(&[
        (header(b"pax_global_header", b'g', octal(remark.len() as u64)), &remark),
        (header(b"a", b'0', octal(1)), b"1"),
    ]);
    assert_eq!(names(&Target::new().unpack(&bundle).unwrap()), ["a"]);
}

#[test]
fn several_gzip_members_and_zeros_after_them_are_one_bundle() {
    let tar = bundles::tar(&[("a", b"1"), ("b", &[7; 3000])]);
    let (first, second) = tar.split_at(700);
    let bundle = [bundles::gzip(first), bundles::gzip(second), vec![0; 200_000]].concat();
    assert_eq!(names(&Target::new().unpack(&bundle).unwrap()), ["a", "b"]);
}

#[test]
fn a_plain_tar_is_accepted_also_without_an_end_mark() {
    let tar = bundles::tar(&[("a", b"1"), ("b", b"2")]);
    assert_eq!(names(&Target::new().unpack(&tar).unwrap()), ["a", "b"]);
    assert_eq!(names(&Target::new().unpack(&tar[..2048]).unwrap()), ["a", "b"]);
    for cut in [100, 300, 511, 513, 1023, 1025, 1600] {
        assert!(Target::new().unpack(&tar[..cut]).is_err(), "{cut}");
    }
    assert!(matches!(refusal(&tar[..1600]), UnpackError::Truncated));
}

#[test]
fn an_archive_of_nothing_has_no_files() {
    assert_eq!(Target::new().unpack(&bundles::tgz(&[])).unwrap(), []);
}

#[test]
fn a_bundle_is_read_to_its_end() {
    let padded = bundles::gzip(&[bundles::tar(&[("a", b"1")]), vec![0; 100_000]].concat());
    let bundle = [padded, vec![0; 300_000]].concat();
    for piece in [1, 7, usize::MAX] {
        let mut source = Source { piece, ..Source::new(&bundle) };
        unpack(&mut source, &Target::new().folder(), &UnpackLimits::default()).unwrap();
        assert_eq!(source.read, bundle.len());
    }
}

#[test]
fn a_broken_connection_is_not_taken_for_a_broken_bundle() {
    let whole = bundles::tgz(&[("a", b"1")]);
    for cut in [0, 1, 20, whole.len()] {
        let source = Source { fails_at_end: true, ..Source::new(&whole[..cut]) };
        let error = unpack(source, &Target::new().folder(), &UnpackLimits::default()).unwrap_err();
        assert!(
            matches!(&error, UnpackError::Read(cause) if cause.to_string() == "the connection broke"),
            "{cut}: {error}"
        );
    }
}

#[test]
fn limits_are_exact() {
    let bundle = bundles::tgz(&[("a", &[0; 1000]), ("b", &[0; 1000])]);
    assert!(limited(&bundle, 2, 2000).is_ok());
    assert!(matches!(limited(&bundle, 2, 1999), Err(UnpackError::TooManyBytes { limit: 1999 })));
    assert!(matches!(limited(&bundle, 1, 2000), Err(UnpackError::TooManyEntries { limit: 1 })));
}

#[test]
fn folders_that_names_imply_count_as_entries() {
    let bundle = bundles::tgz(&[("a/b/c/d", b"")]);
    assert!(limited(&bundle, 4, 0).is_ok());
    assert!(matches!(limited(&bundle, 3, 0), Err(UnpackError::TooManyEntries { limit: 3 })));
}

#[test]
fn a_bomb_is_refused_by_its_claim_or_by_what_comes_out_of_it() {
    const BOMB: u64 = 64 << 20;
    let bomb = bundles::bomb(BOMB);
    assert!(matches!(limited(&bomb, 10, BOMB - 1), Err(UnpackError::TooManyBytes { .. })));
    assert!(limited(&bomb, 10, BOMB).is_ok());
    let behind = bundles::bomb_behind_the_end(BOMB);
    assert!(matches!(refusal(&behind), UnpackError::DataAfterEnd));
}

#[test]
fn a_long_record_is_refused_before_it_is_read() {
    let noise: Vec<u8> =
        (0..4_000_000_u32).map(|number| number.wrapping_mul(2_654_435_761).to_be_bytes()[1]).collect();
    for kind in *b"LKxg" {
        let bundle = bundles::tgz_with_raw_header(&header(b"r", kind, octal(noise.len() as u64)), &noise);
        let mut source = Source::new(&bundle);
        let error = unpack(&mut source, &Target::new().folder(), &UnpackLimits::default()).unwrap_err();
        assert!(matches!(error, UnpackError::LongRecord { .. }));
        assert!(source.read < 600 * 1024, "read {} of {}", source.read, bundle.len());
    }
}

#[test]
fn links_that_exist_already_are_never_written_through() {
    let target = Target::new();
    fs::create_dir(target.inside()).unwrap();
    symlink("../neighbour", target.inside().join("a")).unwrap();
    symlink("..", target.inside().join("d")).unwrap();
    assert!(matches!(target.unpack(&bundles::tgz(&[("a", b"1")])), Err(UnpackError::Disk { .. })));
    assert!(matches!(target.unpack(&bundles::tgz(&[("d/new", b"1")])), Err(UnpackError::Disk { .. })));
    target.assert_nothing_outside();
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]
    #[test]
    fn broken_archives_never_panic_and_never_write_outside(
        edits in prop::collection::vec((0_usize..6000, any::<u8>()), 1..6),
        fix_sums: bool,
        compressed: bool,
        cut in 0_usize..6000,
    ) {
        let mut tar = bundles::ended(Vec::new());
        for (name, kind) in [("dir/", b'5'), ("dir/a", b'0'), ("r", b'x'), ("l", b'L'), ("c", b'0'), ("../owned", b'0')] {
            let mut entry = Vec::new();
            let content: &[u8] = match kind {
                b'x' => b"12 path=ab/\n",
                b'L' => b"/etc/owned\0",
                b'0' => b"text",
                _ => b"",
            };
            bundles::push_entry(&mut entry, &header(name.as_bytes(), kind, octal(content.len() as u64)), content);
            let end = tar.len() - 1024;
            tar.splice(end..end, entry);
        }
        for (position, byte) in edits {
            let position = position % tar.len();
            tar[position] = byte;
        }
        if fix_sums {
            tar = tar.chunks(512).flat_map(|block| {
                let mut fixed = Vec::new();
                match <[u8; 512]>::try_from(block) {
                    Ok(block) if block[257..].starts_with(b"ustar") => bundles::push_entry(&mut fixed, &block, b""),
                    _ => fixed.extend_from_slice(block),
                }
                fixed
            }).collect();
        }
        let mut bundle = if compressed { bundles::gzip(&tar) } else { tar };
        bundle.truncate(cut.max(20));
        let target = Target::new();
        let _ = target.unpack(&bundle);
        target.assert_nothing_outside();
    }

    #[test]
    fn arbitrary_bytes_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..2000), compressed: bool) {
        let bundle = if compressed { bundles::gzip(&bytes) } else { [&b"\x1f\x8b\x08\x00"[..], &bytes].concat() };
        let target = Target::new();
        let _ = target.unpack(&bundle);
        target.assert_nothing_outside();
    }
}
