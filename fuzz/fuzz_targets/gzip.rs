//! gzip, both ways. The first byte selects: any bytes as gzip, a tar in any number of members, or a file to pack.
#![no_main]

use std::fs;
use std::io::{Read as _, Write as _};

use cloakroom_fuzz::{Target, assert_readable};
use cloakroom_transfer::bundle::{
    Disk, PackPlan, UnpackError, UnpackLimits, UnpackedFile, UnpackedTree, pack, unpack,
};
use flate2::Compression;
use flate2::read::MultiGzDecoder;
use flate2::write::GzEncoder;
use libfuzzer_sys::fuzz_target;

const LIMITS: UnpackLimits = UnpackLimits { max_entries: 40, max_bytes: 1 << 20 };
/// The project unpacks gzip inside gzip only once, so such an input cannot be compared.
const GZIP_MAGIC: &[u8] = b"\x1f\x8b";
const ENDINGS: [&str; 4] = ["jar", "txt", "parquet", "py"];

fuzz_target!(|input: &[u8]| {
    let Some((&choice, rest)) = input.split_first() else { return };
    match choice % 3 {
        0 => any_bytes(rest),
        1 => members(rest, choice),
        _ => packed(rest, choice),
    }
});

fn unpacked(bundle: &[u8]) -> Result<UnpackedTree, UnpackError> {
    let target = Target::new();
    let unpacked = unpack(bundle, &target.folder(), &LIMITS);
    let found = target.checked_files();
    match &unpacked {
        Ok(tree) => assert_eq!(tree.files.len(), found.len()),
        Err(error) => assert_readable(&error.to_string()),
    }
    unpacked
}

/// If another reader inflates the bytes to the end, unpacking gives the same result as without compression.
fn any_bytes(gzip: &[u8]) {
    let outcome = unpacked(gzip);
    let mut tar = Vec::new();
    let inflated = MultiGzDecoder::new(gzip).take(2 << 20).read_to_end(&mut tar);
    if inflated.is_ok() && tar.len() < 2 << 20 && !tar.starts_with(GZIP_MAGIC) {
        if let Ok(tree) = unpacked(&tar) {
            assert_eq!(outcome.expect("as without compression"), tree);
        }
    }
}

fn members(tar: &[u8], choice: u8) {
    let mut bundle = Vec::new();
    for piece in tar.chunks(usize::from(choice) * 20 + 1) {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
        encoder.write_all(piece).expect("memory takes all");
        bundle.extend(encoder.finish().expect("memory takes all"));
    }
    bundle.resize(bundle.len() + usize::from(choice) * 7, 0);
    if tar.is_empty() || tar.starts_with(GZIP_MAGIC) {
        return;
    }
    match (unpacked(tar), unpacked(&bundle)) {
        (Ok(plain), outcome) => assert_eq!(outcome.expect("as without compression"), plain),
        // A tar in the format of before 1988 is only recognised inside gzip.
        (Err(UnpackError::NotABundle { .. }), _) => {}
        (Err(refused), outcome) => assert!(outcome.is_err(), "refused without compression: {refused}"),
    }
}

/// Any reader of gzip gets the packed archive with the content of the file.
fn packed(content: &[u8], choice: u8) {
    let folder = tempfile::tempdir().expect("a temporary folder");
    // Long content crosses the boundaries of the writer's blocks.
    let content = content.repeat(usize::from(choice / 3 % 8) * usize::from(choice) + 1);
    let name = format!("a.{}", ENDINGS[usize::from(choice / 3) % ENDINGS.len()]);
    let path = folder.path().join(&name);
    fs::write(&path, &content).expect("a file");
    let plan = PackPlan::new(&[path]).expect("one file");
    let bundle = pack(&plan, &Disk, Vec::new(), &mut |_| {}).expect("memory takes all");
    let mut tar = Vec::new();
    MultiGzDecoder::new(bundle.as_slice()).read_to_end(&mut tar).expect("gzip");
    assert_eq!(tar[512..512 + content.len()], content);
    let target = Target::new();
    let limits = UnpackLimits { max_entries: 1, max_bytes: content.len() as u64 };
    let tree = unpack(bundle.as_slice(), &target.folder(), &limits).expect("what was packed");
    assert_eq!(tree.files, [UnpackedFile { name: name.clone(), size_bytes: content.len() as u64 }]);
    assert!(fs::read(target.inside().join(name)).expect("a file") == content);
}
