//! Creation of a synthetic tree with a ground-truth manifest. The same spec gives the same tree, byte for byte, on any
//! machine and with any number of threads.

mod contents;
mod manifest;
mod plan;
mod sizes;
mod spec;

use std::os::fd::{AsFd, OwnedFd};
use std::path::PathBuf;

use rustix::fs::{Timespec, Timestamps, Uid};
use rustix::io::Errno;
use serde::Serialize;

use self::contents::{Contents, PIECE};
use self::plan::Plan;
pub use self::sizes::Distribution;
pub use self::spec::{Class, Planted, Spec};
use crate::document::{Bandwidth, Outcome, Warning, path_as_text};
use crate::error::{Context, Error, Result};
use crate::guard::Target;
use crate::measure::Measured;
use crate::measure::phase::Finish;
use crate::measure::recorder::Recorder;
use crate::measure::share::Share;
use crate::measure::syscall::Syscall;
use crate::{memory, room, sys};

/// User ID of the first owner; the others follow it.
const FIRST_OWNER: u32 = 10_000;

/// Parameters of the operation.
#[derive(Debug, Clone, Serialize, clap::Args)]
pub struct Parameters {
    /// New or empty directory; directories that delete refuses are refused here too.
    #[serde(serialize_with = "path_as_text")]
    #[arg(value_name = "DIR")]
    pub directory: PathBuf,
    /// Specification of the data set.
    #[arg(skip)]
    pub spec: Spec,
    /// Whether to call `syncfs` at the end, within the measured time.
    #[arg(long = "no-syncfs", action = clap::ArgAction::SetFalse,
          help = "Skip the final syncfs, which is part of the measured time")]
    pub syncfs: bool,
    /// Threads and measurement options.
    #[serde(flatten)]
    #[command(flatten)]
    pub measured: Measured,
}

/// Create the tree. The answer is the manifest.
///
/// # Errors
/// Fails if the spec is invalid, the directory is not empty or must not be filled, there is too little space, or a file
/// cannot be created.
pub fn run(parameters: &Parameters) -> Result<Outcome> {
    parameters.spec.check()?;
    let path = &parameters.directory;
    let plan = Plan::new(&parameters.spec)?;
    let root = Target::named(path)?.make_or_open_empty()?;
    room::check(&root, path, &plan.need(parameters.measured.threads as u64 * PIECE as u64))?;
    let privileged = rustix::process::geteuid().is_root();
    let owners = parameters.spec.owners > 0 && privileged;
    let maker = Maker { path, root: &root, plan: &plan, contents: Contents::new(&plan)?, owners };
    let phase = parameters.measured.phase("populate", Bandwidth::Counted)?;
    let share = Share::new(usize::try_from(plan.directories()).unwrap_or(usize::MAX), 1);
    let prepare = |_| memory::zeroed(PIECE);
    let work = |_, mut buffer: Vec<u8>, recorder: &mut Recorder<'_>| {
        while let Some(range) = share.take() {
            maker.directory(range.start as u64, &mut buffer, recorder)?;
        }
        Ok(())
    };
    let finish = parameters
        .syncfs
        .then_some(|finish: &mut Finish| finish.sync(|| rustix::fs::syncfs(&root).context("sync", || path)));
    let (operation, _) = phase.run(prepare, work, finish)?;
    let warning = (parameters.spec.owners > 0 && !privileged).then(|| Warning {
        kind: "owners_not_set",
        message: "only root can set other owners; all files belong to the current user".to_owned(),
    });
    let answer = Some(manifest::manifest(&plan, owners));
    Ok(Outcome { operations: vec![operation], answer, warnings: warning.into_iter().collect() })
}

/// The data that all threads need to create the files.
struct Maker<'a> {
    path: &'a PathBuf,
    root: &'a OwnedFd,
    plan: &'a Plan<'a>,
    contents: Contents,
    owners: bool,
}

impl Maker<'_> {
    fn directory(&self, number: u64, buffer: &mut [u8], recorder: &mut Recorder<'_>) -> Result<()> {
        let paths = self.plan.directory_paths(number);
        for path in &paths {
            let (around, name) = path.rsplit_once('/').unwrap_or(("", path));
            let made = sys::open_within(self.root, around.as_bytes())
                .and_then(|around| rustix::fs::mkdirat(around, name, sys::DIRECTORY_MODE));
            match made {
                Ok(()) | Err(Errno::EXIST) => {}
                Err(errno) => return Err(Error::system("create directory", self.path.join(path), errno)),
            }
        }
        let path = paths.last().map(String::as_str).unwrap_or_default();
        let directory =
            sys::open_within(self.root, path.as_bytes()).context("open", || self.path.join(path))?;
        recorder.begin();
        for index in self.plan.files_of(number) {
            recorder.check()?;
            let name = self.plan.name(index);
            self.file(&directory, &name, index, buffer, recorder)
                .map_err(|(action, errno)| Error::system(action, self.path.join(path).join(&name), errno))?;
        }
        Ok(())
    }

    fn file(
        &self,
        directory: &OwnedFd,
        name: &str,
        index: u32,
        buffer: &mut [u8],
        recorder: &mut Recorder<'_>,
    ) -> Result<(), (&'static str, Errno)> {
        let planned = &self.plan.files[index as usize];
        let file =
            rustix::fs::openat(directory, name, sys::OPEN_NEW, sys::FILE_MODE).map_err(|e| ("create", e))?;
        recorder.lap(Syscall::Open);
        self.contents.write(self.plan, planned, buffer, |piece| {
            recorder.skip();
            sys::write_all(&file, piece).map_err(|errno| ("write", errno))?;
            recorder.lap(Syscall::Write);
            Ok(())
        })?;
        self.attributes(&file, index).map_err(|errno| ("set times of", errno))?;
        recorder.lap(Syscall::Utime);
        drop(file);
        recorder.lap(Syscall::Close);
        recorder.end(planned.size);
        Ok(())
    }

    fn attributes(&self, file: impl AsFd, index: u32) -> rustix::io::Result<()> {
        let (modified, owner) = self.plan.time_and_owner(index);
        if self.owners {
            rustix::fs::fchown(&file, Some(Uid::from_raw(FIRST_OWNER + owner)), None)?;
        }
        let time = Timespec { tv_sec: modified, tv_nsec: 0 };
        rustix::fs::futimens(&file, &Timestamps { last_access: time, last_modification: time })
    }
}
