//! The control socket. Each request and each answer is a JSON object on one line. `engine/disk/PROTOCOL.md` describes
//! them.

use std::fs::{self, File};
use std::io::{BufReader, Write};
use std::os::unix::fs::FileExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use anyhow::{Context, bail};
use fslab_disk_model::fault::{Effect, Rule};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::core::Core;
use crate::device::Device;
use crate::gate::Cut;
use crate::guest::Guest;
use crate::kept::{Kept, copy_pages};
use crate::recorder::Recorder;
use crate::timed::Waiting;
use crate::{calibrate, direct, lines, sys};

/// Maximum number of connections. Each has a thread, so that an idle client does not block the others.
const ASKERS: usize = 64;

/// A request on the socket.
#[derive(Debug, Deserialize)]
#[serde(tag = "do", rename_all = "snake_case")]
enum Verb {
    Statistics,
    Phase {
        name: String,
    },
    Mark {
        name: String,
    },
    Cut(Cut),
    PowerOn,
    Arm(Rule),
    Disarm {
        id: Option<u64>,
    },
    Slow {
        factor: f64,
    },
    Snapshot {
        path: PathBuf,
    },
    Calibrate {
        path: PathBuf,
        ahead_ns: Option<u64>,
    },
    Reset {
        #[serde(default)]
        data: bool,
    },
    Keep {
        name: String,
    },
    Restore {
        name: String,
    },
    Forget {
        name: String,
    },
    Clear {
        #[serde(default)]
        unlogged: bool,
    },
    Pace {
        real: bool,
    },
    Halt {
        halted: bool,
    },
    Offer {
        socket: PathBuf,
        serial: String,
    },
    Sync,
    Shutdown,
}

const NO_LOG: &str = "this server keeps no log: start it with --log FILE";

/// The state on which requests act.
pub(crate) struct Control {
    pub(crate) device: Arc<Device>,
    pub(crate) waiting: Waiting,
    pub(crate) fastest: Option<u64>,
    pub(crate) kept: Mutex<Kept>,
    pub(crate) memory_limit: u64,
    pub(crate) shutdown: std::os::fd::OwnedFd,
}

impl Control {
    /// Accept and serve connections. Never returns.
    pub(crate) fn serve(self: &Arc<Self>, listener: &UnixListener) {
        for stream in listener.incoming() {
            let Ok(stream) = stream else {
                thread::sleep(Duration::from_millis(100)); // no file descriptor is free
                continue;
            };
            if Arc::strong_count(self) > ASKERS {
                let _ = writeln!(&stream, "{}", json!({"ok": false, "error": "too many connections"}));
                continue;
            }
            let control = Arc::clone(self);
            let begun = thread::Builder::new().spawn(move || {
                let _ = control.converse(&stream); // an error means that the client hung up
            });
            drop(begun); // without a thread, the connection is closed
        }
    }

    fn converse(&self, stream: &UnixStream) -> std::io::Result<()> {
        let mut writer = stream;
        for line in lines::bounded(BufReader::new(stream)) {
            let verb = serde_json::from_slice(&line?).context("this line is no request");
            let ends = matches!(verb, Ok(Verb::Shutdown));
            let answer = verb.and_then(|verb| self.answer(verb));
            let mut answer = answer.unwrap_or_else(|error| json!({"error": format!("{error:#}")}));
            answer["ok"] = answer.get("error").is_none().into();
            let written = writeln!(writer, "{answer}");
            if ends {
                sys::notify(&self.shutdown)?; // after the answer: the process may end at once
            }
            written?;
        }
        Ok(())
    }

    fn answer(&self, verb: Verb) -> anyhow::Result<Value> {
        let device = &*self.device;
        let answer = match verb {
            Verb::Statistics => self.statistics(),
            Verb::Phase { name } => {
                let mut core = device.core();
                core.phases.push(name);
                json!({"phase": core.phases.len() - 1})
            }
            Verb::Mark { name } => {
                let mut core = device.core();
                let now = core.clock.now();
                let recorder = core.recorder.as_mut().context(NO_LOG)?;
                json!({"mark": recorder.mark(name, now)?})
            }
            Verb::Cut(cut) => {
                let mut core = device.core();
                core.arm_cut(device, cut);
                json!({"cut": core.cut_report})
            }
            Verb::PowerOn => {
                let mut core = device.core();
                core.gate.powered = true;
                device.look_again(&core);
                json!({})
            }
            Verb::Arm(rule) => self.arm(rule)?,
            Verb::Disarm { id } => {
                let mut core = device.core();
                core.gate.faults.disarm(id);
                device.look_again(&core);
                json!({})
            }
            Verb::Slow { factor } if factor.is_finite() && factor > 0.0 => {
                device.core().clock.set_slow(factor);
                json!({})
            }
            Verb::Clear { unlogged } => {
                let mut core = device.core();
                core.clear(device).context("cannot empty the log")?;
                core.recorder.as_mut().filter(|_| unlogged).map(Recorder::stop);
                json!({})
            }
            Verb::Pace { real } => {
                device.core().paced = real;
                json!({})
            }
            Verb::Halt { halted } => {
                if !device.timed {
                    bail!("without deadlines there is no drive time to halt: start the server with --timed");
                }
                device.core().clock.halt(halted);
                json!({})
            }
            Verb::Slow { factor } => bail!("factor {factor} of 'slow' must be a number greater than 0"),
            Verb::Snapshot { path } => json!({"bytes": self.snapshot(&path)?}),
            Verb::Calibrate { path, ahead_ns } => self.calibrate(&path, ahead_ns)?,
            Verb::Reset { data } => self.reset(data)?,
            Verb::Keep { name } => json!({"bytes": self.keep(name)?}),
            Verb::Restore { name } => self.restore(&name)?,
            Verb::Forget { name } => {
                self.kept().forget(&name);
                json!({})
            }
            Verb::Offer { socket, serial } => {
                if !device.timed {
                    bail!("without deadlines no guest can be served: start the server with --timed");
                }
                Guest::offer(&self.device, &socket, &serial)
                    .with_context(|| format!("cannot offer the disk on {}", socket.display()))?;
                json!({})
            }
            Verb::Sync => {
                let mut core = device.core();
                let phases = core.phases.clone();
                core.recorder.as_mut().context(NO_LOG)?.sync(&phases)?;
                json!({})
            }
            Verb::Shutdown => json!({}),
        };
        sys::notify(&device.wake)?; // the serving thread may have a reply to send or a new deadline
        Ok(answer)
    }

    fn arm(&self, rule: Rule) -> anyhow::Result<Value> {
        if rule.effect == Effect::Stuck && !self.device.timed {
            bail!(direct::refuses_delay(rule.op));
        }
        if !(0.0..=1.0).contains(&rule.probability) {
            bail!("probability {} of a fault must be between 0 and 1", rule.probability);
        }
        if rule.effect == Effect::Latent && rule.probability < 1.0 {
            bail!("'latent' has no probability: all of its sectors fail until they are written");
        }
        let mut core = self.device.core();
        let id = core.gate.faults.arm(rule);
        self.device.look_again(&core);
        Ok(json!({"id": id}))
    }

    fn statistics(&self) -> Value {
        let device = &*self.device;
        let core = device.core();
        let faults: Vec<_> = core
            .gate
            .faults
            .rules()
            .iter()
            .map(|(id, rule)| json!({"id": id, "rule": rule, "struck": rule.struck}))
            .collect();
        json!({
            "powered": core.gate.powered,
            "time_ns": core.clock.now(),
            "rate": core.clock.rate(),
            "phase": core.phases.last(),
            "operations": device.counters.report(device.timed.then_some(&core.service)),
            "late_ns": crate::statistics::summary(&core.late),
            "stored_bytes": device.store.occupied(),
            "kept_bytes": self.kept().bytes(),
            "memory_limit_bytes": self.memory_limit,
            "no_space": device.counters.no_space.load(std::sync::atomic::Ordering::Relaxed),
            "unflushed_bytes": core.exposed(),
            "logging": core.recorder.as_ref().is_some_and(Recorder::is_whole),
            "model": core.drive.report(),
            "fidelity": core.fidelity,
            "realtime": core.realtime,
            "paced": core.paced,
            "halted": core.clock.is_halted(),
            "faults": faults,
            "cut": core.cut_report,
            "cut_armed": core.gate.cut.is_some(),
        })
    }

    fn snapshot(&self, path: &Path) -> anyhow::Result<u64> {
        let file = File::create_new(path).with_context(|| format!("cannot create {}", path.display()))?;
        let core = self.device.core(); // with a model, no request changes the contents meanwhile
        let (mut bytes, mut failed) = (0, file.set_len(self.device.size).err());
        self.device.store.each_page(&mut |offset, page| {
            bytes += page.len() as u64;
            failed = failed.take().or_else(|| file.write_all_at(page, offset).err());
        });
        drop(core);
        let Some(error) = failed else { return Ok(bytes) };
        let _ = fs::remove_file(path);
        Err(error).with_context(|| format!("cannot write {}", path.display()))
    }

    fn calibrate(&self, path: &Path, ahead: Option<u64>) -> anyhow::Result<Value> {
        if !self.device.timed {
            bail!("there is no model to calibrate: start the server with --profile");
        }
        let trip = calibrate::round_trip(&self.device, path, if ahead.is_some() { 1 } else { 5 })
            .with_context(|| format!("cannot read {} with direct I/O", path.display()))?;
        let mut core = self.device.core();
        core.ahead = ahead.unwrap_or(trip.low);
        core.fidelity = calibrate::verdict(self.waiting, Some(trip), core.ahead, self.fastest, path);
        Ok(core.fidelity.clone())
    }

    fn reset(&self, data: bool) -> anyhow::Result<Value> {
        let mut core = self.idle()?;
        self.renew(&mut core, data)?;
        Ok(json!({}))
    }

    fn renew(&self, core: &mut Core, data: bool) -> anyhow::Result<()> {
        core.reset(&self.device).context("cannot empty the log")?;
        if data && self.device.store.punch(0, self.device.size).is_err() {
            bail!("cannot empty the backing file");
        }
        Ok(())
    }

    fn keep(&self, name: String) -> anyhow::Result<u64> {
        let core = self.device.core(); // writes change the contents when they arrive, so these are consistent
        if core.drive.remembers() {
            bail!(
                "the speed of this drive depends on what was written before, so its contents are not its state"
            );
        }
        let Ok(bytes) = self.kept().keep(name, &self.device.store) else {
            bail!("kept contents may take as much memory as the disk's own, and this is full");
        };
        Ok(bytes)
    }

    fn restore(&self, name: &str) -> anyhow::Result<Value> {
        let (mut core, kept) = (self.idle()?, self.kept());
        let copy = kept.get(name).with_context(|| format!("nothing is kept as '{name}'"))?;
        self.renew(&mut core, true)?;
        if copy_pages(copy, &self.device.store).is_err() {
            bail!("cannot write the backing file");
        }
        Ok(json!({}))
    }

    /// Return the core if no request is in flight.
    fn idle(&self) -> anyhow::Result<MutexGuard<'_, Core>> {
        let core = self.device.core();
        if core.busy() {
            bail!("requests are in flight: unmount the file system first");
        }
        Ok(core)
    }

    /// Return the kept contents. The core must be locked before them, if both are.
    fn kept(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
