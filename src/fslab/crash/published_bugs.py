"""Sequences of published bugs: what tests of fstests do before they cut power, in the steps of fslab.

A number alone is that of a test in tests/generic. The files are those from which every sequence starts. Where a test
needs what fslab does not have, ``lacks`` says it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True, slots=True)
class Scenario:
    """``test``: its number in fstests, or what describes it. ``about``: what must not happen."""

    test: str
    about: str
    sequences: tuple[str, ...] = ()
    lacks: str | None = None


# What a test is called and what must not happen; below it, its sequences, or what fslab lacks for it.
_BUGS = """
034: an emptied directory cannot be removed
    create d/n; fsync d; fsync d/n
039: a directory of which a link was removed cannot be removed
    link a l; sync; unlink l; fsync a
040: wrong link count after fsync of a file that got one link more than very many
    lacks: thousands of links of one file
041: the file system cannot be mounted after one of very many links was removed and made again
    lacks: thousands of links of one file
042: bytes that the disk held before are in a new file after its last block was punched
    write n; punch a hole into the last block of n; create k; fsync k
043: a new file has its size and zeros
    lacks: a promise: ext4.rst (data=ordered) and the FAQ of XFS only suggest it
044: a new file that was truncated to its own size has zeros
    lacks: a promise: ext4 with delalloc does not keep it, the FAQ of XFS only suggests it
045: a new file that was truncated to half its size has zeros
    lacks: a promise: ext4 with delalloc does not keep it, the FAQ of XFS only suggests it
046: a new file that truncate extended has only zeros
    lacks: a promise: ext4 with delalloc does not keep it, the FAQ of XFS only suggests it
047: a new file is lost, or has no contents, after fsync
    write n; fsync n
048: a new file has a wrong size after sync
    write n; sync
049: a new file is lost, or has no contents, after sync
    write n; sync
052: new files are lost after a shutdown that flushes the log
    lacks: a promise: a power cut does not flush the log
054: new files are lost after sync
    create n; sync
055: names are lost after random operations and a shutdown that flushes the log
    lacks: hundreds of random operations
056: synced data is lost after a link and fsync of another file
    write n; fsync n; link n l; create p; fsync p
057: a synced append is lost after a link and fsync of another file
    append a; fsync a; link a l; create n; fsync n
059: a hole in a part of a block is not there after fsync
    fsync a; sync; punch a hole into half a block of a; fsync a
065: wrong link counts after fsync of the directory with new links
    link a e/l; link a e/k; write n; link n e/n; mkdir e/m; link a e/m/l; create e/m/x; fsync e
066: a removed extended attribute is there again
    removexattr a; fsync a
073: a synced append is lost after a rename elsewhere and fsync of the old directory
    fsync a; sync; append a; rename d/f e/f; fsync d; fsync a
090: a synced append is lost after a link and sync
    fsync a; sync; link a l; sync; append a; fsync a
101: truncated data is there again after the file was extended
    truncate a to 1 block; truncate a to 2 blocks; fsync a
    truncate a to 0 blocks; truncate a to 5 blocks; fsync a
104: wrong link counts after fsync of one of two linked files
    link a l; link b k; fsync a
106: a removed link is there again after its inode left memory
    create n; link n l; sync; unlink l; evict inodes; fsync n
107: a link that was removed from another directory is there again
    link a d/l; link a d/k; sync; unlink d/k; fsync a
177: holes that overlap are not there after fsync
    append a; fsync a; punch a hole into the last block of a; punch a hole into all of a; fsync a
311: data is lost after hundreds of random writes and fsync
    lacks: hundreds of random operations
321: a synced directory, or a rename into it, is lost
    mkdir m; fsync m
    create n; mkdir m; fsync n; rename n m/n; fsync m; fsync m/n
    create n; mkdir m; fsync n; rename n m/n; fsync m; setxattr m/n; fsync m/n
322: a renamed and synced file, or its data, is lost
    write n; fsync n; rename n r; fsync r
    write n; fsync n; truncate n to 5 blocks; append n with O_DIRECT; rename n r; fsync r
325: data is lost after msync of another part of the file and fsync
    append a; store to a with mmap and msync; fsync a
335: a file that moved to another directory is lost after fsync of the old one
    mkdir d/m; create d/m/x; sync; rename d/m/x e/x; create d/n; fsync d; fsync e/x
    mkdir d/m; create d/m/x; sync; rename d/m/x e/x; create d/n; fsync d
336: a moved file is lost after fsync of another one
    link a d/l; sync; unlink d/l; rename d/f e/f; fsync a
341: a renamed directory is lost after fsync of a new one under its old name
    rename d g; mkdir d; fsync d
342: a renamed file is lost after fsync of a new one under its old name
    rename a r; write a; fsync a
343: a moved file or directory is lost after fsync of a new link beside it
    mkdir e/m; create e/x; sync; link d/f d/l; rename e/m d/m; rename e/x d/x; fsync d/l
348: a symbolic link is lost, or empty, after fsync of its directory
    symlink a s; fsync-directory
    mkdir m; symlink a m/s; fsync m
376: a renamed file is lost after fsync, if a new one has its old name
    rename a r; create a; fsync r
392: size, time or a hole are lost after fsync or fdatasync
    utime a; fsync a
    append a; fdatasync a
    append half a block to a; fdatasync a
    punch a hole into the last block of a; fsync a
    punch a hole into the last block of a; fdatasync a
455: data is lost after random operations and fsync
    lacks: hundreds of random operations
457: data is lost after random operations on clones and fsync
    lacks: files that share blocks (reflink)
468: a size is lost after fallocate and fsync or fdatasync
    fallocate a to 5 blocks; fdatasync a
    fallocate a to 5 blocks; fsync a
470: blocks that were written with MAP_SYNC are lost
    lacks: DAX
474: a new file is lost after syncfs
    write n; sync
479: the file system cannot be mounted after a special file was renamed and linked
    mkfifo p; sync; create n; fsync n; rename p q; link q p; create x; fsync x
    symlink a p; sync; create n; fsync n; rename p q; link q p; create x; fsync x
480: the file system cannot be mounted after fsync of a new file under a removed link
    link a l; sync; unlink l; create l; fsync l
481: no file can be made after recovery
    create n; fsync n
483: blocks that were allocated beyond the end are lost
    lacks: extents beyond the end of a file are not compared
489: extended attributes are lost after fsync, sync and fsync
    create n; setxattr n; fsync n; sync; append n; fsync n
498: a new directory is lost after fsync, if it has a link to a synced file
    mkdir x; mkdir y; mkdir x/m; create y/n; fsync y/n; link y/n x/m/n; fsync x
501: a synced clone is lost
    lacks: files that share blocks (reflink)
502: links are lost, or the file system cannot be mounted, after renames of links and a new file
    link a l; sync; rename a r; rename l a; create l; fsync l
505: owner and group are lost after fsync
    chown a; fsync a
    create n; chown n; fsync n
506: the project of a file is lost after fsync
    lacks: projects of quotas
507: flags of a file (chattr) are lost after fsync
    lacks: flags of files
508: the time of creation is lost after fsync
    lacks: times of creation
509: the file system cannot be mounted after fsync of a temporary file
    fsync a temporary file
510: a directory has two names, or a file is lost, after it replaced another directory
    rename d/f e/f; rename e over d; fsync d/f
512: data of a small file is lost after fallocate and fsync
    create n; append half a block to n; fallocate n to 1 block; fsync n
520: a link of a new file is lost after fsync of any of its names, or of a directory, or sync
    mkdir m; create n; link n m/l; fsync n
    mkdir m; create n; link n m/l; fsync m/l
    mkdir m; create n; link n m/l; fsync m
    mkdir m; create n; link n m/l; fsync-directory
    mkdir m; create n; link n m/l; sync
    mkdir m; create m/n; link m/n l; fsync l
    mkdir m; create m/n; link m/n l; fsync m
    mkdir m; create m/n; link m/n l; fsync-directory
    mkdir m; create m/n; link m/n m/l; fsync m/l
    create n; link n l; fsync l
526: names lead to wrong files after renames, a link and a new file
    rename a r; rename b q; link r b; write a; fsync a
527: names lead to wrong files after a rename, a removal, a link and a new file
    rename a r; unlink b; link r b; write a; fsync a
    link a l; sync; rename b t; rename l b; rename t l; rename a r; write a; fsync a
534: a truncated, renamed and synced file has its old size
    write n; fsync n; truncate n to half a block; rename n r; fsync r
535: permissions are lost after fsync
    chmod a; fsync a
    chmod d; sync; chmod d; fsync d
536: bytes that the disk held before are in a new file after its last block was written back
    write n; append n with O_SYNC
    write n; fsync n; truncate n to 4 blocks; append n with O_SYNC
546: data of a file that was allocated and cloned is lost on a full file system
    lacks: files that share blocks (reflink)
547: anything is lost after random operations and fsync of each file
    lacks: hundreds of random operations
552: data is lost after the inode left memory and the file was renamed
    mkdir m; create m/n; create m/x; append m/x with O_DIRECT; evict files; fsync m/n; rename m/x m/r; fsync m/r
557: a removed file is there again after its inode left memory
    mkdir m; create m/n; fsync m/n; evict files; unlink m/n; fsync m
588: shared blocks are lost
    lacks: files that share blocks (reflink)
599: a synced directory is lost after a remount as read-only
    lacks: remounts
622: times are lost after fsync, sync or eviction with lazytime
    lacks: times that the kernel sets
635: a time at the end of its range is lost
    lacks: times before 1970 and after 2038
640: a moved file is lost after the inode of its old directory left memory
    create d/n; fsync d; evict inodes; rename d/f e/f; create n; fsync n
677: blocks that were allocated beyond the end are lost
    lacks: extents beyond the end of a file are not compared
690: a renamed symbolic link is empty after fsync of its directory
    create d/n; fsync d; symlink a d/s; rename d/s d/t; fsync d
695: a hole beside a hole is not there after fsync
    punch a hole into a; sync; punch a hole into the last block of a; fsync a
    truncate a to 1 block; truncate a to 5 blocks; sync; punch a hole into a; fsync a
703: direct writes with O_DSYNC by io_uring are lost
    lacks: io_uring
705: a new file that was closed has its size and zeros
    lacks: a promise: ext4.rst (data=ordered) and the FAQ of XFS only suggest it
722: contents of two files that were exchanged and synced are lost
    lacks: exchanges of contents
737: data is lost that was appended with O_SYNC
    append a with O_SYNC
    append a with O_SYNC and O_DIRECT
764: a removed file is there again although it was synced after its removal
    unlink a and fsync it
771: the file system cannot be mounted after fsync of a removed file and of a new one
    write n; unlink n and fsync it; create k; fsync k
775: an atomic write with O_DSYNC is torn or lost
    lacks: atomic writes (RWF_ATOMIC)
778: an atomic write is torn
    lacks: atomic writes (RWF_ATOMIC)
779: a renamed symbolic link has its old name after fsync of its directory
    symlink a s; fsync-directory; rename s t; fsync-directory
782: a new directory is lost that has a link of a synced file
    mkdir m; overwrite a; fsync a; link a m/l; fsync-directory
784: the file system cannot be mounted after fsync of a new file under the name of a moved directory
    mkdir m; sync; rename m e/m; create m; fsync m; rename m e/n; fsync e/n
785: a new directory is lost after a rename of a synced file and fsync of its directory
    overwrite a; fsync a; mkdir m; create m/n; rename a r; fsync-directory
789: a truncated file has its old size after a link and fsync of the directory
    truncate a to 0 blocks; fsync a; link a l; fsync-directory
790: a new directory is lost after fsync of another one
    mkdir n; sync; rmdir n; mkdir x; mkdir y; create n; link n y/l; fsync y; fsync-directory
792: a directory that was removed and synced is there again, or the file system cannot be mounted
    mkdir m; mkdir m/n; sync; chmod m; fsync m; rename m/n e/n; rmdir m and fsync it
794: bytes beyond the end of a file are in it after it was extended
    lacks: other bytes than zeros beyond the end of a file
btrfs/236: data is lost after a rename or link, an overwrite, and fsync of another file before that of this one
    create k; write n; fsync n; rename n r; overwrite r; fsync k; fsync r
    create k; write n; fsync n; link n l; overwrite n; fsync k; fsync n
ext4 fast_commit: a temporary file that was linked is lost after fsync, and the file system damaged
    link a temporary file as n; fsync n
"""


def _scenario(lines: list[str]) -> Scenario:
    test, _, about = lines[0].partition(": ")
    below = [line.strip() for line in lines[1:]]
    if below[0].startswith("lacks: "):
        return Scenario(test=test, about=about, lacks=below[0].removeprefix("lacks: "))
    return Scenario(test=test, about=about, sequences=tuple(below))


SCENARIOS = tuple(_scenario(each.splitlines()) for each in re.split(r"\n(?! )", _BUGS.strip()))
