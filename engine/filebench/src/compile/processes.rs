//! Compilation of processes and threads to a model: multiplies instances and binds targets to flowops.

use std::collections::HashMap;
use std::sync::Arc;

use super::evaluated::Scope;
use super::filesets::Reader;
use super::{Compiler, ProcessDefinition};
use crate::ast::{Attribute, ThreadDefinition};
use crate::diagnostic::{Span, nearest};
use crate::program::{FilesetSpec, Flowop, FlowopInfo, Kind, Model, Target, ThreadSpec};

/// Maximum number of threads: a safeguard, not a limit of the language.
const MOST_THREADS: f64 = 65_536.0;

/// The state of the compilation of a model, extended thread by thread.
pub(super) struct Building {
    pub(super) filesets: Arc<Vec<FilesetSpec>>,
    pub(super) infos: Vec<FlowopInfo>,
    /// Index in `infos` by name and kind.
    pub(super) numbers: HashMap<(String, Kind), usize>,
    pub(super) pending: Vec<Pending>,
    /// Index of the current thread, and its number of flowops so far.
    pub(super) thread: usize,
    pub(super) count: usize,
    /// Number of flowops of all threads so far.
    pub(super) total: usize,
}

/// A target that is bound after all threads are compiled.
pub(super) struct Pending {
    pub(super) from: Target,
    pub(super) kind: Kind,
    pub(super) wanted: String,
    pub(super) span: Span,
}

impl Compiler {
    /// Compile all processes defined so far. Returns `None` after an error, which is recorded.
    pub(super) fn model(&mut self, filesets: Arc<Vec<FilesetSpec>>) -> Option<Model> {
        let before = self.mistakes.found.len();
        let mut building = Building {
            filesets,
            infos: Vec::new(),
            numbers: HashMap::new(),
            pending: Vec::new(),
            thread: 0,
            count: 0,
            total: 0,
        };
        let mut threads = Vec::new();
        for process in self.processes.clone() {
            self.process(&process, &mut building, &mut threads);
        }
        let total: f64 = threads.iter().map(|thread| thread.instances as f64).sum();
        if total > MOST_THREADS {
            let span = self.processes.last().map(|process| process.span).unwrap_or_default();
            self.mistake(span, format!("{total} threads are too many"));
        } else if total == 0.0 && self.mistakes.found.len() == before {
            let span = self.processes.last().map(|process| process.span).unwrap_or_default();
            self.mistake(span, "there is no thread to run");
        }
        let needs_totals = self.bind_targets(&building, &mut threads);
        (self.mistakes.found.len() == before).then_some(Model {
            filesets: building.filesets,
            threads,
            flowops: building.infos,
            mode: self.mode,
            histogram: self.histogram,
            needs_totals,
        })
    }

    fn process(
        &mut self,
        process: &ProcessDefinition,
        building: &mut Building,
        threads: &mut Vec<ThreadSpec>,
    ) {
        let read = Reader { attributes: &process.attributes };
        let Some(name) = read.get("name").and_then(|name| self.text(name, &Scope::new())) else {
            return self.mistake(process.span, "a process needs a name");
        };
        let instances = self.whole(&read, "instances", 1.0);
        let nice = self.whole(&read, "nice", 0.0);
        for thread in &process.threads {
            building.thread = threads.len();
            building.count = 0;
            if let Some(mut spec) = self.thread(&name, thread, building) {
                spec.instances = spec.instances.saturating_mul(instances);
                spec.nice += i32::try_from(nice.min(19)).unwrap_or(0);
                threads.push(spec);
            }
        }
    }

    fn thread(
        &mut self,
        process: &str,
        thread: &ThreadDefinition,
        building: &mut Building,
    ) -> Option<ThreadSpec> {
        let read = Reader { attributes: &thread.attributes };
        let Some(name) = read.get("name").and_then(|name| self.text(name, &Scope::new())) else {
            self.mistake(thread.span, format!("a thread of the process '{process}' needs a name"));
            return None;
        };
        if thread.flowops.is_empty() {
            self.mistake(thread.span, format!("the thread '{name}' does nothing"));
        }
        let flowops: Vec<Flowop> = thread
            .flowops
            .iter()
            .filter_map(|flowop| self.flowop(flowop, "", &Scope::new(), building, 0))
            .collect();
        let io_priority = read.get("ioprio").map(|_| self.whole(&read, "ioprio", 8.0));
        Some(ThreadSpec {
            name: format!("{process}.{name}"),
            instances: self.whole(&read, "instances", 1.0),
            memory: self.whole(&read, "memsize", 0.0) as u64,
            nice: i32::try_from(self.whole(&read, "nice", 0.0).min(19)).unwrap_or(0),
            // 8, the default, means no I/O priority.
            io_priority: io_priority.and_then(|one| u32::try_from(one).ok()).filter(|one| *one < 8),
            flowops,
            count: building.count,
        })
    }

    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a cast saturates")]
    fn whole(&mut self, read: &Reader<'_>, name: &str, default: f64) -> usize {
        let Some(Attribute { value: Some(value), .. }) = read.find(name) else { return default as usize };
        self.fixed(value, name, 0.0, &Scope::new()).unwrap_or(default) as usize
    }

    /// Bind the targets. Returns whether a flowop needs the totals of all threads.
    fn bind_targets(&mut self, building: &Building, threads: &mut [ThreadSpec]) -> bool {
        let mut known: Vec<(Target, Kind, String)> = Vec::new();
        for (number, thread) in threads.iter().enumerate() {
            for_each(&thread.flowops, &mut |one| {
                let name = building.infos.get(one.info).map_or(String::new(), |info| info.name.clone());
                known.push((Target { thread: number, local: one.local }, one.kind, name));
            });
        }
        for pending in &building.pending {
            let found = self.targets_of(pending, &known);
            let Some(thread) = threads.get_mut(pending.from.thread) else { continue };
            change(&mut thread.flowops, pending.from.local, &mut |one| one.with.targets.clone_from(&found));
        }
        let mut needs = false;
        for thread in threads.iter() {
            for_each(&thread.flowops, &mut |one| {
                let asks = matches!(
                    one.kind,
                    Kind::IopsLimit
                        | Kind::OpsLimit
                        | Kind::BandwidthLimit
                        | Kind::FinishOnCount
                        | Kind::FinishOnBytes
                );
                needs |= asks && one.with.targets.is_empty();
            });
        }
        needs
    }

    fn targets_of(&mut self, pending: &Pending, known: &[(Target, Kind, String)]) -> Vec<Target> {
        let wanted = match pending.kind {
            Kind::SemPost => Some(Kind::SemBlock),
            Kind::Wakeup => Some(Kind::Block),
            _ => None,
        };
        let named = |name: &str| {
            name == pending.wanted || name.rsplit('.').next().is_some_and(|last| last == pending.wanted)
        };
        let fits = |(target, kind, name): &&(Target, Kind, String)| match wanted {
            // `sempost` and `wakeup` find targets in all threads, other flowops only in their own thread.
            Some(wanted) => *kind == wanted && named(name),
            None => target.thread == pending.from.thread && named(name),
        };
        let found: Vec<Target> = known.iter().filter(fits).map(|one| one.0).collect();
        if found.is_empty() {
            let candidates = known.iter().filter(|one| wanted.is_none_or(|wanted| one.1 == wanted));
            let near = nearest(&pending.wanted, candidates.map(|one| one.2.as_str()));
            let what = wanted.map_or("flowop of this thread", Kind::name);
            let message = format!("there is no {what} '{}'", pending.wanted);
            match near {
                Some(near) => {
                    self.mistake_with_hint(pending.span, message, format!("did you mean '{near}'?"));
                }
                None => self.mistake(pending.span, message),
            }
        }
        found
    }
}

/// Call `action` for each flowop, including those within composite flowops.
pub(super) fn for_each(flowops: &[Flowop], action: &mut impl FnMut(&Flowop)) {
    for flowop in flowops {
        action(flowop);
        for_each(&flowop.children, action);
    }
}

fn change(flowops: &mut [Flowop], local: usize, action: &mut impl FnMut(&mut Flowop)) {
    for flowop in flowops {
        if flowop.local == local {
            action(flowop);
        }
        change(&mut flowop.children, local, action);
    }
}
