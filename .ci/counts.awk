# Reads .ci/tests-at-least, the seconds that made each tier ready, and the output of the tests; see check_counts in .ci/run.
BEGIN { FS = "\t" }
FILENAME == ARGV[1] { least[$1] = $2; budget[$1] = $3; order[++tiers] = $1; next }
FILENAME == ARGV[2] { ready[$1] += $2; next }
{ words = split($0, word, / +/) }
# The name of a test binary is that of its crate or tier, and a number.
/^ +Running / {
    name = word[words]; sub(/.*\//, "", name); sub(/-[0-9a-f]+\)$/, "", name)
    tier = word[3] == "unittests" ? "unittests " name : name
    earlier = ran[tier]
    ran[tier] = ignored[tier] = failed[tier] = took[tier] = 0
}
/^ +Doc-tests / { tier = "doc-tests" }
/^test result:/ {
    # A run of a part of a tier goes on with an earlier one.
    if (word[12] > 0) ran[tier] += earlier
    ran[tier] += word[4]; failed[tier] += word[6]; ignored[tier] += word[8]; took[tier] += word[words]
}
function complain(text) { print text; bad = 1 }
END {
    for (tier in ran) if (!(tier in least) && ran[tier] + ignored[tier] > 0) { order[++tiers] = tier; budget[tier] = 60 }
    for (i = 1; i <= tiers; i++) {
        tier = order[i]
        printf "%-30s %5d tests %6d s of %6d s, made ready in %4d s\n", tier, ran[tier], took[tier], budget[tier], ready[tier]
        total += ran[tier]
        floor = int(ran[tier] * 9 / 10)
        if (floor < least[tier]) floor = least[tier]
        printf "%s\t%d\t%d\n", tier, floor, budget[tier] >raised
    }
    printf "%-30s %5d tests\n", "all", total
    for (i = 1; i <= tiers; i++) {
        tier = order[i]
        if (took[tier] > budget[tier]) printf "warning: %s took longer than its budget\n", tier
        if (ran[tier] == 0) complain(tier " ran no test")
        if (ran[tier] < least[tier]) complain(sprintf("%s ran %d tests, and at least %d are expected", tier, ran[tier], least[tier]))
        if (ignored[tier] > 0) complain(sprintf("%s ignored %d tests", tier, ignored[tier]))
        if (failed[tier] > 0) complain(sprintf("%s had %d failures", tier, failed[tier]))
    }
    exit bad
}
