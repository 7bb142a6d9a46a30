//! Compilation of files and filesets: evaluates their attributes and keeps their paths below the working directory.

use std::path::{Component, Path};

use super::Compiler;
use super::evaluated::Scope;
use crate::ast::{At, Attribute, Value};
use crate::diagnostic::Span;
use crate::program::{Access, FilesetSpec};
use crate::random::Number;

/// Maximum number of files and empty directories in a fileset.
const MOST_FILES: f64 = 1e8;

impl Compiler {
    /// Compile all files and filesets defined so far. Returns `None` after an error, which is recorded.
    pub(super) fn all_filesets(&mut self) -> Option<Vec<FilesetSpec>> {
        let before = self.mistakes.found.len();
        let mut found: Vec<FilesetSpec> = Vec::new();
        for (span, single, attributes) in self.files.clone() {
            let Some(spec) = self.fileset(span, single, &attributes) else { continue };
            if found.iter().any(|one| one.name == spec.name) {
                self.mistake(span, format!("there is already a fileset '{}'", spec.name));
            }
            found.push(spec);
        }
        (self.mistakes.found.len() == before).then_some(found)
    }

    fn fileset(&mut self, span: Span, single: bool, attributes: &[Attribute]) -> Option<FilesetSpec> {
        let read = Reader { attributes };
        let scope = Scope::new();
        let name = read.get("name").and_then(|value| self.text(value, &scope));
        let Some(name) = name else {
            self.mistake(span, "a fileset needs a name");
            return None;
        };
        if name.is_empty() || name.contains(['/', '\0']) || name == "." || name == ".." {
            self.mistake(span, format!("'{name}' cannot be the name of a directory"));
        }
        let Some(path) = read.get("path").cloned() else {
            self.mistake(span, format!("the fileset '{name}' needs a path"));
            return None;
        };
        let place = self.place(&path)?;
        let access = match (self.flag(&read, "readonly"), self.flag(&read, "writeonly")) {
            (true, true) => {
                self.mistake(span, "a fileset cannot be readonly and writeonly at once");
                return None;
            }
            (true, false) => Access::ReadOnly,
            (false, true) => Access::WriteOnly,
            (false, false) => Access::ReadWrite,
        };
        let trust = self.flag(&read, "trusttree") || self.context.reuse;
        let mut spec = FilesetSpec {
            name,
            place,
            entries: 1,
            leaf_directories: 0,
            size: self.number_or(&read, "size", 1024.0)?,
            size_gamma: self.count(&read, "filesizegamma", 0.0)? / 1000.0,
            width: Number::Fixed(10.0),
            gamma: 0.0,
            depth: None,
            prealloc: self.prealloc(&read)?,
            parallel: self.flag(&read, "paralloc"),
            reuse: self.flag(&read, "reuse") || trust,
            trust,
            access,
            cached: read.get("cached").and_then(|value| self.truth(value, &scope)),
        };
        if !single {
            self.tree(span, &read, &mut spec)?;
        }
        Some(spec)
    }

    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "checked to be small")]
    fn tree(&mut self, span: Span, read: &Reader<'_>, spec: &mut FilesetSpec) -> Option<()> {
        let leaf_directories = self.count(read, "leafdirs", 0.0)?;
        // A fileset with empty directories has no files by default.
        let entries = self.count(read, "entries", if leaf_directories > 0.0 { 0.0 } else { 1.0 })?;
        if entries + leaf_directories > MOST_FILES {
            self.mistake(span, format!("{entries} files are too many"));
            return None;
        }
        (spec.entries, spec.leaf_directories) = (entries as u64, leaf_directories as u64);
        spec.width = self.number_or(read, "dirwidth", 0.0)?;
        spec.gamma = self.count(read, "dirgamma", 1500.0)? / 1000.0;
        if let Some(depth) = read.get("dirdepthrv") {
            spec.depth = Some(self.number(depth, &Scope::new())?);
        }
        Some(())
    }

    fn prealloc(&mut self, read: &Reader<'_>) -> Option<f64> {
        let Some(attribute) = read.find("prealloc") else { return Some(0.0) };
        let Some(value) = &attribute.value else { return Some(100.0) };
        if let super::Evaluated::Boolean(yes) = self.evaluate(value, &Scope::new())? {
            return Some(if yes { 100.0 } else { 0.0 });
        }
        let percent = self.fixed(value, "prealloc", 0.0, &Scope::new())?;
        if percent > 100.0 {
            self.mistake(value.span, format!("prealloc must be a percentage from 0 to 100, not {percent}"));
            return None;
        }
        Some(percent)
    }

    fn flag(&mut self, read: &Reader<'_>, name: &str) -> bool {
        match read.find(name).map(|attribute| attribute.value.as_ref()) {
            None => false,
            Some(None) => true,
            Some(Some(value)) => self.truth(value, &Scope::new()).unwrap_or(false),
        }
    }

    fn number_or(&mut self, read: &Reader<'_>, name: &str, default: f64) -> Option<Number> {
        let Some(value) = read.get(name) else { return Some(Number::Fixed(default)) };
        let number = self.number(value, &Scope::new())?;
        if number.fixed().is_some_and(|number| number < 0.0) {
            self.mistake(value.span, format!("{name} must be at least 0"));
            return None;
        }
        Some(number)
    }

    /// Evaluate an attribute as a whole number, rounded down; of a random variable, take the mean.
    fn count(&mut self, read: &Reader<'_>, name: &str, default: f64) -> Option<f64> {
        Some(self.number_or(read, name, default)?.mean().floor())
    }

    /// Return a path relative to the working directory. `/tmp` means the working directory itself, and so does a
    /// variable unless it contains an absolute path below that directory. Any other path outside it is an error, which
    /// is recorded; then returns `None`.
    fn place(&mut self, value: &At<Value>) -> Option<String> {
        let text = self.text(value, &Scope::new())?;
        let path = Path::new(&text);
        if path.components().any(|part| part == Component::ParentDir) || text.contains('\0') {
            self.mistake(value.span, format!("the path {text} leads out of the working directory"));
            return None;
        }
        let directory = self.context.directory.clone();
        if let Ok(below) = path.strip_prefix(&directory) {
            return Some(normal(below));
        }
        if !path.is_absolute() && !text.starts_with('~') && !matches!(value.it, Value::Variable(_)) {
            return Some(normal(path));
        }
        if matches!(value.it, Value::Variable(_)) || path == Path::new("/tmp") {
            if path != Path::new("/tmp") {
                let shown = directory.display();
                self.warn("path_replaced", format!("the files are in {shown}, not in {text}"));
            }
            return Some(String::new());
        }
        let hint = "write path=$dir, or give that directory with --dir";
        self.mistake_with_hint(
            value.span,
            format!("the path {text} lies outside of {}", directory.display()),
            hint,
        );
        None
    }
}

fn normal(path: &Path) -> String {
    let parts: Vec<String> = path
        .components()
        .filter_map(|part| match part {
            Component::Normal(part) => Some(part.to_string_lossy().into_owned()),
            _ => None,
        })
        .collect();
    parts.join("/")
}

/// Access to attributes by name. If an attribute is given several times, the last one applies.
pub(super) struct Reader<'a> {
    pub(super) attributes: &'a [Attribute],
}

impl<'a> Reader<'a> {
    pub(super) fn find(&self, name: &str) -> Option<&'a Attribute> {
        self.attributes.iter().rev().find(|one| one.name.it == name)
    }

    pub(super) fn get(&self, name: &str) -> Option<&'a At<Value>> {
        self.find(name).and_then(|one| one.value.as_ref())
    }
}
