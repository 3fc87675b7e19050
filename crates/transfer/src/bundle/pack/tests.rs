use std::collections::HashMap;
use std::fs::{self, File};
use std::io::Read as _;
use std::path::PathBuf;

use tempfile::TempDir;

use super::super::{Disk, Segment, Segments};
use super::*;

fn folder_with(files: &[(&str, &[u8])]) -> (TempDir, Vec<PathBuf>) {
    let folder = tempfile::tempdir().unwrap();
    let paths = files
        .iter()
        .map(|(name, content)| {
            let path = folder.path().join(name);
            fs::write(&path, content).unwrap();
            path
        })
        .collect();
    (folder, paths)
}

fn packed(paths: &[PathBuf]) -> Vec<u8> {
    pack(&PackPlan::new(paths).unwrap(), &Disk, Vec::new(), &mut |_| ()).unwrap()
}

#[test]
fn a_bundle_is_one_gzip_member_of_plain_readable_files() {
    let long = format!("{}.jar", "é".repeat(120));
    let (_folder, paths) =
        folder_with(&[("a.jar", &vec![9; 70_000]), ("b.txt", b"text"), (&long, b"x"), ("empty", b"")]);
    // This decoder stops after the first member.
    let bundle = packed(&paths);
    let mut archive = tar::Archive::new(flate2::read::GzDecoder::new(&bundle[..]));
    let mut seen = HashMap::new();
    for entry in archive.entries().unwrap() {
        let mut entry = entry.unwrap();
        let header = entry.header();
        assert_eq!((header.mode().unwrap(), header.uid().unwrap(), header.gid().unwrap()), (0o644, 0, 0));
        assert!(header.mtime().unwrap() > 1_600_000_000);
        let mut content = Vec::new();
        entry.read_to_end(&mut content).unwrap();
        seen.insert(entry.path().unwrap().to_str().unwrap().to_owned(), content);
    }
    assert_eq!(seen.len(), 4);
    assert_eq!(seen["a.jar"], vec![9; 70_000]);
    assert_eq!(seen["b.txt"], b"text");
    assert_eq!(seen[&long], b"x");
    let mut archive = Vec::new();
    flate2::read::GzDecoder::new(&bundle[..]).read_to_end(&mut archive).unwrap();
    assert_eq!(PackPlan::new(&paths).unwrap().archive_bytes(), archive.len() as u64);
}

#[test]
fn the_same_files_make_the_same_bytes() {
    let (_folder, paths) = folder_with(&[("a.jar", &vec![9; 70_000]), ("b.txt", b"text")]);
    assert!(packed(&paths) == packed(&paths));
}

#[test]
fn jars_are_stored_and_text_shrinks() {
    let (_folder, paths) = folder_with(&[("a.jar", &vec![9; 1_000_000])]);
    assert!(packed(&paths).len() > 1_000_000);
    let (_folder, paths) = folder_with(&[("a.txt", &vec![9; 1_000_000])]);
    assert!(packed(&paths).len() < 20_000);
}

/// What a later upload can take from an earlier bundle.
#[test]
fn a_large_file_is_the_same_bytes_wherever_it_stands() {
    let words = noise(2_000_000).map(|byte| b"abcdefgh"[usize::from(byte) % 8]).collect::<Vec<_>>();
    let jar = noise(300_000).collect::<Vec<_>>();
    let (_folder, alone) = folder_with(&[("large.jar", &jar), ("large.txt", &words)]);
    let [jar, text] = [0, 1].map(|at| packed(&alone[at..=at]));
    // Without what belongs to the header, and to the end of the archive.
    let contents = [jar, text].map(|bundle| bundle[2048..bundle.len() - 2048].to_vec());
    for place in 0..24_usize {
        let before = noise(place * 12_345).collect::<Vec<_>>();
        let (_folder, first) = folder_with(&[("a.jar", &before), ("b.txt", &before[..before.len() / 7])]);
        for order in [[0, 1], [1, 0]] {
            let files = [first.clone(), order.map(|at| alone[at].clone()).to_vec()].concat();
            let bundle = packed(&files);
            for content in &contents {
                let is_there = bundle.windows(content.len()).any(|window| window == content);
                assert!(is_there, "behind {} bytes, in the order {order:?}", before.len());
            }
        }
    }
}

/// Bytes that do not repeat.
fn noise(length: usize) -> impl Iterator<Item = u8> {
    let mut state = 7_u32;
    (0..length).map(move |_| {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        state.to_be_bytes()[0]
    })
}

/// Takes the segments of a bundle.
#[derive(Default)]
struct Cut(Segments);

impl Write for Cut {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.update(bytes);
        Ok(bytes.len())
    }
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl BundleOutput for Cut {
    fn file_begins(&mut self, at: u64) {
        self.0.file_begins(at);
    }
    fn file_ends(&mut self, at: u64, crc: u32) {
        self.0.file_ends(at, crc);
    }
    fn group_ends(&mut self, at: u64) {
        self.0.group_ends(at);
    }
}

// Small files have a segment for each group, so one change leaves most of a tree as it was.
#[test]
fn a_change_of_a_small_file_changes_one_group_of_many() {
    const FILES: usize = 4000;
    let folder = tempfile::tempdir().unwrap();
    let content: Vec<u8> = noise(8000).collect();
    // Every seventh is stored, and one is large.
    let path = |number: usize| {
        let ending = if number.is_multiple_of(7) { "png" } else { "py" };
        folder.path().join(format!("{}/{number}.{ending}", number % 40))
    };
    (0..40).for_each(|number| fs::create_dir(folder.path().join(number.to_string())).unwrap());
    (0..FILES)
        .for_each(|number| fs::write(path(number), &content[number..number + 1 + number % 2999]).unwrap());
    fs::write(folder.path().join("large.jar"), noise(300_000).collect::<Vec<_>>()).unwrap();
    let segments = || {
        let plan = PackPlan::new(&[folder.path().to_owned()]).unwrap();
        pack_in_segments(&plan, &Disk, Cut::default(), &mut |_| ()).unwrap().0.finish()
    };
    let bytes = |segments: &[Segment]| segments.iter().map(|segment| segment.length).sum::<u64>();
    let mut before = segments();
    let changes: [&dyn Fn(); 3] = [
        &|| fs::write(path(1234), b"another content").unwrap(),
        &|| fs::remove_file(path(77)).unwrap(),
        &|| fs::write(folder.path().join("20/new.py"), &content).unwrap(),
    ];
    for change in changes {
        change();
        let after = segments();
        let new: Vec<_> = after.iter().filter(|segment| !before.contains(segment)).copied().collect();
        let (new, all) = (bytes(&new), bytes(&after));
        assert!(new > 0 && new < all / 2, "{new} of {all} in {} segments", after.len());
        before = after;
    }
}

#[test]
fn progress_ends_at_the_total() {
    let (_folder, paths) = folder_with(&[("a.jar", &vec![9; 600_000]), ("b.txt", &vec![9; 600_000])]);
    let plan = PackPlan::new(&paths).unwrap();
    let mut seen = vec![0];
    pack(&plan, &Disk, io::sink(), &mut |bytes| seen.push(bytes)).unwrap();
    assert!(seen.is_sorted() && seen.len() > 4);
    assert_eq!(seen.last(), Some(&plan.total_bytes()));
}

#[test]
fn a_file_that_changed_is_named() {
    for content in [&b"shorter"[..], b"longer than it was before", b"same-length"] {
        let (_folder, paths) = folder_with(&[("a.jar", b"eleven byte")]);
        let plan = PackPlan::new(&paths).unwrap();
        fs::write(&paths[0], content).unwrap();
        let later = SystemTime::now() + std::time::Duration::from_secs(5);
        File::options().write(true).open(&paths[0]).unwrap().set_modified(later).unwrap();
        let error = pack(&plan, &Disk, io::sink(), &mut |_| ()).unwrap_err();
        assert!(error.to_string().starts_with(&format!("{} changed while", paths[0].display())), "{error}");
    }
}

#[test]
fn a_file_that_changes_while_it_is_read_is_named() {
    for new_length in [0, 1_500_000] {
        let (_folder, paths) = folder_with(&[("a.jar", &vec![9; 1_000_000])]);
        let plan = PackPlan::new(&paths).unwrap();
        let mut changed = false;
        let result = pack(&plan, &Disk, io::sink(), &mut |_| {
            if !changed {
                File::options().write(true).open(&paths[0]).unwrap().set_len(new_length).unwrap();
                changed = true;
            }
        });
        assert!(matches!(result, Err(PackError::Changed { .. })));
    }
}

#[test]
fn a_full_disk_is_not_blamed_on_a_file() {
    struct Full;
    impl Write for Full {
        fn write(&mut self, _: &[u8]) -> io::Result<usize> {
            Err(io::ErrorKind::StorageFull.into())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    let (_folder, paths) = folder_with(&[("a.jar", &vec![9; 1_000_000])]);
    let error = pack(&PackPlan::new(&paths).unwrap(), &Disk, Full, &mut |_| ()).map(|_| ()).unwrap_err();
    assert!(matches!(error, PackError::Write(_)));
}

#[test]
fn sizes_over_eight_gibibytes_fit_a_header() {
    assert_eq!(header(b"huge", 9 << 30).entry_size().unwrap(), 9 << 30);
    assert_eq!(
        [padding(0).len(), padding(1).len(), padding(512).len(), padding(513).len()],
        [0, 511, 0, 511]
    );
}
