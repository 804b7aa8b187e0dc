# Sourced by ./mam and ./test: brings an environment to the state that the lock files ask for.
#
# $VENV is its folder: .venv of the clone unless ./test or $MAM_VENV name another. $VENV/ready is written
# last and holds what it was made from (folder, pyproject, lock). A second start compares that and
# looks whether what was installed is still there: no such file means that a set-up was cut off,
# another content means that something changed. Progress goes to stderr; stdout is the command's.

VENV=${MAM_VENV:-$ROOT/.venv}
PYTHON_VERSION=   # a version such as 3.13 that ./test was asked for; empty: the first that fits
LOWEST=           # "lowest": the lowest versions that pyproject.toml allows, instead of the lock's

say() { printf '%s: %s\n' "${0##*/}" "$*" >&2; }
die() { say "$*"; exit 1; }

# The folder is part of it: scripts in $VENV/bin hold its path, so a moved clone starts afresh.
made_from() { printf '%s\n' "$ROOT"; cat "$ROOT/pyproject.toml" "$ROOT/requirements.lock"; }

runtime_ready() {
    [[ -x $VENV/bin/python ]] && made_from | cmp -s - "$VENV/ready" && all_installed
}
test_ready() { cmp -s "$ROOT/requirements-test.lock" "$VENV/ready-test" && runtime_ready; }

# One file of every package: an environment that was half deleted is made anew.
list_installed() {
    local file
    for file in "$VENV"/bin/mam "$VENV"/lib/python*/site-packages/{*.dist-info/RECORD,*/__init__.py,*.pth}; do
        [[ ! -e $file ]] || printf '%s\n' "$file"
    done
}
all_installed() {
    local file
    [[ -r $VENV/installed ]] || return
    while IFS= read -r file; do [[ -e $file ]] || return; done <"$VENV/installed"
}

# `ensure_venv runtime` for ./mam, `ensure_venv test` for ./test, which adds the test tools. Where the
# clone, or the environment of somebody else in it, is not ours to write, ours is in our cache folder.
ensure_venv() {
    "$1_ready" && return
    if [[ $VENV == "$ROOT"/* ]] && ! [[ -w $ROOT && (! -e $VENV || -w $VENV) && (! -e $VENV.lock || -w $VENV.lock) ]]; then
        local cache=${XDG_CACHE_HOME:-${HOME:-}/.cache}/mam
        VENV=$cache/venv-$(printf %s "$ROOT" | cksum | tr -dc 0-9)${VENV#"$ROOT/.venv"}
        "$1_ready" && return
        (umask 077 && mkdir -p "$cache") 2>/dev/null
    fi
    make_venv "$1"
}

# Prints the real path of a fitting Python: `python3` may become another version under us, and a
# python3.11 that vanished is noticed, while one that changed is not.
find_python() {
    local name found without=
    while IFS= read -r name; do
        [[ $name != /* || -x $name ]] && command -v "$name" >/dev/null || continue
        found=$("$name" -I -c 'import sys
sys.version_info >= (3, 11) or sys.exit("it is older")
sys.argv[1] in ("", "%d.%d" % sys.version_info[:2]) or sys.exit("it is another version")
try: import ensurepip, venv
except ImportError: sys.exit("venv is missing")
import os; print(os.path.realpath(getattr(sys, "_base_executable", sys.executable)))' "$PYTHON_VERSION" 2>&1) &&
            printf '%s\n' "$found" && return
        [[ $without || $found != "venv is missing" ]] || without=$name
    done < <(candidates)
    [[ ! $without ]] || die "the venv module of $without is missing;" \
        "please install it (Debian: apt-get install python3-venv) and start again."
    die "Python ${PYTHON_VERSION:-3.11 or newer} was not found; please install it" \
        "(Debian: apt-get install python3 python3-venv, or pyenv or uv for other versions)."
}

# What is on PATH, then where pyenv and uv put the Pythons that are not.
candidates() {
    local version
    [[ $PYTHON_VERSION ]] || echo python3
    for version in ${PYTHON_VERSION:-3.14 3.13 3.12 3.11}; do
        printf '%s\n' "python$version" "/usr/bin/python$version" \
            "${PYENV_ROOT:-${HOME:-}/.pyenv}/versions/$version".*/bin/python \
            "${UV_PYTHON_INSTALL_DIR:-${XDG_DATA_HOME:-${HOME:-}/.local/share}/uv/python}"/cpython-"$version".*/bin/python3
    done
}

# The pip that Python brings along runs from its archive: to install it would take as long as the
# rest of the set-up, and it is needed once, to fetch uv.
bundled_pip() {
    "$VENV/bin/python" -I -c 'import ensurepip, glob, os, sysconfig
folders = [sysconfig.get_config_var("WHEEL_PKG_DIR"), os.path.join(os.path.dirname(ensurepip.__file__), "_bundled")]
found = [path for folder in folders if folder for path in glob.glob(os.path.join(folder, "pip-*.whl"))]
print(os.path.join(found[0], "pip"))'
}
pip_install() {
    "$VENV/bin/python" -I "$(bundled_pip)" -q --disable-pip-version-check install "$@"
}
# The system's certificates, as pip and apt use them: uv's own list knows no company's proxy.
uv_pip() { "$VENV/bin/uv" -q --system-certs pip "$@"; }

# One package's lines of requirements.lock, hashes included: uv itself is checked like the rest.
only_uv() { awk '/^[a-z0-9]/ { uv = /^uv==/ } uv' "$ROOT/requirements.lock"; }
all_but_uv() { awk '/^[a-z0-9]/ { uv = /^uv==/ } !uv' "$1"; }

fetch_uv() { pip_install --require-hashes --only-binary :all: -r <(only_uv); }
by_uv() {
    uv_pip sync --python "$VENV/bin/python" --require-hashes "$@" &&
        uv_pip install --python "$VENV/bin/python" --no-deps --no-build-isolation -e "$ROOT"
}
by_pip() {
    local lock
    for lock in "$@"; do
        pip_install --require-hashes -r <(all_but_uv "$lock") || return
    done
    pip_install --no-deps --no-build-isolation -e "$ROOT"
}

# The lowest versions of what the project itself asks for, test tools as in the lock where they fit.
lock_lowest() {
    local uv=(uv_pip compile "$ROOT/pyproject.toml" --extra postgres --python "$VENV/bin/python" --no-header --no-annotate)
    "${uv[@]}" --no-deps --resolution lowest-direct -o "$VENV/floors.txt" >/dev/null || return
    cat "$ROOT"/requirements{,-test}.lock >"$VENV/lowest.lock"
    (cd "$ROOT" && "${uv[@]}" --group setup --group test -c "$VENV/floors.txt" --generate-hashes \
        -o "$VENV/lowest.lock" >/dev/null)
}

progress() { number=$((number + 1)); say "$number/$steps $*"; }

# Runs one step. What its tool prints matters only if it fails; a person gets the cause and what to do.
quietly() {
    said=$("$@" 2>&1)
}
give_up() {
    local why
    case $said in
        *"No space left"* | *"os error 28"* | *"Disk quota"*)
            why="the disk is full. Free some space and start again." ;;
        *"connection broken"* | *"error sending request"* | *"dns error"* | *"Failed to fetch"* | \
            *"timed out"* | *"from versions: none"*)
            why="the package index cannot be reached. Check the network or the proxy and start again." ;;
        *)
            why=$(printf '%s\n' "$said" | grep -i '^ *error' | tail -n 1)
            why="${why:-${said##*$'\n'}} (start again to retry)" ;;
    esac
    die "$1: $why"
}

# The slow path, one at a time for each environment. The lock dies with its last holder, children
# included: a killed set-up leaves nothing to clean away, and the next start waits for its orphans.
make_venv() (
    python=$(find_python) || exit
    [[ ! -e $VENV || -d $VENV ]] ||
        die "$VENV is a file, and a folder is needed there; please remove it and start again."
    { exec 9>"$VENV.lock"; } 2>/dev/null ||
        die "cannot write to ${VENV%/*}, where the environment has to be made;" \
            "please set MAM_VENV to a new folder of your own and start again."
    if ! "$python" -I -c 'import fcntl; fcntl.flock(9, fcntl.LOCK_EX | fcntl.LOCK_NB)' 2>/dev/null; then
        say "waiting for another set-up of this folder"
        "$python" -I -c 'import fcntl; fcntl.flock(9, fcntl.LOCK_EX)' || exit
    fi
    "$1_ready" && exit

    locks=("$ROOT/requirements.lock")
    # Test tools that are there stay there, although ./mam does not need them.
    if [[ $1 == test || -f $VENV/ready-test ]]; then locks+=("$ROOT/requirements-test.lock"); fi
    number=0 steps=2 known=no
    if [[ $(head -n 1 "$VENV/ready" 2>/dev/null) == "$ROOT" && -x $VENV/bin/python ]]; then known=yes; fi
    all_installed || known=no
    [[ $known == yes ]] || steps=$((steps + 1))
    [[ $known == yes && -x $VENV/bin/uv ]] || steps=$((steps + 1))
    rm -f "$VENV"/ready "$VENV"/ready-test
    if [[ $known == no ]]; then
        progress "making an environment with $("$python" -IV) in $VENV"
        quietly "$python" -I -m venv --clear --without-pip "$VENV" || give_up "could not make $VENV"
        [[ -w $ROOT/core/mam_core ]] || keep_byte_code_here
    fi
    if [[ ! -x $VENV/bin/uv ]]; then
        progress "fetching uv, which installs the rest"
        if ! quietly fetch_uv && [[ $said != *"No matching distribution"* || $said == *"connection broken"* ]]; then
            give_up "could not fetch uv"
        fi
    fi
    if [[ $LOWEST ]]; then
        quietly lock_lowest || give_up "could not find the lowest versions"
        locks=("$VENV/lowest.lock")
    fi
    progress "installing $(cat "${locks[@]}" | grep -v "== 'win32'" | grep -o '^[a-z0-9][^ =]*==' | sort -u | wc -l | tr -d ' ') packages"
    # pip where uv has no wheel for this machine or does not know the way to its package index.
    if ! { [[ -x $VENV/bin/uv ]] && quietly by_uv "${locks[@]}"; }; then
        [[ ${said-} != *"os error 28"* ]] || give_up "could not install the packages"
        say "uv could not do it; trying pip, which may take a minute"
        quietly by_pip "${locks[@]}" || give_up "could not install the packages"
    fi
    quietly paths_in_ascii || give_up "could not finish $VENV"
    # Byte code for the first start, which would otherwise compile all that it imports.
    progress "compiling byte code"
    "$VENV/bin/python" -I -m compileall -qq -j 0 "$VENV/lib" "$ROOT/core/mam_core" "$ROOT/tui/mam_tui"
    said=$({
        list_installed >"$VENV/installed" &&
            if [[ ${#locks[@]} -eq 2 || $LOWEST ]]; then cp "$ROOT/requirements-test.lock" "$VENV/ready-test"; fi &&
            made_from >"$VENV/ready.new" && mv "$VENV/ready.new" "$VENV/ready"
    } 2>&1) || give_up "could not finish $VENV"
) </dev/null >&2

# The way to our code, readable in every locale: where Python 3.11 and 3.12 cannot read a .pth file,
# they do not start.
paths_in_ascii() {
    "$python" -I -c 'import sys
for path in sys.argv[1:]:
    with open(path, "rb") as file:
        lines = file.read().splitlines()
    with open(path, "w", encoding="ascii") as file:
        for line in lines:
            code = f"import os, sys; sys.path.append(os.fsdecode({line!r}))"
            print(line.decode() if line.isascii() else code, file=file)' \
        "$VENV"/lib/python*/site-packages/_mam_console.pth
}

# A clone that cannot be written to keeps no byte code beside its sources.
keep_byte_code_here() {
    "$VENV/bin/python" -I -c 'import os, sys, sysconfig
with open(sysconfig.get_path("purelib") + "/byte_code.pth", "w", encoding="ascii") as file:
    place = os.fsencode(sys.argv[1])
    print(f"import os, sys; sys.pycache_prefix = os.fsdecode({place!r})", file=file)' "$VENV/byte-code"
}

# Installs Debian packages where we may (as root), quietly; false where we may not.
apt_install() {
    [[ $(id -u) -eq 0 ]] && command -v apt-get >/dev/null || return
    local apt=(env DEBIAN_FRONTEND=noninteractive apt-get -qq -o Dpkg::Use-Pty=0)
    local install=("${apt[@]}" install -y --no-install-recommends "$@")
    say "installing $*"
    # A fresh machine has no package lists; one that has them need not fetch them again.
    { "${install[@]}" >/dev/null 2>&1 || { "${apt[@]}" update && "${install[@]}" >/dev/null; }; } </dev/null >&2
}
