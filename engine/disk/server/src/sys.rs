//! Safe wrappers for system calls that the standard library does not provide.

use std::ffi::{CString, c_int};
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

fn checked(result: c_int) -> io::Result<c_int> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result) }
}

fn c_string(path: &Path) -> io::Result<CString> {
    CString::new(path.as_os_str().as_bytes()).map_err(io::Error::other)
}

/// Open a path with these flags.
pub(crate) fn open(path: &Path, flags: c_int) -> io::Result<OwnedFd> {
    let path = c_string(path)?;
    // SAFETY: the path is a valid C string for the duration of the call.
    let fd = checked(unsafe { libc::open(path.as_ptr(), flags | libc::O_CLOEXEC) })?;
    // SAFETY: the descriptor is new, and no other code owns it.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// Mount a FUSE file system that is served through this descriptor.
pub(crate) fn mount_fuse(device: BorrowedFd<'_>, target: &Path) -> io::Result<()> {
    let options = format!(
        "fd={},rootmode=40000,user_id=0,group_id=0,allow_other,default_permissions",
        device.as_raw_fd()
    );
    let (source, kind) = (c"fslab-disk", c"fuse.fslab-disk");
    let (target, options) = (c_string(target)?, CString::new(options).map_err(io::Error::other)?);
    let flags = libc::MS_NOSUID | libc::MS_NODEV | libc::MS_NOEXEC | libc::MS_NOATIME;
    // SAFETY: all pointers are valid C strings for the duration of the call.
    checked(unsafe {
        libc::mount(source.as_ptr(), target.as_ptr(), kind.as_ptr(), flags, options.as_ptr().cast())
    })?;
    Ok(())
}

/// Unmount a file system. With `MNT_FORCE` the kernel first aborts a FUSE connection.
pub(crate) fn unmount(target: &Path, flags: c_int) -> io::Result<()> {
    let target = c_string(target)?;
    // SAFETY: the path is a valid C string for the duration of the call.
    checked(unsafe { libc::umount2(target.as_ptr(), flags) })?;
    Ok(())
}

/// Return another descriptor of the same FUSE connection, with its own queue.
pub(crate) fn clone_fuse(device: BorrowedFd<'_>) -> io::Result<OwnedFd> {
    const FUSE_DEV_IOC_CLONE: libc::Ioctl = 0x8004_e500;
    let fd = open(Path::new("/dev/fuse"), libc::O_RDWR)?;
    let source: u32 = device.as_raw_fd().try_into().map_err(io::Error::other)?;
    // SAFETY: the request reads one u32, which outlives the call.
    checked(unsafe { libc::ioctl(fd.as_raw_fd(), FUSE_DEV_IOC_CLONE, &raw const source) })?;
    Ok(fd)
}

/// Read into a buffer.
pub(crate) fn read(fd: BorrowedFd<'_>, buffer: &mut [u8]) -> io::Result<usize> {
    // SAFETY: the buffer is valid for its whole length.
    let count = unsafe { libc::read(fd.as_raw_fd(), buffer.as_mut_ptr().cast(), buffer.len()) };
    usize::try_from(count).map_err(|_| io::Error::last_os_error())
}

/// Write two parts in one call.
pub(crate) fn write_two(fd: BorrowedFd<'_>, first: &[u8], second: &[u8]) -> io::Result<()> {
    let part =
        |bytes: &[u8]| libc::iovec { iov_base: bytes.as_ptr().cast_mut().cast(), iov_len: bytes.len() };
    let parts = [part(first), part(second)];
    // SAFETY: both parts are valid for their lengths; the kernel only reads them.
    let count =
        unsafe { libc::writev(fd.as_raw_fd(), parts.as_ptr(), if second.is_empty() { 1 } else { 2 }) };
    usize::try_from(count).map_err(|_| io::Error::last_os_error()).map(|_| ())
}

/// Make reads return at once if there is no data.
pub(crate) fn set_nonblocking(fd: BorrowedFd<'_>) -> io::Result<()> {
    // SAFETY: sets a flag of a descriptor that is open.
    checked(unsafe { libc::fcntl(fd.as_raw_fd(), libc::F_SETFL, libc::O_NONBLOCK) })?;
    Ok(())
}

/// Wait until a descriptor is readable or the time has passed; `None` waits without limit. Returns which are readable.
pub(crate) fn wait<const N: usize>(
    fds: [BorrowedFd<'_>; N],
    nanoseconds: Option<u64>,
) -> io::Result<[bool; N]> {
    let mut polled = fds.map(|fd| libc::pollfd { fd: fd.as_raw_fd(), events: libc::POLLIN, revents: 0 });
    let time = nanoseconds.map(|time| libc::timespec {
        tv_sec: i64::try_from(time / 1_000_000_000).unwrap_or(i64::MAX),
        tv_nsec: i64::try_from(time % 1_000_000_000).unwrap_or(0),
    });
    let time = time.as_ref().map_or(std::ptr::null(), std::ptr::from_ref);
    // SAFETY: the array and the time are valid for the duration of the call; no signal mask is given.
    let result = unsafe { libc::ppoll(polled.as_mut_ptr(), N as libc::nfds_t, time, std::ptr::null()) };
    match checked(result) {
        Err(error) if error.kind() != io::ErrorKind::Interrupted => Err(error),
        _ => Ok(polled.map(|one| one.revents != 0)),
    }
}

/// Return how many bytes are free on the file system of an open file, and its size.
pub(crate) fn free_bytes(file: &impl AsRawFd) -> io::Result<(u64, u64)> {
    // SAFETY: `statvfs` consists of integers, for which zero is valid.
    let mut found: libc::statvfs = unsafe { std::mem::zeroed() };
    // SAFETY: the result is valid for the duration of the call.
    checked(unsafe { libc::fstatvfs(file.as_raw_fd(), &raw mut found) })?;
    Ok((found.f_bavail * found.f_frsize, found.f_blocks * found.f_frsize))
}

/// Create an event counter, which becomes readable (eventfd(2)).
pub(crate) fn event() -> io::Result<OwnedFd> {
    // SAFETY: creates a new descriptor.
    let fd = checked(unsafe { libc::eventfd(0, libc::EFD_CLOEXEC | libc::EFD_NONBLOCK) })?;
    // SAFETY: the descriptor is new, and no other code owns it.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// Add one to an event counter.
pub(crate) fn notify(event: &OwnedFd) -> io::Result<()> {
    let one = 1u64.to_ne_bytes();
    // SAFETY: the eight bytes are valid for the duration of the call.
    let count = unsafe { libc::write(event.as_raw_fd(), one.as_ptr().cast(), one.len()) };
    if count < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Return a descriptor that becomes readable when one of these signals arrives. The signals are blocked in this thread
/// and in threads that it starts later.
pub(crate) fn signals(numbers: &[c_int]) -> io::Result<OwnedFd> {
    // SAFETY: a zeroed set is valid. The functions for signal sets then fill it.
    let fd = unsafe {
        let mut set: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&raw mut set);
        for number in numbers {
            libc::sigaddset(&raw mut set, *number);
        }
        libc::pthread_sigmask(libc::SIG_BLOCK, &raw const set, std::ptr::null_mut());
        checked(libc::signalfd(-1, &raw const set, libc::SFD_CLOEXEC))?
    };
    // SAFETY: the descriptor is new, and no other code owns it.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// Call `prctl` with one argument.
pub(crate) fn prctl(option: c_int, argument: libc::c_ulong) -> io::Result<()> {
    // SAFETY: the options used here take plain numbers.
    checked(unsafe { libc::prctl(option, argument, 0, 0, 0) })?;
    Ok(())
}

/// Read 4 KiB at an offset with direct I/O into an aligned buffer. The data is discarded.
pub(crate) fn read_page(fd: BorrowedFd<'_>, offset: i64) -> io::Result<()> {
    #[repr(align(4096))]
    struct Page([u8; 4096]);
    let mut page = Page([0; 4096]);
    // SAFETY: the buffer is valid for 4096 bytes.
    let count = unsafe { libc::pread(fd.as_raw_fd(), page.0.as_mut_ptr().cast(), 4096, offset) };
    if count < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Give this thread real-time priority over all normal threads. It sleeps until its deadlines and then has little to
/// do. Returns false if this is not permitted.
pub(crate) fn realtime() -> bool {
    let parameter = libc::sched_param { sched_priority: 1 };
    // SAFETY: the parameter is valid for the duration of the call; 0 is this thread.
    unsafe { libc::sched_setscheduler(0, libc::SCHED_FIFO, &raw const parameter) == 0 }
}
