//! A store in a sparse file.

use std::fs::File;
use std::io;
use std::os::fd::AsFd;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::Path;

use fslab_disk_model::PAGE;
use fslab_disk_model::store::{Full, Store};

use crate::sys;

/// A sparse file of the disk's size. Its space is limited only by the file system that contains it.
pub(crate) struct FileStore(File);

impl FileStore {
    /// Create the file, which must not exist.
    pub(crate) fn create(path: &Path, size: u64) -> io::Result<Self> {
        let file = File::options().read(true).write(true).create_new(true).open(path)?;
        file.set_len(size)?;
        Ok(Self(file))
    }
}

impl Store for FileStore {
    fn read(&self, offset: u64, buffer: &mut [u8]) -> Result<(), Full> {
        self.0.read_exact_at(buffer, offset).map_err(|_| Full)
    }

    fn write(&self, offset: u64, data: &[u8]) -> Result<(), Full> {
        self.0.write_all_at(data, offset).map_err(|_| Full)
    }

    fn punch(&self, offset: u64, length: u64) -> Result<(), Full> {
        sys::punch(self.0.as_fd(), offset, length).map_err(|_| Full)
    }

    fn occupied(&self) -> u64 {
        self.0.metadata().map_or(0, |metadata| metadata.blocks() * 512)
    }

    fn each_page(&self, page: &mut dyn FnMut(u64, &[u8])) {
        let size = self.0.metadata().map_or(0, |metadata| metadata.len());
        let mut buffer = [0; PAGE];
        let mut offset = 0;
        while let Some(data) = sys::next_data(self.0.as_fd(), offset).filter(|data| *data < size) {
            offset = data / PAGE as u64 * PAGE as u64;
            if self.0.read_exact_at(&mut buffer, offset).is_ok() {
                page(offset, &buffer);
            }
            offset += PAGE as u64;
        }
    }

    fn is_hole(&self, page: u64) -> bool {
        let start = page * PAGE as u64;
        sys::next_data(self.0.as_fd(), start).is_none_or(|data| data >= start + PAGE as u64)
    }
}
