# Recipes for `just`; each is a script that runs without it as well.

# makes the release's files in dist/ (docs/install.md)
release *ARGUMENTS:
    packaging/release {{ARGUMENTS}}

# checks the files in dist/: static, complete, working
check-release *ARGUMENTS:
    packaging/check {{ARGUMENTS}}
