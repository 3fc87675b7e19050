//! Untrusted archives, unpacked into a folder. The first byte says whether the checksums of headers are corrected,
//! because no fuzzer guesses them.
#![no_main]

use cloakroom_fuzz::{Target, assert_readable};
use cloakroom_transfer::bundle::{UnpackLimits, unpack};
use libfuzzer_sys::fuzz_target;

const LIMITS: UnpackLimits = UnpackLimits { max_entries: 40, max_bytes: 64 << 10 };

fuzz_target!(|input: &[u8]| {
    let Some((flags, tar)) = input.split_first() else { return };
    let mut tar = tar.to_vec();
    if flags & 1 == 0 {
        tar.chunks_exact_mut(512).filter(|block| block[257..].starts_with(b"ustar")).for_each(fix_checksum);
    }
    let target = Target::new();
    let unpacked = unpack(tar.as_slice(), &target.folder(), &LIMITS);
    let found = target.checked_files();
    for (name, _) in &found {
        assert!(!name.chars().any(|c| c.is_control() || c == '\\'), "{name:?}");
        assert!(name.split('/').all(|part| part.len() <= 255 && !part.starts_with("C:")), "{name:?}");
    }
    assert!(found.len() <= 40 && found.iter().map(|(_, size)| size).sum::<u64>() <= LIMITS.max_bytes);
    match unpacked {
        Ok(tree) => {
            let mut files: Vec<_> = tree.files.into_iter().map(|file| (file.name, file.size_bytes)).collect();
            files.sort();
            assert_eq!(files, found, "what is reported is not what is there");
        }
        Err(error) => assert_readable(&error.to_string()),
    }
});

fn fix_checksum(header: &mut [u8]) {
    header[148..156].fill(b' ');
    let sum: u32 = header.iter().map(|&byte| u32::from(byte)).sum();
    header[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
}
