//! What a component asks for: a TOML text that travels inside it, in the custom section `a2a-hub:manifest`.

use a2a_hub_core::{grant::Ask, manifest::InvalidManifest};
use wasmparser::{Parser, Payload};

/// The custom section of a component that holds its manifest.
pub const SECTION: &str = "a2a-hub:manifest";

/// Longer manifests are not read: they are not written by people.
const MAX_BYTES: usize = 64 << 10;

/// A manifest that cannot be followed.
#[derive(Debug, thiserror::Error)]
pub enum ManifestError {
    /// Two modules of the component carry one.
    #[error("it carries more than one manifest")]
    Several,
    /// It is larger than any manifest needs to be.
    #[error("its manifest is larger than {MAX_BYTES} bytes")]
    Large,
    /// It is not UTF-8.
    #[error("its manifest is not UTF-8 text")]
    Encoding,
    /// It is not the TOML that a manifest is.
    #[error("its manifest cannot be read: {0}")]
    Toml(#[from] toml::de::Error),
    /// It says what no manifest may.
    #[error(transparent)]
    Invalid(#[from] InvalidManifest),
    /// The component itself cannot be read.
    #[error("it is not valid WebAssembly: {0}")]
    Wasm(#[from] wasmparser::BinaryReaderError),
}

/// What the component in `bytes` asks for; nothing if it carries no manifest.
pub fn read(bytes: &[u8]) -> Result<Ask, ManifestError> {
    let mut found = None;
    for payload in Parser::new(0).parse_all(bytes) {
        if let Payload::CustomSection(section) = payload?
            && section.name() == SECTION
            && found.replace(section.data()).is_some()
        {
            return Err(ManifestError::Several);
        }
    }
    let Some(text) = found else { return Ok(Ask::default()) };
    if text.len() > MAX_BYTES {
        return Err(ManifestError::Large);
    }
    let text = str::from_utf8(text).map_err(|_| ManifestError::Encoding)?;
    let ask: Ask = toml::from_str(text)?;
    ask.check()?;
    Ok(ask)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An empty component with one custom section for each text.
    fn component(manifests: &[&[u8]]) -> Vec<u8> {
        let mut bytes = b"\0asm\x0d\0\x01\0".to_vec();
        for manifest in manifests {
            let mut section = vec![u8::try_from(SECTION.len()).unwrap()];
            section.extend(SECTION.as_bytes());
            section.extend(*manifest);
            bytes.push(0);
            bytes.extend(leb128(section.len()));
            bytes.extend(section);
        }
        bytes
    }

    /// A number as WebAssembly writes it: seven bits a byte, the lowest first.
    fn leb128(mut number: usize) -> Vec<u8> {
        let mut bytes = Vec::new();
        loop {
            let low = u8::try_from(number & 0x7f).unwrap();
            number >>= 7;
            if number == 0 {
                bytes.push(low);
                return bytes;
            }
            bytes.push(low | 0x80);
        }
    }

    #[test]
    fn a_component_says_what_it_asks_for() {
        let ask = read(&component(&[b"[process.git]\nargs=[[\"log\"]]"])).unwrap();
        assert!(ask.process["git"].args.allow(&["log".to_owned()]));
        assert_eq!(read(&component(&[])).unwrap(), Ask::default());
    }

    #[test]
    fn what_is_wrong_is_said() {
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
                "unknown field `proces`, expected one of `id`, `version`, `publisher`, `description`, `process`"
            ),
            "{typo}"
        );
    }
}
