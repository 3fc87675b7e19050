//! Tests packing, unpacking and placing together, and with other programs that read and write bundles.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use proptest::prelude::*;

use super::{Disk, Folder, PackPlan, UnpackLimits, pack, place, unpack};

fn write_files(folder: &Path, files: &[(String, Vec<u8>)]) -> Vec<PathBuf> {
    let write = |(number, (name, content)): (usize, &(String, Vec<u8>))| {
        let path = folder.join(number.to_string()).join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, content).unwrap();
        path
    };
    files.iter().enumerate().map(write).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]
    // Invariant: packed files come out again, here and in other programs.
    #[test]
    fn packed_files_come_out_again_under_the_planned_names(
        files in prop::collection::vec(
            ("[a-cé]{1,3}(-1)?\\.(jar|txt|tar\\.gz|py)", prop_oneof![
                prop::collection::vec(any::<u8>(), 0..3000),
                (any::<u8>(), 0_usize..200_000).prop_map(|(byte, length)| vec![byte; length]),
            ]), 1..12)
    ) {
        let folder = tempfile::tempdir().unwrap();
        let plan = PackPlan::new(&write_files(folder.path(), &files)).unwrap();
        let bundle = pack(&plan, &Disk, Vec::new(), &mut |_| ()).unwrap();
        let (hidden, target) = (folder.path().join(".hidden"), folder.path().join("target"));
        let hidden = Folder::at(&hidden).unwrap();
        let unpacked = unpack(&bundle[..], &hidden, &UnpackLimits::default()).unwrap();
        place(&hidden, &unpacked, &Folder::at(&target).unwrap()).unwrap();
        prop_assert_eq!(fs::read_dir(&target).unwrap().count(), files.len());
        for ((_, content), planned) in files.iter().zip(plan.files()) {
            prop_assert!(fs::read(target.join(&planned.name)).unwrap() == *content);
        }
    }
}

// Invariant: `fetch` never takes a bundle of `stage` for a bomb.
#[test]
fn a_large_file_of_zeros_is_packed_so_that_it_is_no_bomb() {
    const SIZE_BYTES: u64 = 320 << 20;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("zeros.bin");
    fs::File::create(&path).unwrap().set_len(SIZE_BYTES).unwrap();
    let bundle = pack(&PackPlan::new(&[path]).unwrap(), &Disk, Vec::new(), &mut |_| ()).unwrap();
    assert!(bundle.len() < (SIZE_BYTES / 50) as usize, "{}", bundle.len());
    let out = Folder::at(&folder.path().join("out")).unwrap();
    let unpacked = unpack(&bundle[..], &out, &UnpackLimits::default()).unwrap();
    assert_eq!(unpacked.files[0].size_bytes, SIZE_BYTES);
}

/// Runs a program that reads the bundle from its standard input. Returns `None` if the program is not installed.
fn read_with(program: &[&str], bundle: &[u8]) -> Option<String> {
    let child =
        Command::new(program[0]).args(&program[1..]).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
    let Ok(mut child) = child else {
        eprintln!("not tested with {}: it is not installed", program[0]);
        return None;
    };
    child.stdin.take().unwrap().write_all(bundle).unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{} refused the bundle", program.join(" "));
    Some(String::from_utf8(output.stdout).unwrap())
}

#[test]
fn other_programs_read_the_bundles() {
    let text = "words that repeat themselves, ".repeat(20_000).into_bytes();
    let noise: Vec<u8> =
        (0..300_000_u32).map(|number| number.wrapping_mul(2_654_435_761).to_be_bytes()[0]).collect();
    let long = format!("{}.txt", "l".repeat(200));
    let files =
        [("a.txt", &text), ("b.jar", &noise), (long.as_str(), &text), ("c.py", &text), ("d.zip", &text)]
            .map(|(name, content)| (name.to_owned(), content.clone()));
    let folder = tempfile::tempdir().unwrap();
    let plan = PackPlan::new(&write_files(folder.path(), &files)).unwrap();
    let bundle = pack(&plan, &Disk, Vec::new(), &mut |_| ()).unwrap();
    let expected = format!("a.txt\nb.jar\n{long}\nc.py\nd.zip\n");
    let python = "import sys, gzip, io, tarfile, zlib\n\
        whole = sys.stdin.buffer.read()\n\
        one = zlib.decompressobj(31)\n\
        tar = one.decompress(whole)\n\
        assert one.eof and not one.unused_data, 'more than one member'\n\
        assert gzip.decompress(whole) == tar\n\
        archive = tarfile.open(fileobj=io.BytesIO(tar))\n\
        for member in archive: print(member.name); assert len(archive.extractfile(member).read()) == member.size";
    read_with(&["gzip", "-t"], &bundle);
    for program in [&["tar", "tzf", "-"][..], &["python3", "-c", python]] {
        if let Some(listing) = read_with(program, &bundle) {
            assert_eq!(listing, expected, "{}", program[0]);
        }
    }
}

#[test]
fn bundles_of_other_programs_are_read() {
    let folder = tempfile::tempdir().unwrap();
    let deep = format!("dir/{}/{}/deep.txt", "x".repeat(70), "y".repeat(70));
    for name in ["dir/a.txt", "dir/sub/b.txt", deep.as_str()] {
        let path = folder.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, name).unwrap();
    }
    for (number, format) in ["gnu", "pax", "ustar"].iter().enumerate() {
        for (start, prefix) in [("dir", ""), (".", "dir/")] {
            let arguments =
                ["--format", format, "-C", if start == "." { "dir" } else { "." }, "-czf", "-", start];
            let output = Command::new("tar").current_dir(folder.path()).args(arguments).output();
            let Ok(output) = output else { return eprintln!("not tested with tar: it is not installed") };
            let into = Folder::at(&folder.path().join(format!("{start}-{number}"))).unwrap();
            let files = unpack(&output.stdout[..], &into, &UnpackLimits::default()).unwrap().files;
            let mut names: Vec<String> = files.iter().map(|file| format!("{prefix}{}", file.name)).collect();
            names.sort();
            let mut expected = ["dir/a.txt".to_owned(), "dir/sub/b.txt".to_owned(), deep.clone()];
            expected.sort();
            assert_eq!(names, expected, "{format}");
        }
    }
}
