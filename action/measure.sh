#!/bin/sh
# The only step of action.yml: builds dunnage or uses the given executable, runs a plan, packs the run, compares it with a baseline,
# and writes the job summary. Inputs are INPUT_*; $GITHUB_OUTPUT and $GITHUB_STEP_SUMMARY are files, as in any GitHub workflow.
# A run that fails in part is also reported and compared; the step then fails at the end, with the exit code of the run or of compare.
set -eu

program=${INPUT_EXECUTABLE:-}
if [ -z "$program" ]; then
    # Built inside the checkout, because its .cargo/config.toml makes the executable static.
    (cd "$GITHUB_ACTION_PATH" && cargo install --locked --path . --root "$RUNNER_TEMP/dunnage")
    program=$RUNNER_TEMP/dunnage/bin/dunnage
fi
# A line end in an output or in the summary would begin another one, and a leading `-` would make an option of a path.
newline='
'
plain() {
    case $1 in
    *"$newline"* | *"$(printf '\r')"*)
        echo "an input of this action contains a line end" >&2
        exit 2
        ;;
    -*) printf './%s' "$1" ;;
    *) printf '%s' "$1" ;;
    esac
}
directory=$(plain "${INPUT_OUTPUT:-dunnage-run}")
baseline=$(plain "${INPUT_BASELINE:-}")
pack=$directory.dunnage

set -f # arguments are words, not patterns
run_code=0
# shellcheck disable=SC2086
"$program" run ${INPUT_PLAN:+--plan="$INPUT_PLAN"} ${INPUT_ARGUMENTS:-} -o "$directory" || run_code=$?
echo "run-code=$run_code" >>"$GITHUB_OUTPUT"
# Without a plan there is nothing to report.
[ -e "$directory/plan.json" ] || exit "$run_code"

compare_code=0
if [ -n "$baseline" ] && [ ! -e "$baseline" ]; then
    echo "There is no baseline \`$baseline\` yet, so nothing was compared." >>"$GITHUB_STEP_SUMMARY"
elif [ -n "$baseline" ]; then
    "$program" compare "$baseline" "$directory" --format md ${INPUT_FAIL_ON:+--fail-on="$INPUT_FAIL_ON"} \
        >>"$GITHUB_STEP_SUMMARY" || compare_code=$?
    echo "compare-code=$compare_code" >>"$GITHUB_OUTPUT"
fi
printf '\n' >>"$GITHUB_STEP_SUMMARY"
"$program" report "$directory" --format md >>"$GITHUB_STEP_SUMMARY" || true
# Last, because the pack may replace the baseline.
"$program" pack "$directory" -o "$pack" --force >&2
{
    printf '%s\n' "directory=$directory"
    printf '%s\n' "pack=$pack"
} >>"$GITHUB_OUTPUT"

[ "$run_code" -eq 0 ] || exit "$run_code"
exit "$compare_code"
