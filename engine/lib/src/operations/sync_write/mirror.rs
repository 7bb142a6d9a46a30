//! The destination of a mirror as a whole.

use std::ffi::CStr;
use std::os::fd::OwnedFd;
use std::path::PathBuf;

use rustix::fs::Mode;
use rustix::io::Errno;

use super::links::{self, Links};
use super::{Method, Parameters, Place};
use crate::error::{Context, Error, Kind, Result};
use crate::guard::Target;
use crate::room::Left;
use crate::walk::{Node, Tree, Trouble};

/// The destination, shared by all threads.
pub(super) struct Mirror<'a> {
    pub(super) parameters: &'a Parameters,
    pub(super) target: Target,
    pub(super) root: OwnedFd,
    pub(super) links: Links,
    /// Free space for files that are copied with `read_write`. `None` for other methods and for file systems that may
    /// share or compress blocks.
    pub(super) room: Option<Left>,
    /// Permission bits that the umask removes from new files.
    pub(super) umask: u32,
    /// Whether the process can set owners: its effective user is root.
    pub(super) privileged: bool,
}

impl<'a> Mirror<'a> {
    /// Create the destination, or open it if it exists.
    ///
    /// # Errors
    /// Fails if the destination is not empty, must not be filled, or is inside the source.
    pub(super) fn make(parameters: &'a Parameters, source: &Tree) -> Result<Self> {
        let target = Target::named(&parameters.destination)?;
        if target.is_within(source.root())? {
            let shown = parameters.destination.display();
            return Err(Error::Invalid(format!("{shown} is inside the source")));
        }
        let root = target.make_or_open_empty()?;
        let umask = rustix::process::umask(Mode::empty());
        rustix::process::umask(umask);
        let privileged = rustix::process::geteuid().is_root();
        let room = match parameters.method {
            Method::ReadWrite => Left::of(&root, &parameters.destination)?,
            _ => None,
        };
        let links = Links::default();
        Ok(Self { parameters, target, root, room, links, umask: umask.as_raw_mode(), privileged })
    }

    /// Call `syncfs` on the file system of the destination.
    pub(super) fn sync(&self) -> Result<()> {
        rustix::fs::syncfs(&self.root).context("sync", || &self.parameters.destination)
    }

    /// Call `fsync` on the parent of the destination, so that its name is durable.
    pub(super) fn sync_name(&self) -> Result<()> {
        self.target.sync_name().context("sync the directory around", || &self.parameters.destination)
    }

    /// Return the path of a file in the mirror, for messages.
    fn path_of(&self, node: &Node<Place>, name: &CStr) -> PathBuf {
        self.parameters.destination.join(links::path_within(node, name))
    }

    /// Classify an error of the destination. It is fatal if more errors of this kind would follow: no space or too many
    /// open files.
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
