//! When the server ends: told to, its parent gone, its lifeline closed, or the kernel's side gone.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, FromRawFd, OwnedFd};

use crate::sys;

/// What the process is to the kernel. Must come before any thread starts.
pub(crate) fn settle(die_with_parent: bool) -> io::Result<OwnedFd> {
    const PR_SET_IO_FLUSHER: libc::c_int = 57;
    let signals = sys::signals(&[libc::SIGINT, libc::SIGTERM, libc::SIGHUP])?;
    if die_with_parent {
        sys::prctl(libc::PR_SET_PDEATHSIG, libc::SIGTERM.unsigned_abs().into())?;
    }
    // Memory reclaim must never wait for this process, for it may wait for reclaim. Needs CAP_SYS_RESOURCE, which
    // containers often lack; without it only a machine that is out of memory is at risk.
    let _ = sys::prctl(PR_SET_IO_FLUSHER, 1);
    // A page of the disk occupies a page of memory, not a huge one.
    sys::prctl(libc::PR_SET_THP_DISABLE, 1)?;
    sys::prctl(libc::PR_SET_TIMERSLACK, 1)?;
    Ok(signals)
}

/// Waits for the end. A lifeline is a descriptor that nobody writes to: it becomes readable when its other end closes.
pub(crate) fn wait_for_end(signals: &OwnedFd, shutdown: &OwnedFd, lifeline: Option<i32>) -> io::Result<()> {
    // SAFETY: the caller passed the descriptor to us; if it is closed, polling tells so and that ends us.
    let lifeline = lifeline.map(|fd| unsafe { OwnedFd::from_raw_fd(fd) });
    let third: BorrowedFd<'_> = lifeline.as_ref().map_or(shutdown.as_fd(), AsFd::as_fd);
    while !sys::wait([signals.as_fd(), shutdown.as_fd(), third], None)?.contains(&true) {}
    Ok(())
}
