//! The end of the server: a signal or a shutdown request, the end of its parent, a closed lifeline, or an aborted
//! connection.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, FromRawFd, OwnedFd};

use crate::sys;

/// Set the process attributes. Must be called before any thread starts. Returns a descriptor for the termination
/// signals.
pub(crate) fn settle(die_with_parent: bool) -> io::Result<OwnedFd> {
    const PR_SET_IO_FLUSHER: libc::c_int = 57;
    let signals = sys::signals(&[libc::SIGINT, libc::SIGTERM, libc::SIGHUP])?;
    if die_with_parent {
        sys::prctl(libc::PR_SET_PDEATHSIG, libc::SIGTERM.unsigned_abs().into())?;
    }
    // Memory reclaim must never wait for this process, because this process may wait for reclaim. This needs
    // CAP_SYS_RESOURCE, which containers often lack. Without it, only a machine that is out of memory is at risk.
    let _ = sys::prctl(PR_SET_IO_FLUSHER, 1);
    // A page of the disk must occupy a page of memory, not a huge page.
    sys::prctl(libc::PR_SET_THP_DISABLE, 1)?;
    sys::prctl(libc::PR_SET_TIMERSLACK, 1)?;
    Ok(signals)
}

/// Wait for the end. A lifeline is a descriptor that receives no data: it becomes readable when its other end is
/// closed.
pub(crate) fn wait_for_end(signals: &OwnedFd, shutdown: &OwnedFd, lifeline: Option<i32>) -> io::Result<()> {
    // SAFETY: the caller passed ownership of the descriptor. If it is closed, poll(2) reports that and the server ends.
    let lifeline = lifeline.map(|fd| unsafe { OwnedFd::from_raw_fd(fd) });
    let third: BorrowedFd<'_> = lifeline.as_ref().map_or(shutdown.as_fd(), AsFd::as_fd);
    while !sys::wait([signals.as_fd(), shutdown.as_fd(), third], None)?.contains(&true) {}
    Ok(())
}
