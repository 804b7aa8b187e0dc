#!/bin/sh
# The dispatch document's script of this name: claims tasks of the dispatch registry and runs them.
#
#   dispatch_with_registry.sh [S01 S02 ...]      these, or all pending ones
#
# REGISTRY (~/Downloads/dispatch-registry.json), NODE_NAME (hostname -s) and API_MODE (direct or zai)
# are read as there; the options of `mam dispatch run` may follow. Exit code: 0 all completed, 1 not.

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
exec "$mam" dispatch run "$@"
