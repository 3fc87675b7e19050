//! Builds the crate again when a migration comes or changes: their texts are compiled in.

fn main() {
    println!("cargo::rerun-if-changed=../../migrations");
}
