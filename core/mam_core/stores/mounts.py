"""Is this folder on a disk of our own? A lock on a network file system proves nothing."""

from __future__ import annotations

import os

from mam_core.audit import warn
from mam_core.disk import Folder
from mam_core.errors import NetworkFileSystem

_NETWORK = frozenset(
    """
    9p afs beegfs ceph cifs coda gfs2 glusterfs gpfs lustre ncpfs nfs nfs4 ocfs2 orangefs pvfs2 smb3
    smbfs fuse.davfs fuse.gcsfuse fuse.glusterfs fuse.rclone fuse.s3fs fuse.sshfs
    """.split()  # noqa: SIM905 — a list of words reads as a list of words
)
#: Local in a container, remote elsewhere: the kernel cannot tell, so we say it and go on.
_DOUBTFUL = ("fuse", "virtiofs")
_HARMLESS = frozenset({"fuseblk", "fuse.fuse-overlayfs"})


#: Devices of this host, so that the kernel writes its table once for a process, not for a handle.
_known: set[int] = set()


def check_local(folder: Folder) -> None:
    """Raise `NetworkFileSystem` where ``flock`` cannot be trusted; warn where nobody knows."""
    device = folder.identity[0]
    if device in _known:
        return
    kind = file_system_of(folder)
    if kind in _NETWORK:
        raise NetworkFileSystem(
            f"{folder.path} is on a network file system ({kind}), where the registry's lock cannot "
            "be trusted: use a local folder, or --allow-network-fs if only one host ever writes"
        )
    if kind.startswith(_DOUBTFUL) and kind not in _HARMLESS:
        warn(f"{folder.path} is on {kind}: its lock is only safe if no other host writes there")
    else:
        _known.add(device)


def file_system_of(folder: Folder) -> str:
    """The kernel's name for the type of file system; empty where it does not tell."""
    state = os.fstat(folder.fd)
    device = f"{os.major(state.st_dev)}:{os.minor(state.st_dev)}"
    try:
        with open("/proc/self/mountinfo", encoding="utf-8", errors="replace") as mounts:
            lines = mounts.read().splitlines()
    except OSError:
        return ""
    here = next((line for line in lines if f" {device} " in line), None)
    if here is None:
        # btrfs reports a device of its own for each subvolume: go by the longest mount point.
        above = [line for line in lines if _contains(line.split(" ")[4], folder.path)]
        here = max(above, key=lambda line: len(line.split(" ")[4]), default="")
    return here.partition(" - ")[2].partition(" ")[0]


def _contains(mount_point: str, path: str) -> bool:
    return path == mount_point or path.startswith(mount_point.rstrip("/") + "/")
