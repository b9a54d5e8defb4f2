//! Manifest of a component: a TOML text in the custom section `a2a-hub:manifest`.

use a2a_hub_core::{grant::Ask, plugin::manifest::InvalidManifest};
use std::{borrow::Cow, mem};
use wasmparser::{BinaryReader, BinaryReaderError, Chunk, Parser, Payload};

/// Custom section that holds the manifest.
pub const SECTION: &str = "a2a-hub:manifest";

/// Longest manifest, in bytes: people write shorter ones.
const MAX_BYTES: usize = 64 << 10;

/// A manifest that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ManifestError {
    /// Several modules of the component contain one.
    #[error("it carries more than one manifest")]
    Several,
    /// The manifest is too long.
    #[error("its manifest is larger than {MAX_BYTES} bytes")]
    Large,
    /// The manifest is not UTF-8.
    #[error("its manifest is not UTF-8 text")]
    Encoding,
    /// The manifest is not valid TOML for a manifest.
    #[error("its manifest cannot be read: {0}")]
    Toml(#[from] toml::de::Error),
    /// The manifest contains an invalid request.
    #[error(transparent)]
    Invalid(#[from] InvalidManifest),
    /// The component cannot be read.
    #[error("it is not valid WebAssembly: {0}")]
    Wasm(#[from] BinaryReaderError),
}

/// Manifest of a component; the empty one if it has none.
pub fn read(bytes: &[u8]) -> Result<Ask, ManifestError> {
    let (mut found, mut rest) = (None, bytes);
    let (mut parser, mut outer) = (Parser::new(0), Vec::new());
    // The parser knows that no more input follows, so it never waits for more.
    while let Chunk::Parsed { consumed, payload } = parser.parse(rest, true)? {
        rest = &rest[consumed..];
        if let Payload::CodeSectionStart { size, .. } = payload {
            // Function bodies are most of a component and contain no manifest; the compiler
            // validates them.
            if let Some(remaining) = rest.get(size as usize..) {
                parser.skip_section();
                rest = remaining;
            }
        } else if let Payload::ModuleSection { parser: inner, .. }
        | Payload::ComponentSection { parser: inner, .. } = payload
        {
            outer.push(mem::replace(&mut parser, inner));
        } else if let Payload::CustomSection(section) = payload {
            if section.name() == SECTION && found.replace(section.data()).is_some() {
                return Err(ManifestError::Several);
            }
        } else if let Payload::End(_) = payload {
            let Some(around) = outer.pop() else { break };
            parser = around;
        }
    }
    found.map_or_else(|| Ok(Ask::default()), parse)
}

/// Parses a manifest.
///
/// # Errors
///
/// If a component with this manifest could not join.
pub fn parse(text: &[u8]) -> Result<Ask, ManifestError> {
    if text.len() > MAX_BYTES {
        return Err(ManifestError::Large);
    }
    let text = str::from_utf8(text).map_err(|_| ManifestError::Encoding)?;
    let ask: Ask = toml::from_str(text)?;
    ask.check()?;
    Ok(ask)
}

/// Replaces the manifests of a component and its modules by this one; returns the component and its
/// requests.
///
/// # Errors
///
/// If the input is not a component, or could not join with this manifest.
pub fn embed(component: &[u8], manifest: &[u8]) -> Result<(Vec<u8>, Ask), ManifestError> {
    parse(manifest)?;
    let mut packed = without_manifests(component, 0)?;
    let name = SECTION.as_bytes();
    packed.push(CUSTOM);
    leb128(&mut packed, (1 + name.len() + manifest.len()) as u64);
    leb128(&mut packed, name.len() as u64);
    packed.extend_from_slice(name);
    packed.extend_from_slice(manifest);
    let ask = read(&packed)?;
    Ok((packed, ask))
}

/// Id of custom sections, in modules and components.
const CUSTOM: u8 = 0;

/// Ids of a component's sections that contain a module or another component.
const NESTED: [u8; 2] = [1, 4];

/// Version field of a component, after the four magic bytes; a module has another version.
const COMPONENT: [u8; 4] = [0x0d, 0, 1, 0];

/// Nesting limit of components. Tools nest two or three deep.
const MAX_DEPTH: usize = 32;

/// Removes manifest sections, also from nested modules and components: compilers leave the manifest
/// in a module.
fn without_manifests(bytes: &[u8], depth: usize) -> Result<Vec<u8>, BinaryReaderError> {
    let mut reader = BinaryReader::new(bytes, 0);
    let mut output = reader.read_bytes(8)?.to_vec();
    let is_component = output[4..] == COMPONENT;
    while !reader.eof() {
        let id = reader.read_u8()?;
        let size = reader.read_var_u32()?;
        let body = reader.read_bytes(usize::try_from(size).unwrap_or(usize::MAX))?;
        if id == CUSTOM && BinaryReader::new(body, 0).read_string()? == SECTION {
            continue;
        }
        let body = if is_component && NESTED.contains(&id) && depth < MAX_DEPTH {
            Cow::Owned(without_manifests(body, depth + 1)?)
        } else {
            Cow::Borrowed(body)
        };
        output.push(id);
        leb128(&mut output, body.len() as u64);
        output.extend_from_slice(&body);
    }
    Ok(output)
}

/// Writes a number in LEB128: seven bits a byte, least significant first.
fn leb128(to: &mut Vec<u8>, mut number: u64) {
    loop {
        let low = u8::try_from(number & 0x7f).unwrap_or_default();
        number >>= 7;
        if number == 0 {
            return to.push(low);
        }
        to.push(low | 0x80);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Empty component with one custom section for each text.
    fn component(manifests: &[&[u8]]) -> Vec<u8> {
        manifests
            .iter()
            .fold(EMPTY.to_vec(), |bytes, text| with_section(bytes, CUSTOM, &section(text)))
    }

    /// Content of a section with this manifest.
    fn section(manifest: &[u8]) -> Vec<u8> {
        let mut section = vec![u8::try_from(SECTION.len()).unwrap()];
        section.extend(SECTION.as_bytes());
        section.extend(manifest);
        section
    }

    /// Appends a section.
    fn with_section(mut bytes: Vec<u8>, id: u8, body: &[u8]) -> Vec<u8> {
        bytes.push(id);
        leb128(&mut bytes, body.len() as u64);
        bytes.extend(body);
        bytes
    }

    const EMPTY: &[u8] = b"\0asm\x0d\0\x01\0";

    #[test]
    fn manifest_is_read_from_component() {
        let ask = read(&component(&[b"[process.git]\nargs=[[\"log\"]]"])).unwrap();
        assert!(ask.process["git"].args.allow(&["log".to_owned()]));
        assert_eq!(read(&component(&[])).unwrap(), Ask::default());
    }

    #[test]
    fn manifest_errors_name_the_problem() {
        let wrong = |manifests: &[&[u8]]| read(&component(manifests)).unwrap_err().to_string();
        assert_eq!(wrong(&[b"", b""]), "it carries more than one manifest");
        assert_eq!(wrong(&[&[0xff]]), "its manifest is not UTF-8 text");
        let deceptive = wrong(&["description = \"\u{202e}x\"".as_bytes()]);
        assert!(deceptive.contains("one that turns or hides text"), "{deceptive}");
        assert!(wrong(&[b"[process.\"/bin/sh\"]"]).contains("by a name that is none"));
        let typo = wrong(&[b"[proces.git]"]);
        let nested = "[".repeat(30_000) + "a" + &"]".repeat(30_000);
        let hostile = wrong(&[format!("[process.git]\nargs = [[\"{nested}\"]]").as_bytes()]);
        assert!(hostile.contains("have more than 1024 tokens"), "{}", &hostile[..200]);
        assert!(
            typo.contains(
                "unknown field `proces`, expected one of `id`, `version`, `publisher`, `description`, `aliases`, `process`"
            ),
            "{typo}"
        );
    }
    #[test]
    fn embed_replaces_existing_manifests() {
        let old = section(b"[memory]\nmax_bytes = 1");
        let name = with_section(EMPTY.to_vec(), CUSTOM, b"\x04notekept");
        let module = with_section(b"\0asm\x01\0\0\0".to_vec(), CUSTOM, &old);
        let inner = with_section(EMPTY.to_vec(), 1, &module);
        let nested = with_section(with_section(name, 4, &inner), CUSTOM, &old);
        assert!(matches!(read(&nested), Err(ManifestError::Several)));

        let manifest = b"description = \"Keeps notes.\"\n[memory]\nmax_bytes = 77\n";
        let (packed, ask) = embed(&nested, manifest).unwrap();
        assert_eq!(ask.memory.as_ref().unwrap().max_bytes, 77);
        assert_eq!(read(&packed).unwrap(), ask);
        assert!(packed.windows(8).any(|window| window == b"notekept"), "other sections stay");
        assert!(
            !packed.windows(13).any(|window| window == b"max_bytes = 1"),
            "the old ones do not"
        );
        assert_eq!(embed(&packed, manifest).unwrap().0, packed, "twice is once");
    }

    #[test]
    fn embed_refuses_invalid_input() {
        let refused =
            |bytes: &[u8], manifest: &[u8]| embed(bytes, manifest).unwrap_err().to_string();
        assert!(refused(EMPTY, b"[proces.git]").contains("unknown field `proces`"));
        assert!(
            refused(EMPTY, "description = 'a\u{1b}[2Jb'".as_bytes()).contains("cannot be read")
        );
        assert!(refused(EMPTY, &[b'#'; MAX_BYTES + 1]).contains("larger than"));
        assert!(refused(b"\0asm", b"").contains("not valid WebAssembly"));
        let cut = with_section(EMPTY.to_vec(), 1, b"\0asm\x01\0\0\0");
        assert!(refused(&cut[..cut.len() - 3], b"").contains("not valid WebAssembly"));
        // Deeply nested components do not overflow the stack: deeper levels are copied unchanged,
        // and the hub reads them the same way.
        let bomb =
            (0..200).fold(EMPTY.to_vec(), |inner, _| with_section(EMPTY.to_vec(), 4, &inner));
        assert!(embed(&bomb, b"").is_ok());
    }
}
