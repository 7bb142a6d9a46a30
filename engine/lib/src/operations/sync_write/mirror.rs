//! The destination of a mirror, as a whole.

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

/// The destination, shared between all threads.
pub(super) struct Mirror<'a> {
    pub(super) parameters: &'a Parameters,
    pub(super) target: Target,
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
    /// # Errors
    /// If the destination may not be filled, holds anything, or lies within the source.
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

    /// Makes everything on its file system durable.
    pub(super) fn sync(&self) -> Result<()> {
        rustix::fs::syncfs(&self.root).context("sync", || &self.parameters.destination)
    }

    /// Makes its own name durable.
    pub(super) fn sync_name(&self) -> Result<()> {
        self.target.sync_name().context("sync the directory around", || &self.parameters.destination)
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
