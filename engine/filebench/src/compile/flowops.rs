//! Compilation of flowops: converts attributes to arguments and expands composite flowops.

use super::Compiler;
use super::evaluated::Scope;
use super::filesets::Reader;
use super::processes::{Building, Pending};
use crate::ast::{At, Attribute, FlowopUse, Value};
use crate::diagnostic::nearest;
use crate::parse::unknown;
use crate::program::{Arguments, FLOWOPS, Flowop, FlowopInfo, Kind, Opening, Target};
use crate::random::Number;

/// Upper limit, exclusive, of the file descriptor numbers of a thread.
const MOST_DESCRIPTORS: f64 = 1024.0;
/// Maximum number of flowops of all threads, including those within composite flowops.
const MOST_FLOWOPS: usize = 20_000;

impl Compiler {
    pub(super) fn flowop(
        &mut self,
        used: &FlowopUse,
        around: &str,
        scope: &Scope,
        building: &mut Building,
        depth: usize,
    ) -> Option<Flowop> {
        let read = Reader { attributes: &used.attributes };
        let Some(name) = read.get("name").and_then(|name| self.text(name, scope)) else {
            self.mistake(used.kind.span, format!("this '{}' needs a name", used.kind.it));
            return None;
        };
        let name = if around.is_empty() { name } else { format!("{around}.{name}") };
        let composite = self.composites.iter().find(|one| one.name == used.kind.it).cloned();
        let kind = Kind::of(&used.kind.it.to_ascii_lowercase());
        let kind = match (&composite, kind) {
            (Some(_), _) => Kind::Composite,
            (None, Some(kind)) => kind,
            (None, None) => {
                let own = self.composites.iter().map(|one| one.name.as_str());
                let known: Vec<&str> = FLOWOPS.iter().copied().chain(own).collect();
                let diagnostic = unknown("flowop", &used.kind, &known);
                self.mistakes.push(diagnostic);
                return None;
            }
        };
        if building.total >= MOST_FLOWOPS {
            self.mistake(used.kind.span, format!("there are more than {MOST_FLOWOPS} flowops"));
            return None;
        }
        building.total += 1;
        let local = building.count;
        building.count += 1;
        // Composite flowops are not measured, only the flowops within them.
        let info = if composite.is_some() { usize::MAX } else { info_of(building, &name, kind) };
        let iters = self.iterations(&read, scope)?;
        let (children, with) = if let Some(definition) = composite {
            let children = self.composite(used, &definition, &name, scope, building, depth)?;
            (children, Arguments::none())
        } else {
            if let Some((local, _)) = used.locals.first() {
                self.mistake(local.span, format!("'{}' has no variables", used.kind.it));
            }
            (Vec::new(), self.arguments(used, kind, local, scope, building)?)
        };
        let label = format!("{name} (line {})", used.kind.span.line);
        Some(Flowop { kind, local, info, label, iters, children, with })
    }

    fn iterations(&mut self, read: &Reader<'_>, scope: &Scope) -> Option<Number> {
        let Some(value) = read.get("iters") else { return Some(Number::Fixed(1.0)) };
        self.number(value, scope)
    }

    fn arguments(
        &mut self,
        used: &FlowopUse,
        kind: Kind,
        local: usize,
        scope: &Scope,
        building: &mut Building,
    ) -> Option<Arguments> {
        let before = self.mistakes.found.len();
        let mut with = Arguments::none();
        for attribute in &used.attributes {
            match &attribute.value {
                Some(value) => self.argument(&mut with, attribute, value, kind, scope),
                None => self.flag_argument(&mut with, attribute),
            }
        }
        let read = Reader { attributes: &used.attributes };
        with.fileset = self.fileset_of(&read, scope, building);
        if let Some(target) = read.get("target") {
            if let Some(wanted) = self.text(target, scope) {
                let from = Target { thread: building.thread, local };
                building.pending.push(Pending { from, kind, wanted, span: target.span });
            }
        }
        self.check_arguments(used, kind, &read, &with);
        (self.mistakes.found.len() == before).then_some(with)
    }

    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "checked to be small")]
    fn argument(
        &mut self,
        with: &mut Arguments,
        attribute: &Attribute,
        value: &At<Value>,
        kind: Kind,
        scope: &Scope,
    ) {
        match attribute.name.it.as_str() {
            name @ ("fd" | "srcfd") => {
                let Some(number) = self.fixed(value, name, 0.0, scope) else { return };
                if number >= MOST_DESCRIPTORS {
                    return self.mistake(value.span, format!("{name} must be below {MOST_DESCRIPTORS}"));
                }
                if name == "fd" { with.fd = number as usize } else { with.source_fd = number as usize }
            }
            "iosize" => with.size = self.number(value, scope).unwrap_or(Number::Fixed(0.0)),
            "workingset" => with.working_set = self.number(value, scope).unwrap_or(Number::Fixed(0.0)),
            "indexed" => with.index = self.number(value, scope),
            "value" if kind == Kind::Print => with.text = self.text(value, scope),
            "value" => with.value = self.number(value, scope).unwrap_or(Number::Fixed(0.0)),
            "highwater" => with.highwater = self.fixed(value, "highwater", 0.0, scope).unwrap_or(1.0),
            "random" => with.random = self.truth(value, scope).unwrap_or(false),
            "dsync" => with.opening.dsync = self.truth(value, scope).unwrap_or(false),
            "directio" => with.opening.direct = self.truth(value, scope).unwrap_or(false),
            "noreadahead" => with.opening.no_readahead = self.truth(value, scope).unwrap_or(false),
            "opennext" => with.open_next = self.truth(value, scope).unwrap_or(false),
            "blocking" => with.blocking = self.truth(value, scope).unwrap_or(false),
            _ => {}
        }
    }

    fn flag_argument(&mut self, with: &mut Arguments, attribute: &Attribute) {
        match attribute.name.it.as_str() {
            "random" => with.random = true,
            "dsync" => with.opening.dsync = true,
            "directio" => with.opening.direct = true,
            "noreadahead" => with.opening.no_readahead = true,
            "opennext" => with.open_next = true,
            "blocking" => with.blocking = true,
            name => self.mistake(attribute.name.span, format!("'{name}' needs a value")),
        }
    }

    fn fileset_of(&mut self, read: &Reader<'_>, scope: &Scope, building: &Building) -> Option<usize> {
        let value = read.get("filename")?;
        let name = self.text(value, scope)?;
        let found = building.filesets.iter().position(|one| one.name == name);
        // If the filesets contain errors, the list is empty. Do not report unknown names then.
        let known = !building.filesets.is_empty() || self.files.is_empty();
        if found.is_none() && known {
            let message = format!("there is no file or fileset '{name}'");
            match nearest(&name, building.filesets.iter().map(|one| one.name.as_str())) {
                Some(near) => self.mistake_with_hint(value.span, message, format!("did you mean '{near}'?")),
                None => self.mistake(value.span, message),
            }
        }
        found
    }

    fn check_arguments(&mut self, used: &FlowopUse, kind: Kind, read: &Reader<'_>, with: &Arguments) {
        use Kind::{
            AioWrite, AppendFile, AppendFileRandom, CreateFile, DeleteFile, FinishOnBytes, FinishOnCount,
            FsyncSet, ListDirectory, MakeDirectory, OpenFile, Read, RemoveDirectory, SemPost, StatFile,
            Wakeup, Write,
        };
        let span = used.kind.span;
        let name = kind.name();
        let by_descriptor = with.fd > 0 && matches!(kind, DeleteFile | StatFile);
        let wants_files = matches!(
            kind,
            OpenFile
                | CreateFile
                | StatFile
                | DeleteFile
                | MakeDirectory
                | RemoveDirectory
                | ListDirectory
                | FsyncSet
        );
        if wants_files && !by_descriptor && read.find("filename").is_none() {
            self.mistake(span, format!("'{name}' needs a filesetname"));
        }
        let sized = matches!(kind, Read | Write | AppendFile | AppendFileRandom | AioWrite);
        if sized && with.size.fixed().is_some_and(|size| size < 1.0) {
            self.mistake(span, format!("'{name}' needs an iosize"));
        }
        if kind == AioWrite && !with.random {
            self.mistake(span, "'aiowrite' needs 'random': sequential ones are not defined");
        }
        if matches!(kind, SemPost | Wakeup) && read.find("target").is_none() {
            self.mistake(span, format!("'{name}' needs a target"));
        }
        if matches!(kind, FinishOnCount | FinishOnBytes) && read.find("value").is_none() {
            self.mistake(span, format!("'{name}' needs a value"));
        }
    }
}

impl Arguments {
    /// Return the default arguments.
    pub(super) fn none() -> Self {
        Self {
            fileset: None,
            fd: 0,
            source_fd: 0,
            size: Number::Fixed(0.0),
            working_set: Number::Fixed(0.0),
            index: None,
            value: Number::Fixed(0.0),
            text: None,
            highwater: 1.0,
            targets: Vec::new(),
            random: false,
            opening: Opening::default(),
            open_next: false,
            blocking: false,
        }
    }
}

/// Return the index of a flowop in the statistics. Flowops with the same name and kind share an index.
fn info_of(building: &mut Building, name: &str, kind: Kind) -> usize {
    let infos = &mut building.infos;
    *building.numbers.entry((name.to_owned(), kind)).or_insert_with(|| {
        infos.push(FlowopInfo { name: name.to_owned(), kind });
        infos.len() - 1
    })
}
