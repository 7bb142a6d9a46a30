//! The destination of a mirror, as a whole.

use std::ffi::CStr;
use std::fs;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use rustix::fs::Mode;
use rustix::io::Errno;

use super::links::{self, Links};
use super::{Method, Parameters, Place};
use crate::error::{Context, Error, Kind, Result};
use crate::room::Left;
use crate::sys;
use crate::walk::{Node, Trouble};

/// The destination, shared between all threads.
pub(super) struct Mirror<'a> {
    pub(super) parameters: &'a Parameters,
    pub(super) root: OwnedFd,
    pub(super) links: Links,
    /// For what is copied byte by byte; not kept where blocks may be shared or compressed.
    pub(super) room: Option<Left>,
    /// Permission bits that new files do not get.
    pub(super) umask: u32,
    /// Whether owners can be given away.
    pub(super) privileged: bool,
}

impl<'a> Mirror<'a> {
    pub(super) fn make(parameters: &'a Parameters) -> Result<Self> {
        let path = &parameters.destination;
        match rustix::fs::mkdir(path, sys::DIRECTORY_MODE) {
            Ok(()) | Err(Errno::EXIST) => {}
            Err(errno) => return Err(Error::system("create directory", path, errno)),
        }
        let root = sys::open_root(path).context("open", || path)?;
        refuse_unless_empty_and_apart(path, &parameters.source)?;
        let umask = rustix::process::umask(Mode::empty());
        rustix::process::umask(umask);
        let privileged = rustix::process::geteuid().is_root();
        let room = match parameters.method {
            Method::ReadWrite => Left::of(&root, path)?,
            _ => None,
        };
        Ok(Self { parameters, root, room, links: Links::default(), umask: umask.as_raw_mode(), privileged })
    }

    /// The path of something in the mirror, for messages.
    fn path_of(&self, node: &Node<Place>, name: &CStr) -> PathBuf {
        self.parameters.destination.join(links::path_within(node, name))
    }

    /// Failures of the destination end the run where more of them would follow.
    pub(super) fn trouble(
        &self,
        action: &'static str,
        errno: Errno,
        node: &Node<Place>,
        name: &CStr,
    ) -> Trouble {
        match Kind::from(errno) {
            Kind::NoSpace | Kind::TooManyFiles => {
                Trouble::Fatal(Error::system(action, self.path_of(node, name), errno))
            }
            _ => Trouble::File(action, errno),
        }
    }
}

fn refuse_unless_empty_and_apart(destination: &Path, source: &Path) -> Result<()> {
    let failed = |error: &std::io::Error| {
        Error::system("open", destination, Errno::from_io_error(error).unwrap_or(Errno::IO))
    };
    // A fresh file system of the ext family is not quite empty.
    let mut entries = fs::read_dir(destination).map_err(|error| failed(&error))?.flatten();
    if entries.any(|entry| entry.file_name() != "lost+found") {
        return Err(Error::Invalid(format!("{} is not empty", destination.display())));
    }
    let whole = fs::canonicalize(destination).map_err(|error| failed(&error))?;
    let within = fs::canonicalize(source).map_err(|error| failed(&error))?;
    if whole.starts_with(&within) {
        return Err(Error::Invalid(format!("{} lies within the source", destination.display())));
    }
    Ok(())
}
