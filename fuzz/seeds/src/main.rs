//! Writes the first inputs of every fuzz target, from the tests' own cases, into `FOLDER/TARGET/`.

mod sets;
mod texts;

use std::path::{Path, PathBuf};
use std::{env, fs, io};

use cloakroom_testing::bundles;

/// Larger inputs make a fuzzer slow, and show nothing new.
const LARGEST_BYTES: usize = 16 << 10;

fn main() -> io::Result<()> {
    let folder = PathBuf::from(env::args_os().nth(1).unwrap_or_else(|| "corpus".into()));
    let repository = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    for (target, texts) in texts::ALL {
        write(&folder, target, texts.iter().map(|text| text.as_bytes().to_vec()))?;
    }
    write(&folder, "ranges", texts::RANGES.iter().flat_map(|value| ranges(value)))?;
    write(&folder, "multipart", multipart(&repository)?)?;
    write(&folder, "tar", tars())?;
    write(&folder, "gzip", gzips())?;
    let sets = sets::read(&repository.join("tests/conformance/sets"))?;
    write(&folder, "command_line", sets.command_lines)?;
    let templates: Vec<_> = sets.templates.iter().flat_map(|template| with_values(template)).collect();
    write(&folder, "pod_template", sets.templates.into_iter().chain(templates))
}

fn write(folder: &Path, target: &str, seeds: impl IntoIterator<Item = Vec<u8>>) -> io::Result<()> {
    let folder = folder.join(target);
    fs::create_dir_all(&folder)?;
    for seed in seeds.into_iter().filter(|seed| seed.len() <= LARGEST_BYTES) {
        fs::write(folder.join(format!("seed-{:016x}", hash(&seed))), seed)?;
    }
    Ok(())
}

/// A name by FNV-1a: equal seeds have the same name, and are written once.
fn hash(bytes: &[u8]) -> u64 {
    bytes
        .iter()
        .fold(0xcbf2_9ce4_8422_2325, |hash, &byte| (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3))
}

/// The template with some values replaced, in the target's input format.
fn with_values(template: &[u8]) -> impl Iterator<Item = Vec<u8>> {
    let values = ["!1.5", "/-1", "=null", "Ktrue", "Y0644", "g\"\"", "u{}", "~[a]"];
    values.into_iter().map(move |value| [template, b"\0\0", value.as_bytes()].concat())
}

fn ranges(value: &str) -> [Vec<u8>; 2] {
    [10_u64, 1 << 40].map(|length| [&length.to_le_bytes(), value.as_bytes()].concat())
}

fn multipart(repository: &Path) -> io::Result<Vec<Vec<u8>>> {
    let recorded = fs::read(repository.join("crates/server/tests/serving/fixtures/okhttp-upload.http"))?;
    let body = recorded.windows(4).position(|bytes| bytes == b"\r\n\r\n").map_or(0, |end| end + 4);
    let recorded = [b"\x07\x03fc427bd9-043b-41f6-9036-4789001967c9\0", &recorded[body..]].concat();
    let forms = texts::FORMS.iter().map(|form| [b"\x02\x053f2a\0", form.as_bytes()].concat());
    Ok(forms.chain([recorded]).collect())
}

/// Every hostile archive of the tests and some honest ones, uncompressed, with their own checksums.
fn tars() -> Vec<Vec<u8>> {
    honest()
        .into_iter()
        .chain(hostile())
        .map(|bundle| [b"\x01", inflated(&bundle).as_slice()].concat())
        .collect()
}

/// The same compressed, then as members, then as a file to pack.
fn gzips() -> Vec<Vec<u8>> {
    let bundles: Vec<_> = honest().into_iter().chain(hostile()).collect();
    let as_they_are = bundles.iter().map(|bundle| [b"\x00", bundle.as_slice()].concat());
    let members = bundles.iter().map(|bundle| [b"\x1f", inflated(bundle).as_slice()].concat());
    let files = [&b"\x02"[..], b"\x05text", b"\x8cthe same words again and again"].map(<[u8]>::to_vec);
    as_they_are.chain(members).chain(files).collect()
}

fn honest() -> Vec<Vec<u8>> {
    vec![
        bundles::tgz(&[("a.jar", b"jar"), ("conf/log4j2.properties", b"text")]),
        bundles::with_pax(&[("path", "a/b/file"), ("mtime", "1.5"), ("size", "3")], b"abc"),
        bundles::with_pax(&[("comment", "9f1c2a3b")], b""),
        bundles::bare("folder/", b'5'),
    ]
}

fn hostile() -> Vec<Vec<u8>> {
    let is_small = |bundle: &Vec<u8>| bundle.len() <= LARGEST_BYTES;
    bundles::hostile().into_iter().map(|(_, bundle)| bundle).filter(is_small).collect()
}

/// The tar inside gzip; bytes that are no gzip stay as they are.
fn inflated(bundle: &[u8]) -> Vec<u8> {
    use std::io::Read as _;
    let mut tar = Vec::new();
    let most = LARGEST_BYTES as u64 + 1;
    match flate2::read::MultiGzDecoder::new(bundle).take(most).read_to_end(&mut tar) {
        Ok(_) => tar,
        Err(_) => bundle.to_vec(),
    }
}
