//! `fslab-accounted FD PROGRAM …`: run a program as the child of this small process, and write what it used to
//! the descriptor FD. For fslab only, which is not small: `ru_maxrss` of a process includes the memory of the process
//! that it was forked from (exec keeps the maximum: `setmax_mm_hiwater_rss` in Linux's fs/exec.c).
//!
//! Daemons that the program starts become children of this process, which waits for those that end before the program:
//! their time belongs to the program, and to no other process of the machine.
//!
//! One line is written: `STATUS DURATION_NS USER_US SYSTEM_US MAXRSS_KIB VOLUNTARY INVOLUNTARY`, with the status of
//! wait(2), or `errno NUMBER` if the program cannot be started. Only the first two if the program, or a daemon of it that
//! ended, ignored SIGCHLD: the kernel then reaped its children, and counts nothing of them (wait(2), NOTES).

use std::ffi::OsString;
use std::io::Write;
use std::os::fd::{FromRawFd, RawFd};
use std::process::{Command, ExitCode};
use std::time::Instant;

extern "C" fn ignore(_signal: libc::c_int) {}

fn main() -> ExitCode {
    match accounted(std::env::args_os().skip(1)) {
        Some(true) => ExitCode::SUCCESS,
        Some(false) => ExitCode::FAILURE,
        None => ExitCode::from(2),
    }
}

/// Run the program of a command line. Return whether its report could be written; None if the line is not valid.
fn accounted(mut arguments: impl Iterator<Item = OsString>) -> Option<bool> {
    let report: RawFd = arguments.next()?.to_str()?.parse().ok()?;
    let mut command = Command::new(arguments.next()?);
    command.args(arguments);
    stay_until_the_end(report);
    let line = match run(&mut command) {
        Ok(line) => line,
        Err(error) => format!("errno {}", error.raw_os_error().unwrap_or(libc::EINVAL)),
    };
    // SAFETY: fslab made the descriptor for this process, and nothing else here uses it.
    let mut file = unsafe { std::fs::File::from_raw_fd(report) };
    Some(file.write_all(line.as_bytes()).is_ok())
}

/// Do not end before the program does when its process group gets a signal, and hide the report from the program.
/// Handlers, not `SIG_IGN`: exec resets them, so that the program starts with the defaults.
fn stay_until_the_end(report: RawFd) {
    for signal in [libc::SIGTERM, libc::SIGINT, libc::SIGHUP, libc::SIGQUIT] {
        // SAFETY: the handler does nothing, which is async-signal-safe.
        unsafe { libc::signal(signal, ignore as extern "C" fn(libc::c_int) as libc::sighandler_t) };
    }
    // SAFETY: fcntl(2) accesses no memory.
    unsafe { libc::fcntl(report, libc::F_SETFD, libc::FD_CLOEXEC) };
}

fn run(command: &mut Command) -> std::io::Result<String> {
    // SAFETY: this prctl(2) accesses no memory. A kernel that refuses it gives orphans to init.
    unsafe { libc::prctl(libc::PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) };
    let start = Instant::now();
    let pid = libc::pid_t::try_from(command.spawn()?.id()).map_err(std::io::Error::other)?;
    // The program works on the file system under test, and may unmount it: this process must not keep it busy. If that
    // fails, unmounting fails and says so.
    let _ = std::env::set_current_dir("/");
    let mut counted = true;
    let (status, duration_ns) = loop {
        let ended = next_zombie()?;
        let duration_ns = start.elapsed().as_nanos();
        counted &= !ignores_sigchld(ended);
        let mut status = 0;
        // SAFETY: the pointer is valid for the call.
        unsafe { libc::waitpid(ended, &raw mut status, 0) };
        if ended == pid {
            break (status, duration_ns);
        }
    };
    if !counted {
        return Ok(format!("{status} {duration_ns}"));
    }
    // SAFETY: an all-zero rusage is valid.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    // SAFETY: the pointer is valid for the call.
    unsafe { libc::getrusage(libc::RUSAGE_CHILDREN, &raw mut usage) };
    let us = |time: libc::timeval| time.tv_sec * 1_000_000 + time.tv_usec;
    let (user, system) = (us(usage.ru_utime), us(usage.ru_stime));
    let switches = format!("{} {}", usage.ru_nvcsw, usage.ru_nivcsw);
    Ok(format!("{status} {duration_ns} {user} {system} {} {switches}", usage.ru_maxrss))
}

/// Wait until a child has ended, and leave it as it is.
fn next_zombie() -> std::io::Result<libc::pid_t> {
    loop {
        // SAFETY: an all-zero siginfo_t is valid.
        let mut ended: libc::siginfo_t = unsafe { std::mem::zeroed() };
        // SAFETY: the pointer is valid for the call.
        if unsafe { libc::waitid(libc::P_ALL, 0, &raw mut ended, libc::WEXITED | libc::WNOWAIT) } == 0 {
            // SAFETY: waitid(2) sets this field for every child.
            return Ok(unsafe { ended.si_pid() });
        }
        let error = std::io::Error::last_os_error();
        if error.kind() != std::io::ErrorKind::Interrupted {
            return Err(error);
        }
    }
}

/// Return whether a process ignores SIGCHLD (`proc_pid_stat(5)`, field 33); true if that is not known.
fn ignores_sigchld(pid: libc::pid_t) -> bool {
    let stat = std::fs::read(format!("/proc/{pid}/stat")).unwrap_or_default();
    let stat = String::from_utf8_lossy(&stat);
    let ignored =
        stat.rsplit(')').next().and_then(|fields| fields.split_whitespace().nth(30)?.parse::<u64>().ok());
    ignored.is_none_or(|signals| signals & (1 << (libc::SIGCHLD - 1)) != 0)
}
