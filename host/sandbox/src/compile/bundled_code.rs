//! Code bundled at the end of the executable: its components, compiled at build time, so that not
//! even the first start compiles any. It is trusted like the rest of the executable and has no
//! authentication tag.
//!
//! After the linker's output follow each component's code (page-aligned, so that it can run in
//! place), an index in JSON, the index's length (eight bytes, little-endian) and [`MAGIC`]. Program
//! loaders ignore all of it. A tool that cuts it off, as `strip` does, costs a compilation.

use crate::compile::{code_mmap, compiled_code::CompiledCode, digest::digest_of, settings};
use a2a_hub_process::mapped_file::MappedFile;
use serde::{Deserialize, Serialize};
use std::{
    fs::{self, File},
    io::{self, Write as _},
    os::unix::fs::FileExt as _,
    path::Path,
    sync::atomic::{AtomicBool, Ordering::Relaxed},
};

/// Command that makes this executable write a copy of itself with bundled code.
pub const CARRY: &str = "__carry";

/// Last bytes of an executable with bundled code.
const MAGIC: &[u8; 16] = b"a2a-hub carries\n";

/// Bytes after the index.
const TAIL: usize = 8 + MAGIC.len();

/// Path of a program's own file, also after it was moved or replaced.
const THIS_PROGRAM: &str = "/proc/self/exe";

/// Longest index, in bytes: each component takes some hundred.
const MAX_INDEX: u64 = 1 << 20;

/// Most code of one component, in bytes.
const MAX_CODE: u64 = 64 << 20;

/// Code bundled with this executable. Only requested parts are read.
#[derive(Debug)]
pub struct CarriedCode {
    file: File,
    all: Vec<Carried>,
    /// Mapping of the whole file, where its code can run in place.
    mapped: Option<MappedFile>,
}

/// Position of a component's code.
#[derive(Debug, Serialize, Deserialize)]
struct Carried {
    /// SHA-256 digest of the component, in hexadecimal digits.
    component: String,
    /// Offset of the code in the file, in bytes.
    at: u64,
    /// Length of the code, in bytes.
    bytes: u64,
    /// True once the code was used in place: wasmtime identifies code by its address, so a second
    /// use would be confused with the first.
    #[serde(skip)]
    is_taken: AtomicBool,
}

impl CarriedCode {
    /// Code bundled with this executable; none if it was built without, or if its file cannot be
    /// read.
    pub fn of_this_program() -> Option<Self> {
        let found = File::open(THIS_PROGRAM).and_then(Self::from_file);
        let found = found.unwrap_or_else(|why| {
            tracing::debug!(%why, "cannot read bundled code of this program");
            None
        });
        let mapped = code_mmap::IS_POSSIBLE.then(MappedFile::of_this_program).flatten();
        found.map(|code| Self { mapped, ..code })
    }

    fn from_file(file: File) -> io::Result<Option<Self>> {
        let Some((_, all)) = index(&file)? else { return Ok(None) };
        Ok(Some(Self { file, all, mapped: None }))
    }

    /// Code of the component with that digest: in place the first time, a copy when an agent is
    /// loaded again.
    pub(crate) fn code(&self, digest: &str) -> Option<CompiledCode> {
        let carried = self.all.iter().find(|carried| carried.component == digest)?;
        let (at, bytes) = (usize::try_from(carried.at).ok()?, usize::try_from(carried.bytes).ok()?);
        if at.is_multiple_of(code_mmap::ALIGNMENT)
            && let Some(code) = self.mapped.and_then(|file| file.bytes().get(at..)?.get(..bytes))
            && !carried.is_taken.swap(true, Relaxed)
        {
            return Some(CompiledCode::mapped(code));
        }
        let mut code = vec![0; bytes];
        self.file.read_exact_at(&mut code, carried.at).ok()?;
        Some(CompiledCode::carried(code))
    }
}

/// End of the original executable, and the index; none without bundled code.
fn index(file: &File) -> io::Result<Option<(u64, Vec<Carried>)>> {
    let length = file.metadata()?.len();
    let Some(tail_at) = length.checked_sub(TAIL as u64) else { return Ok(None) };
    let mut tail = [0; TAIL];
    file.read_exact_at(&mut tail, tail_at)?;
    let Some(encoded) = tail.strip_suffix(MAGIC).and_then(|rest| rest.first_chunk()) else {
        return Ok(None);
    };
    let index_length = u64::from_le_bytes(*encoded);
    let damaged = || io::Error::other("what it carries is damaged");
    let index_at = tail_at
        .checked_sub(index_length)
        .filter(|_| index_length <= MAX_INDEX)
        .ok_or_else(damaged)?;
    let mut text = vec![0; usize::try_from(index_length).map_err(io::Error::other)?];
    file.read_exact_at(&mut text, index_at)?;
    let all: Vec<Carried> = serde_json::from_slice(&text)?;
    let is_before =
        |one: &Carried| one.at.checked_add(one.bytes).is_some_and(|end| end <= index_at);
    if !all.iter().all(|one| one.bytes <= MAX_CODE && is_before(one)) {
        return Err(damaged());
    }
    let end = all.iter().map(|one| one.at).min().unwrap_or(index_at);
    Ok(Some((end, all)))
}

/// Writes a copy of this executable to `to` with the compiled code of these components, for any
/// machine of this architecture. The output is reproducible.
pub fn carry(components: &[&[u8]], to: &Path) -> io::Result<()> {
    carry_in(Path::new(THIS_PROGRAM), components, to)
}

fn carry_in(program: &Path, components: &[&[u8]], to: &Path) -> io::Result<()> {
    // Written to a temporary file and renamed: the file of a running program cannot be written.
    let mut name = to.file_name().unwrap_or_default().to_owned();
    name.push(".new");
    let draft = to.with_file_name(name);
    let mut file = File::create(&draft)?;

    let source = File::open(program)?;
    let end = index(&source)?.map(|(end, _)| end);
    let mut bytes = fs::read(program)?;
    bytes.truncate(end.and_then(|end| usize::try_from(end).ok()).unwrap_or(bytes.len()));

    let engine = wasmtime::Engine::new(&settings::to_carry().map_err(io::Error::other)?);
    let engine = engine.map_err(io::Error::other)?;
    let mut all = Vec::new();
    for component in components {
        let code = engine.precompile_component(component).map_err(io::Error::other)?;
        bytes.resize(bytes.len().next_multiple_of(code_mmap::ALIGNMENT), 0);
        let (at, length) = (bytes.len() as u64, code.len() as u64);
        all.push(Carried {
            component: digest_of(component),
            at,
            bytes: length,
            is_taken: AtomicBool::new(false),
        });
        bytes.extend(code);
    }
    let index = serde_json::to_vec(&all)?;
    bytes.extend_from_slice(&index);
    bytes.extend((index.len() as u64).to_le_bytes());
    bytes.extend(MAGIC);

    file.write_all(&bytes)?;
    file.set_permissions(source.metadata()?.permissions())?;
    drop(file);
    fs::rename(draft, to)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::component::engine::{Engine, EngineSettings};

    const COMPONENT: &str = r#"(component
        (core module $m (func (export "f") (result i32) i32.const 42))
        (core instance $i (instantiate $m))
        (func (export "f") (result u32) (canon lift (core func $i "f"))))"#;

    fn written(dir: &Path, name: &str, bytes: &[u8]) -> std::path::PathBuf {
        let path = dir.join(name);
        fs::write(&path, bytes).unwrap();
        path
    }

    fn opened(path: &Path) -> io::Result<Option<CarriedCode>> {
        CarriedCode::from_file(File::open(path).unwrap())
    }

    #[test]
    fn bundled_code_loads_and_is_reproducible() {
        let dir = tempfile::tempdir().unwrap();
        let program = written(dir.path(), "program", b"\x7fELF and so on");
        let component = wat::parse_str(COMPONENT).unwrap();
        let (once, twice) = (dir.path().join("once"), dir.path().join("twice"));
        carry_in(&program, &[&component], &once).unwrap();
        // An executable with bundled code works as a source, too.
        carry_in(&once, &[&component], &twice).unwrap();
        let bytes = fs::read(&once).unwrap();
        assert_eq!(bytes, fs::read(&twice).unwrap());
        assert!(bytes.starts_with(b"\x7fELF and so on"));

        let carried = opened(&once).unwrap().unwrap();
        let digest = digest_of(&component);
        let read = carried.code(&digest).unwrap();
        let engine = Engine::new(&EngineSettings::default()).unwrap();
        read.load(&engine.inner).unwrap();
        assert!(carried.code(&digest_of(b"another")).is_none());

        if !code_mmap::IS_POSSIBLE {
            return;
        }
        // SAFETY: the file stays unchanged.
        #[expect(unsafe_code, reason = "what is tried")]
        let mapped = unsafe { MappedFile::map(&carried.file) }.unwrap();
        let in_place = CarriedCode { mapped: Some(mapped), ..carried };
        let mapped = in_place.code(&digest).unwrap();
        assert!(matches!(mapped, CompiledCode::Mapped(_)));
        assert_eq!(mapped.bytes(), read.bytes());
        // A second load gets a copy, also after the first is dropped.
        let first = mapped.load(&engine.inner).unwrap();
        let again = in_place.code(&digest).unwrap();
        assert!(matches!(again, CompiledCode::Read { .. }));
        let second = again.load(&engine.inner).unwrap();
        assert_eq!([&first, &second].map(|one| called(&engine.inner, one)), [42; 2]);
        drop(first);
        assert_eq!(called(&engine.inner, &second), 42);
        assert!(matches!(in_place.code(&digest).unwrap(), CompiledCode::Read { .. }));
    }

    /// Result of the component's only function.
    fn called(engine: &wasmtime::Engine, component: &wasmtime::component::Component) -> u32 {
        let mut store = wasmtime::Store::new(engine, ());
        store.set_epoch_deadline(1_000);
        let linker = wasmtime::component::Linker::new(engine);
        let instance = linker.instantiate(&mut store, component).unwrap();
        let function = instance.get_typed_func::<(), (u32,)>(&mut store, "f").unwrap();
        function.call(&mut store, ()).unwrap().0
    }

    #[test]
    fn truncated_or_damaged_bundle_is_rejected() {
        let dir = tempfile::tempdir().unwrap();
        let program = written(dir.path(), "program", b"program");
        assert!(opened(&program).unwrap().is_none());
        assert!(opened(&written(dir.path(), "empty", b"")).unwrap().is_none());
        let whole = dir.path().join("whole");
        carry_in(&program, &[&wat::parse_str(COMPONENT).unwrap()], &whole).unwrap();
        let bytes = fs::read(&whole).unwrap();
        for length in [7, bytes.len() / 2, bytes.len() - 1] {
            let cut = written(dir.path(), "cut", &bytes[..length]);
            assert!(opened(&cut).unwrap().is_none(), "{length}");
        }
        for said in [u64::MAX, MAX_INDEX + 1, bytes.len() as u64, 0, 1] {
            let mut changed = bytes.clone();
            let at = bytes.len() - TAIL;
            changed[at..at + 8].copy_from_slice(&said.to_le_bytes());
            opened(&written(dir.path(), "changed", &changed)).unwrap_err();
        }
        let far = br#"[{"component":"a","at":18446744073709551615,"bytes":9}]"#;
        let mut lies = far.to_vec();
        lies.extend((far.len() as u64).to_le_bytes());
        lies.extend(MAGIC);
        opened(&written(dir.path(), "lies", &lies)).unwrap_err();
    }
}
