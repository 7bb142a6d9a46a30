//! The life cycle of a server: prepare the process, mount, measure, report readiness, serve, clean up.

use std::fs::DirBuilder;
use std::io::Write;
use std::os::fd::OwnedFd;
use std::os::unix::fs::DirBuilderExt;
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::{fs, io, thread};

use anyhow::{Context, bail};
use fslab_disk_model::SECTOR;
use fslab_disk_model::array::Array;
use fslab_disk_model::drive::Cache;
use fslab_disk_model::log;
use fslab_disk_model::log::LARGEST_DISK;
use fslab_disk_model::profile::{self, Built, Setup};
use fslab_disk_model::store::Store;
use fslab_engine::plain;
use rustix::fs::Mode;
use serde_json::{Value, json};

use crate::clock::Clock;
use crate::control::Control;
use crate::core::Core;
use crate::device::Device;
use crate::fuse::Connection;
use crate::kept::Kept;
use crate::options::Serve;
use crate::recorder::Recorder;
use crate::timed::{self, Waiting};
use crate::{calibrate, clean, direct, life, sys};

/// Serve until the end.
pub(crate) fn serve(options: &Serve) -> anyhow::Result<()> {
    check(options)?;
    // Whoever can connect to a socket of the server can change the disk, and its log contains data.
    rustix::process::umask(Mode::from_bits_truncate(0o077));
    let signals = life::settle(options.die_with_parent).context("cannot prepare the process")?;
    let (device, fastest) = device(options)?; // first: if memory is short, nothing is left behind
    let made = make_directory(&options.directory)?;
    let outcome = mounted(options, &signals, device, fastest);
    if made {
        let _ = fs::remove_dir(&options.directory);
    }
    outcome
}

fn check(options: &Serve) -> anyhow::Result<()> {
    if options.size == 0 || options.size % 4096 != 0 || options.size > LARGEST_DISK {
        bail!("size {} must be a multiple of 4096 bytes, at most 1 PiB", options.size);
    }
    let drives = u64::from(options.drives);
    if options.chunk == 0 || options.chunk % 4096 != 0 {
        bail!("chunk {} must be a multiple of 4096 bytes", options.chunk);
    }
    if drives > 1 && options.size / drives % options.chunk + options.size % drives > 0 {
        bail!("size {} must be {drives} times a multiple of the chunk {}", options.size, options.chunk);
    }
    let each = options.size / drives;
    if let Some(why) = options.profile.as_ref().and_then(|name| profile::refuses(name, each)) {
        bail!(why);
    }
    if !(options.speed.is_finite() && options.speed > 0.0) {
        bail!("speed {} must be greater than 0", options.speed);
    }
    Ok(())
}

fn make_directory(directory: &Path) -> anyhow::Result<bool> {
    match DirBuilder::new().mode(0o700).create(directory) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(false),
        Err(error) => Err(error).with_context(|| format!("cannot create {}", directory.display())),
    }
}

/// Create the disk. Returns also the shortest time of a request in real nanoseconds, if there is a model.
fn device(options: &Serve) -> anyhow::Result<(Device, Option<u64>)> {
    let built = build(options)?;
    let store = Store::new(options.memory.unwrap_or(options.size));
    let header = log::header(options.size, options.seed, built.cache != Cache::Volatile);
    let recorder = match &options.log {
        Some(path) => Some(
            Recorder::create(path, header, options.log_data, options.log_limit, options.size)
                .with_context(|| format!("cannot create the log {}", path.display()))?,
        ),
        None => None,
    };
    let timed = options.timed
        || options.unmounted
        || recorder.is_some()
        || built.fastest.is_some()
        || built.cache == Cache::Volatile;
    let core = Core::new(built.drive, Clock::new(options.speed), options.seed, recorder);
    let device = Device::new(options.size, store, core, sys::event()?, timed);
    Ok((device, built.fastest.map(|fastest| Clock::new(options.speed).real(fastest))))
}

/// Build the drive, or several that are striped into one.
fn build(options: &Serve) -> anyhow::Result<Built> {
    let drives = u64::from(options.drives);
    let mut first = build_one(options, 0)?;
    if drives > 1 {
        let (cache, fastest, mut members) = (first.cache, first.fastest, vec![first.drive]);
        for number in 1..drives {
            members.push(build_one(options, number)?.drive);
        }
        first = Built { drive: Box::new(Array::new(members, options.chunk / SECTOR)), cache, fastest };
    }
    Ok(first)
}

fn build_one(options: &Serve, number: u64) -> anyhow::Result<Built> {
    let setup = Setup {
        bytes: options.size / u64::from(options.drives),
        cache: options.cache.map(Cache::from),
        cache_bytes: options.cache_bytes,
        seed: options.seed + number,
        steady: options.steady,
    };
    profile::build(options.profile.as_deref(), &setup).with_context(|| {
        let known: Vec<_> = profile::names().collect();
        format!(
            "unknown profile '{}'; known: {}",
            options.profile.as_deref().unwrap_or_default(),
            known.join(", ")
        )
    })
}

/// What the end of a server has to undo.
#[derive(Default)]
struct Started {
    mounted: bool,
    threads: Vec<JoinHandle<()>>,
}

fn mounted(options: &Serve, signals: &OwnedFd, device: Device, fastest: Option<u64>) -> anyhow::Result<()> {
    let device = Arc::new(device);
    let directory =
        fs::canonicalize(&options.directory).or_else(|_| std::path::absolute(&options.directory))?;
    // First: a path that is taken belongs to another process, and stays.
    let listener = UnixListener::bind(&options.control)
        .with_context(|| format!("cannot create the socket {}", options.control.display()))?;
    let mut started = Started::default();
    let outcome = run(options, signals, &device, fastest, &directory, listener, &mut started);
    let offered = device.guest.get().map(|guest| &guest.socket);
    for socket in [Some(&options.control), offered].into_iter().flatten() {
        let _ = fs::remove_file(socket);
    }
    device.ended.store(true, Ordering::Release);
    let _ = sys::notify(&device.wake);
    let aborted = if started.mounted { clean::abort(&directory) } else { Ok(()) };
    match aborted {
        Err(error) => {
            let place = directory.display().to_string();
            eprintln!("fslab-disk: cannot unmount {}: {error}", plain::text(&place)); // its threads end with the process
        }
        Ok(()) => {
            for thread in started.threads {
                let _ = thread.join();
            }
        }
    }
    let mut core = device.core();
    let phases = core.phases.clone();
    match core.recorder.as_mut().map(|recorder| recorder.sync(&phases)) {
        Some(Err(error)) => Err(error).context("cannot write the log"),
        _ => outcome,
    }
}

/// Mount, start the serving threads, report readiness, and wait for the end. The caller cleans up, also after an error.
fn run(
    options: &Serve,
    signals: &OwnedFd,
    device: &Arc<Device>,
    fastest: Option<u64>,
    directory: &Path,
    listener: UnixListener,
    started: &mut Started,
) -> anyhow::Result<()> {
    let shutdown = sys::event()?;
    let waiting = calibrate::waiting()?;
    let connection = if options.unmounted {
        None
    } else {
        let refused = || format!("cannot mount a FUSE file system on {}", directory.display());
        let connection = Connection::mount(directory).with_context(refused)?;
        started.mounted = true;
        connection.initialize(options.size).with_context(refused)?;
        Some(connection)
    };
    start(device, connection, waiting, options.threads, &shutdown, &mut started.threads)
        .context("cannot start the serving threads")?;
    ready(options, device, (waiting, fastest), directory, listener, &shutdown)?;
    Ok(life::wait_for_end(signals, &shutdown, options.lifeline)?)
}

/// Start the serving threads. The server ends when one of them ends.
fn start(
    device: &Arc<Device>,
    connection: Option<Connection>,
    waiting: Waiting,
    count: u8,
    shutdown: &OwnedFd,
    threads: &mut Vec<JoinHandle<()>>,
) -> io::Result<()> {
    let mut spawn = |work: Box<dyn FnOnce() -> io::Result<()> + Send>| {
        let shutdown = shutdown.try_clone()?;
        threads.push(thread::spawn(move || {
            if let Err(error) = work() {
                eprintln!("fslab-disk: cannot serve: {error}");
            }
            let _ = fs::File::from(shutdown).write_all(&1u64.to_ne_bytes());
        }));
        Ok(())
    };
    let device = Arc::clone(device);
    let connection = match connection {
        Some(connection) if !device.timed => connection,
        timed => return spawn(Box::new(move || timed::serve(&device, timed.as_ref(), waiting))),
    };
    for _ in 0..count {
        let (device, fd) = (Arc::clone(&device), connection.another()?);
        spawn(Box::new(move || direct::serve(&device, &fd)))?;
    }
    Ok(())
}

/// Measure the round trip, serve the control socket, and report on standard output that the disk is ready.
fn ready(
    options: &Serve,
    device: &Arc<Device>,
    (waiting, fastest): (Waiting, Option<u64>),
    directory: &Path,
    listener: UnixListener,
    shutdown: &OwnedFd,
) -> anyhow::Result<()> {
    let disk = directory.join("disk");
    let trip = if options.unmounted {
        None
    } else {
        Some(calibrate::round_trip(device, &disk, 3).context("cannot read the disk with direct I/O")?)
    };
    let ahead = trip.filter(|_| device.timed).map_or(0, |trip| trip.low);
    let fidelity = calibrate::verdict(waiting, trip, ahead, fastest, &disk);
    if options.strict && fidelity["verdict"] == "too-fast" {
        bail!("this machine is too slow to serve the model in real time: {fidelity}");
    }
    {
        let mut core = device.core();
        core.ahead = ahead;
        core.fidelity = fidelity.clone();
    }
    let control = Arc::new(Control {
        device: Arc::clone(device),
        waiting,
        fastest,
        kept: Mutex::new(Kept::new(options.memory.unwrap_or(options.size))),
        memory_limit: options.memory.unwrap_or(options.size),
        shutdown: shutdown.try_clone()?,
    });
    thread::spawn(move || control.serve(&listener)); // ends with the process
    announce(&disk, &options.control, device, &fidelity)
}

fn announce(disk: &Path, control: &Path, device: &Device, fidelity: &Value) -> anyhow::Result<()> {
    let line = json!({
        "ready": true,
        "protocol": 1,
        "disk": disk,
        "control": control,
        "size_bytes": device.size,
        "timed": device.timed,
        "pid": std::process::id(),
        "fidelity": fidelity,
    });
    let mut out = io::stdout().lock();
    writeln!(out, "{line}")?;
    out.flush()?;
    Ok(())
}
