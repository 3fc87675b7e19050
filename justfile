# Recipes for `just`; each is a command or a script that runs without it as well. `just` alone lists them.

_list:
    @just --list --unsorted

# everything that must hold before a change lands
ci:
    .ci/run

# unit tests of all crates
unit *FILTER:
    cargo test --workspace --lib --bins -- {{FILTER}}

# one tier of the tests, with all that it needs: it, conformance, real, node, torture
test TIER FILTER="":
    .ci/tier {{TIER}} {{FILTER}}

# formats the code
format:
    cargo fmt --all
    cargo fmt --all --manifest-path fuzz/Cargo.toml

# what can be said without starting anything: format, lints, documentation, dependencies
quick:
    .ci/quick

# every fuzz target for a while
fuzz *ARGUMENTS:
    fuzz/run {{ARGUMENTS}}

# figures for docs/benchmarks.md
bench *SCENARIO:
    cargo bench --bench transfers -- {{SCENARIO}}

# makes the release's files in dist/ (docs/install.md)
release *ARGUMENTS:
    packaging/release {{ARGUMENTS}}

# checks the files in dist/: static, complete, working
check-release *ARGUMENTS:
    packaging/check {{ARGUMENTS}}
