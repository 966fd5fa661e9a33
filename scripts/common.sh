# Shared by ./run and ./test; sourced after `root` is set to the top of the project.

# quietly LABEL LOG COMMAND...: runs COMMAND with its output in LOG. On a terminal one line follows the log's last
# line (ninja's "[12/80] ..."); otherwise one line says what is being done. On failure the end of the log is shown.
quietly() {
    local label=$1 log=$2 started=$SECONDS status=0
    shift 2
    mkdir -p "$(dirname "$log")"
    if [[ -t 2 ]]; then
        "$@" >"$log" 2>&1 </dev/null &
        local pid=$! last
        while kill -0 "$pid" 2>/dev/null; do
            last=$(tail -n 1 "$log" 2>/dev/null | tr -d '\000-\037' | cut -c 1-60)
            printf '\r\033[K%s (%d s) %s' "$label" $((SECONDS - started)) "$last" >&2
            sleep 0.5
        done
        wait "$pid" || status=$?
        printf '\r\033[K' >&2
    else
        echo "$label" >&2
        "$@" >"$log" 2>&1 </dev/null || status=$?
    fi
    if [[ $status -ne 0 ]]; then
        tail -n 40 "$log" >&2
        echo "$label failed; the whole log is $log" >&2
    fi
    return "$status"
}

# configure PRESET [CMAKE ARGUMENT...]
configure() {
    local preset=$1
    shift
    (cd "$root" && cmake --preset "$preset" "$@")
}
