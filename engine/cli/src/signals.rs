//! SIGINT and SIGTERM ask the work to stop between two files; a second one ends the process at once.
//!
//! signal-hook wants its flags in an `Arc`, which every look between two files would have to go through.

use fslab_engine::stop;

extern "C" fn on_signal(signal: libc::c_int) {
    if stop::requested().is_some() {
        // SAFETY: `_exit` is async-signal-safe and does not return.
        unsafe { libc::_exit(128 + signal) }
    }
    stop::request(signal);
}

/// Installs the handlers. Reading and writing goes on under them (`SA_RESTART`). What is ignored stays ignored
/// (nohup(1)); a file beyond the size that a process may write (`RLIMIT_FSIZE`) is an error of the write.
pub(crate) fn install() {
    // SAFETY: SIG_IGN is a disposition, not a handler.
    unsafe { libc::signal(libc::SIGXFSZ, libc::SIG_IGN) };
    for signal in [libc::SIGINT, libc::SIGTERM, libc::SIGHUP] {
        // SAFETY: the action is zeroed, which is valid, then filled in; the handler only stores to an
        // atomic or calls `_exit`, both of which are async-signal-safe.
        unsafe {
            let mut action: libc::sigaction = std::mem::zeroed();
            libc::sigaction(signal, std::ptr::null(), &raw mut action);
            if action.sa_sigaction == libc::SIG_IGN {
                continue;
            }
            action = std::mem::zeroed();
            action.sa_sigaction = on_signal as extern "C" fn(libc::c_int) as libc::sighandler_t;
            action.sa_flags = libc::SA_RESTART;
            libc::sigaction(signal, &raw const action, std::ptr::null_mut());
        }
    }
}
