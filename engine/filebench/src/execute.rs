//! Execution of the steps of a workload, in order.

use std::path::PathBuf;
use std::sync::{Arc, PoisonError};

use super::fileset::{Created, Fileset, Planned, WORK_DIRECTORY, plan, remove_tree};
use super::program::{FilesetSpec, Model, Program, Step, Timing};
use super::report::{Measured, Report, Result as RunResult};
use super::runtime::{Events, Running, Start, pause};
use super::schedule::{Due, Schedule};
use fslab_engine::document::Warning;
use fslab_engine::error::{Context, Error, Result};
use fslab_engine::measure::clock::{now_ns, seconds};
use fslab_engine::measure::cpu::CpuTime;
use fslab_engine::room::{self, Need, Watch};
use fslab_engine::{stop, sys};

/// Maximum interval in nanoseconds between two checks of the free memory while files grow.
const WATCH_NS: u64 = 50_000_000;

/// A callback that receives each message of the workload while it runs.
pub type Listener<'a> = &'a dyn Fn(&str);

/// The state of a running workload.
pub(crate) struct Execution<'a> {
    program: &'a Program,
    directory: PathBuf,
    seed: u64,
    syncfs: bool,
    listener: Listener<'a>,
    events: Arc<Events>,
    filesets: Arc<Vec<Fileset>>,
    running: Option<Running>,
    watch: Option<Watch>,
    cleared: u64,
    /// CPU time of the process when the threads started.
    cpu_started: CpuTime,
    /// CPU time between the start of the threads and the last reset of the statistics: it belongs to no result.
    cpu_cleared: CpuTime,
    /// Whether a `sleep`, `warmup` or `system` was executed since the threads started or the statistics were reset.
    /// What the threads did in that time does not belong to a run.
    worked: bool,
    pub(crate) report: Report,
}

impl<'a> Execution<'a> {
    pub(crate) fn new(
        program: &'a Program,
        directory: PathBuf,
        seed: u64,
        syncfs: bool,
        listener: Listener<'a>,
    ) -> Self {
        Self {
            program,
            directory,
            seed,
            syncfs,
            listener,
            events: Arc::default(),
            filesets: Arc::default(),
            running: None,
            watch: None,
            cleared: 0,
            cpu_started: CpuTime::default(),
            cpu_cleared: CpuTime::default(),
            worked: false,
            report: Report::default(),
        }
    }

    /// Execute all steps or, with `create_only`, those up to the first creation of files. End all threads, also after
    /// an error.
    pub(crate) fn run(&mut self, create_only: bool) -> Result<()> {
        let steps = &self.program.steps;
        let files = steps.iter().position(|step| matches!(step, Step::CreateFiles(_)));
        let last = if create_only { files.map_or(0, |position| position + 1) } else { steps.len() };
        let done = steps[..last].iter().try_for_each(|step| stop::check().and_then(|()| self.step(step)));
        let ended = self.end_threads();
        // Report the error of a thread rather than the cancellation that it caused.
        match (done, ended) {
            (Err(Error::Cancelled) | Ok(()), Err(error)) | (Err(error), _) => Err(error),
            (Ok(()), Ok(())) => Ok(()),
        }
    }

    fn step(&mut self, step: &Step) -> Result<()> {
        match step {
            Step::Say(text) => self.say(text.clone()),
            Step::Sleep(length) => {
                self.worked = true;
                self.sleep(*length)?;
            }
            Step::System(command) => {
                self.worked = true;
                self.system(command)?;
            }
            Step::CreateFiles(specs) => self.create_files(specs)?,
            Step::CreateProcesses(model) => self.create_processes(model)?,
            Step::Run(timing) => self.measure(*timing)?,
            Step::Clear => self.clear(),
            Step::Snapshot(name) => self.snapshot(name.clone()),
            Step::Rate(rate) => self.events.set_rate(*rate),
            Step::ShutdownProcesses => {
                self.end_threads()?;
            }
            Step::ShutdownFiles => {
                self.end_threads()?;
                self.filesets = Arc::default();
                let base = sys::open_root(&self.directory).context("open", || &self.directory)?;
                remove_tree(&base, &self.directory, std::path::Path::new(""))?;
            }
        }
        Ok(())
    }

    fn say(&mut self, text: String) {
        (self.listener)(&text);
        self.report.messages.push(text);
    }

    fn warn(&mut self, kind: &'static str, message: String) {
        let warning = Warning { kind, message };
        if !self.report.warnings.contains(&warning) {
            self.report.warnings.push(warning);
        }
    }

    /// Wait for `length` seconds or until the threads have ended. Return an error after a signal or if files in memory
    /// leave too little free memory.
    fn sleep(&mut self, length: f64) -> Result<()> {
        let done = || self.running.as_ref().is_some_and(Running::is_done);
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a cast saturates")]
        let end = now_ns().saturating_add((length * 1e9) as u64);
        while now_ns() < end && !done() {
            pause((end - now_ns().min(end)).min(WATCH_NS), || stop::requested().is_some() || done());
            stop::check()?;
            self.watch.as_ref().map_or(Ok(()), Watch::check)?;
        }
        stop::check()
    }

    fn system(&mut self, command: &str) -> Result<()> {
        let output =
            std::process::Command::new("sh").args(["-c", command]).current_dir(&self.directory).output();
        let output = output.map_err(|error| Error::Invalid(format!("cannot run '{command}': {error}")))?;
        let text = String::from_utf8_lossy(&output.stdout).trim_end().to_owned();
        if !text.is_empty() {
            self.say(text);
        }
        if !output.status.success() {
            let said = String::from_utf8_lossy(&output.stderr).trim_end().to_owned();
            self.warn("system_failed", format!("'{command}' failed ({}): {said}", output.status));
        }
        stop::check()
    }

    fn create_files(&mut self, specs: &[FilesetSpec]) -> Result<()> {
        self.end_threads()?;
        self.filesets = Arc::default();
        let descriptors = sys::descriptor_limit() / 2 / specs.len().max(1);
        let base = sys::open_root(&self.directory).context("open", || &self.directory)?;
        let plan = |spec| plan(spec, &self.directory, &self.program.distributions);
        let planned: Vec<Planned<'_>> = specs.iter().map(plan).collect::<Result<_>>().map_err(interrupted)?;
        let mut need = Need { memory: self.program.memory_of_threads(), ..Need::default() };
        for one in &planned {
            one.need(&mut need);
        }
        room::check(&base, &self.directory, &need)?;
        let (mut filesets, mut created): (Vec<Fileset>, Vec<Created>) = (Vec::new(), Vec::new());
        for one in planned {
            stop::check()?;
            let made = Fileset::create(one, &self.directory, descriptors);
            let (fileset, about) = made.map_err(interrupted)?;
            filesets.push(fileset);
            created.push(about);
        }
        // Write the new files back now, so that this does not happen during the measurement.
        rustix::fs::syncfs(&base).context("sync", || &self.directory)?;
        self.watch = Watch::of(&base, &self.directory)?;
        self.filesets = Arc::new(filesets);
        self.report.created = created;
        Ok(())
    }

    fn create_processes(&mut self, model: &Arc<Model>) -> Result<()> {
        self.end_threads()?;
        self.report.threads = model.instances();
        let running = Running::start(Start {
            model: Arc::clone(model),
            filesets: Arc::clone(&self.filesets),
            distributions: Arc::clone(&self.program.distributions),
            events: Arc::clone(&self.events),
            seed: self.seed,
        })?;
        if let Some(share) = running.memory_share() {
            let percent = share * 100.0;
            self.warn(
                "memory_reduced",
                format!("threads get only {percent:.0} % of the memory that the workload asks for"),
            );
        }
        (self.cleared, self.worked) = (running.started, false);
        (self.cpu_started, self.cpu_cleared) = (CpuTime::of_this_process(), CpuTime::default());
        self.running = Some(running);
        Ok(())
    }

    fn clear(&mut self) {
        if let Some(running) = &self.running {
            running.shared.statistics.clear();
            (self.cleared, self.worked) = (now_ns(), false);
            self.cpu_cleared = CpuTime::of_this_process() - self.cpu_started;
        }
    }

    fn snapshot(&mut self, name: Option<String>) {
        if let Some(running) = &self.running {
            let lasted = seconds(now_ns() - self.cleared);
            let measured = Measured::new(&running.shared, lasted);
            self.report.periods.push((name, measured));
        }
    }

    /// Let the threads work until the run time is over or they have ended. Add the measurements to the results.
    fn measure(&mut self, timing: Timing) -> Result<()> {
        // Discard what the threads did between an earlier `create processes` and this run. Threads that were started
        // for this run are not reset: they may have done much, or even all, before this thread runs again.
        if self.worked {
            self.clear();
        }
        let begin = if self.running.is_some() { self.cleared } else { now_ns() };
        let mut schedule = Schedule::new(timing);
        let in_time = loop {
            if self.running.as_ref().is_none_or(Running::is_done) {
                break schedule.has_time(seconds(now_ns() - begin));
            }
            match schedule.at(seconds(now_ns() - begin)) {
                Due::End => break false,
                Due::Period => {
                    self.snapshot(None);
                    if timing.fresh {
                        self.clear();
                    }
                }
                Due::In(wait) => self.sleep(wait.min(0.05))?,
            }
        };
        self.conclude(if in_time { "done" } else { "time" })
    }

    fn conclude(&mut self, ended: &'static str) -> Result<()> {
        let Some(running) = self.running.take() else { return Ok(()) };
        let shared = Arc::clone(&running.shared);
        let worked = running.finish().map_err(interrupted)?;
        let finished: Vec<u64> = worked.iter().map(|one| one.finished.max(self.cleared)).collect();
        let last = finished.iter().copied().max().unwrap_or(self.cleared);
        let measured = Measured::new(&shared, seconds(last - self.cleared));
        let sync_seconds = if self.syncfs { Some(self.sync()?) } else { None };
        let lost = self.events.lost();
        if lost >= 1.0 && shared.model.is_limited() {
            let message = format!(
                "{lost:.0} events were lost: the threads were more than five seconds behind them; lower the rate"
            );
            self.warn("events_lost", message);
        }
        let mut ended = ended;
        if let Some(flowop) = shared.out_of_files.lock().unwrap_or_else(PoisonError::into_inner).take() {
            let message = format!(
                "the run ended early: there was no file for {flowop}; raise entries, lower the run time, or \
                 'set mode quit firstdone'"
            );
            self.warn("out_of_files", message);
            ended = "out_of_files";
        }
        if shared.not_direct.load(std::sync::atomic::Ordering::Relaxed) {
            let message = "the file system does not support O_DIRECT: the page cache was used".to_owned();
            self.warn("not_direct", message);
        }
        if let Some(attribute) = shared.no_effect.get() {
            let message = format!(
                "{attribute} had no effect: another flowop had opened the file without it; give it to the flowop that \
                 opens the file"
            );
            self.warn("no_effect", message);
        }
        let said = std::mem::take(&mut *shared.messages.lock().unwrap_or_else(PoisonError::into_inner));
        for text in said {
            self.say(text);
        }
        let first = finished.iter().copied().min().unwrap_or(last);
        let cpu = worked.iter().fold(CpuTime::default(), |sum, one| sum + one.cpu) - self.cpu_cleared;
        let first_seconds = seconds(first - self.cleared);
        let began_seconds = seconds(self.cleared);
        self.report.results.push(RunResult {
            measured,
            began_seconds,
            ended,
            first_seconds,
            sync_seconds,
            cpu,
        });
        Ok(())
    }

    fn sync(&self) -> Result<f64> {
        let start = now_ns();
        let base = sys::open_root(&self.directory).context("open", || &self.directory)?;
        rustix::fs::syncfs(&base).context("sync", || self.directory.join(WORK_DIRECTORY))?;
        Ok(seconds(now_ns() - start))
    }

    /// End the threads that still work, without adding a result.
    fn end_threads(&mut self) -> Result<()> {
        match self.running.take() {
            Some(running) => running.finish().map(|_| ()).map_err(interrupted),
            None => Ok(()),
        }
    }
}

/// Replace an error by [`Error::Interrupted`] if a signal was received, because the signal may have interrupted a
/// system call.
fn interrupted(error: Error) -> Error {
    stop::requested().map_or(error, Error::Interrupted)
}
