"""Words in the values of flags of mkfs that people also write as mount options; the flag by which mkfs takes them."""

from collections.abc import Mapping

# ext4(5), "FILE SYSTEM FEATURES", and mke2fs(8).
EXT: Mapping[str, str] = {
    "-O": "64bit bigalloc casefold dir_index dir_nlink ea_inode encrypt ext_attr extent extra_isize fast_commit "
    "filetype flex_bg has_journal huge_file inline_data large_dir large_file metadata_csum metadata_csum_seed meta_bg "
    "mmp orphan_file project resize_inode sparse_super sparse_super2 stable_inodes uninit_bg verity",
    "-E": "encoding encoding_flags lazy_itable_init lazy_journal_init num_backup_sb packed_meta_blocks quotatype "
    "root_owner stride stripe_width stripe-width",
}

# mkfs.xfs(8). Of sunit and swidth, it has another meaning than mount: they are mount options, too.
XFS: Mapping[str, str] = {
    "-m": "bigtime crc finobt inobtcount metadir reflink rmapbt",
    "-d": "agcount agsize cowextsize rtinherit su sw",
    "-i": "exchange maxpct nrext64 perblock projid32bit sparse",
    "-l": "lazy-count",
    "-n": "ftype parent",
}

# mkfs.btrfs(8), "FILESYSTEM FEATURES".
BTRFS: Mapping[str, str] = {
    "-O": "block-group-tree extref free-space-tree mixed-bg no-holes quota raid-stripe-tree raid1c34 skinny-metadata "
    "squota zoned",
}

# mkfs.f2fs(8), and f2fs-tools' f2fs_fs.h.
F2FS: Mapping[str, str] = {
    "-O": "casefold compression encrypt extra_attr flexible_inline_xattr inode_checksum inode_crtime lost_found "
    "project_quota sb_checksum verity",
}
