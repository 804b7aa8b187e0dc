#!/bin/sh
# The dispatch document's script of this name: makes a dispatch registry from a folder of specs.
#
#   init_registry.sh [SPECS_DIR]      default: $SPECS_DIR, else the folder of the document
#
# Every S*.md is a task. REGISTRY (~/Downloads/dispatch-registry.json) is the file; tasks that are in
# it already stay as they are. The options of `mam dispatch init` may follow.

here=$0
while [ -L "$here" ]; do # called through a link
    link=$(readlink "$here")
    case $link in /*) here=$link ;; *) here=$(dirname "$here")/$link ;; esac
done
clone=$(CDPATH='' cd -P -- "$(dirname "$here")/../.." 2>/dev/null && pwd)
mam=mam
[ -n "$clone" ] && [ -d "$clone/core/mam_core" ] && [ -x "$clone/mam" ] && mam=$clone/mam
if ! command -v "$mam" >/dev/null; then
    echo "${0##*/}: mam is not on your PATH, and this script is in no clone of it" >&2
    exit 1
fi
[ $# -gt 0 ] || set -- "${SPECS_DIR:-$HOME/Downloads/specs/clawmarketing}"
exec "$mam" dispatch init "$@"
