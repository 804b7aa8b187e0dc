# Sourced by ./mam and ./test: brings .venv to the state that the lock files ask for.
#
# .venv/ready is written last and holds what .venv was made from (folder, pyproject, lock). It is
# the only thing that a second start looks at: no such file means that a set-up was cut off, another
# content means that something changed. All progress goes to stderr; stdout is the command's.

say() { printf '%s: %s\n' "${0##*/}" "$*" >&2; }
die() { say "$*"; exit 1; }

# The folder is part of it: scripts in .venv/bin hold its path, so a moved clone starts afresh.
made_from() { printf '%s\n' "$ROOT"; cat "$ROOT/pyproject.toml" "$ROOT/requirements.lock"; }

runtime_ready() {
    [[ -x $ROOT/.venv/bin/python && -x $ROOT/.venv/bin/mam ]] &&
        made_from | cmp -s - "$ROOT/.venv/ready"
}
test_ready() { runtime_ready && cmp -s "$ROOT/requirements-test.lock" "$ROOT/.venv/ready-test"; }

# Prints the real path of a fitting Python: `python3` may become another version under us, and a
# python3.11 that vanished is noticed, while one that changed is not.
find_python() {
    local name found=no
    for name in python3 python3.14 python3.13 python3.12 python3.11; do
        command -v "$name" >/dev/null || continue
        found="only an older"
        "$name" -I -c 'import os, sys
sys.version_info >= (3, 11) or sys.exit(1)
print(os.path.realpath(getattr(sys, "_base_executable", sys.executable)))' 2>/dev/null && return
    done
    die "Python 3.11 or newer is needed and $found python3 was found;" \
        "please install it (Debian 12: apt-get install python3 python3-venv)."
}

# One package's lines of requirements.lock, hashes included: uv itself is checked like the rest.
only_uv() { awk '/^[a-z0-9]/ { uv = /^uv==/ } uv' requirements.lock; }
all_but_uv() { awk '/^[a-z0-9]/ { uv = /^uv==/ } !uv' "$1"; }

# Fills .venv from the given lock files: by uv, which takes seconds, or by pip where uv has no wheel
# for this machine or does not know the way to its package index.
fill_venv() {
    local pip=(.venv/bin/python -I -m pip -qq --disable-pip-version-check) lock
    local uv=(.venv/bin/uv -q --system-certs pip)
    [[ -x .venv/bin/uv ]] ||
        "${pip[@]}" install --require-hashes --only-binary :all: -r <(only_uv)
    # The system's certificates, as pip and apt use them: uv's own list knows no company's proxy.
    if [[ -x .venv/bin/uv ]] &&
        "${uv[@]}" sync --python .venv/bin/python --require-hashes "$@" &&
        "${uv[@]}" install --python .venv/bin/python --no-deps --no-build-isolation -e .
    then
        return
    fi
    say "uv could not do it; trying pip, which may take a minute"
    for lock in "$@"; do
        "${pip[@]}" install --require-hashes -r <(all_but_uv "$lock") || return
    done
    "${pip[@]}" install --no-deps --no-build-isolation -e .
}

# The slow path, one at a time for each clone; `make_venv test` adds the test tools. The lock dies
# with its last holder, children included: a killed set-up leaves nothing to clean away, and the
# next start waits for the orphans of the last.
make_venv() (
    python=$(find_python) || exit
    "$python" -I -c 'import ensurepip, venv' 2>/dev/null ||
        die "Python's venv module is missing; please install it (Debian: apt-get install python3-venv)."
    cd "$ROOT" && { exec 9>.venv.lock; } 2>/dev/null ||
        die "cannot write to $ROOT, where .venv has to be made."
    if ! "$python" -I -c 'import fcntl; fcntl.flock(9, fcntl.LOCK_EX | fcntl.LOCK_NB)' 2>/dev/null; then
        say "waiting for another set-up of this folder"
        "$python" -I -c 'import fcntl; fcntl.flock(9, fcntl.LOCK_EX)' || exit
    fi
    "${1:-runtime}_ready" && exit

    locks=(requirements.lock)
    # Test tools that are there stay there, although ./mam does not need them.
    if [[ ${1:-} == test || -f .venv/ready-test ]]; then locks+=(requirements-test.lock); fi
    known=$(head -n 1 .venv/ready 2>/dev/null)
    rm -f .venv/ready .venv/ready-test
    if [[ $known == "$ROOT" && -x .venv/bin/python ]]; then
        say "bringing .venv up to date"
    else
        say "first start: making .venv, about ten seconds"
        "$python" -I -m venv --clear .venv || die "could not make $ROOT/.venv, see above."
    fi
    fill_venv "${locks[@]}" ||
        die "could not install the packages of ${locks[*]}, see above; the next start tries again."
    # Byte code for every start, also where PYTHONDONTWRITEBYTECODE is set, as in many containers:
    # without it each start compiles anew all that it imports.
    .venv/bin/python -I -m compileall -qq -j 0 .venv/lib core/mam_core tui/mam_tui
    if [[ ${#locks[@]} -eq 2 ]]; then cp requirements-test.lock .venv/ready-test; fi
    made_from >.venv/ready.new && mv .venv/ready.new .venv/ready
) </dev/null >&2

# Installs Debian packages where we may (as root), quietly; false where we may not.
apt_install() {
    [[ $(id -u) -eq 0 ]] && command -v apt-get >/dev/null || return
    local apt=(env DEBIAN_FRONTEND=noninteractive apt-get -qq -o Dpkg::Use-Pty=0)
    local install=("${apt[@]}" install -y --no-install-recommends "$@")
    say "installing $*"
    # A fresh machine has no package lists; one that has them need not fetch them again.
    { "${install[@]}" >/dev/null 2>&1 || { "${apt[@]}" update && "${install[@]}" >/dev/null; }; } </dev/null >&2
}
