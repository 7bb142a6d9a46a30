//! Handlers for SIGINT, SIGTERM and SIGHUP. The first signal requests a stop between two files; the second one ends the
//! process at once, with status 128 + signal.
//!
//! The crate signal-hook is not used: it needs its flag in an `Arc`, which every check between two files would have to
//! dereference.

use fslab_engine::stop;

extern "C" fn on_signal(signal: libc::c_int) {
    if stop::requested().is_some() {
        // SAFETY: `_exit` is async-signal-safe and does not return.
        unsafe { libc::_exit(128 + signal) }
    }
    stop::request(signal);
}

/// Install the handlers. Interrupted reads and writes are restarted (`SA_RESTART`). A signal that is ignored at the
/// start stays ignored, for nohup(1). SIGXFSZ is ignored, so that a write beyond `RLIMIT_FSIZE` fails with EFBIG.
pub(crate) fn install() {
    // SAFETY: SIG_IGN is a disposition, not a handler.
    unsafe { libc::signal(libc::SIGXFSZ, libc::SIG_IGN) };
    for signal in [libc::SIGINT, libc::SIGTERM, libc::SIGHUP] {
        // SAFETY: the action is zeroed, which is valid, then filled in; the handler only accesses an atomic or calls
        // `_exit`, and both are async-signal-safe.
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
