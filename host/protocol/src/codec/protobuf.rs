//! A2A's messages in Protocol Buffers, converted through ProtoJSON. The descriptors of `proto/`
//! drive the conversion, so no types are generated, and gRPC follows the rules of ProtoJSON.

use crate::model::error::{A2aError, ErrorKind};
use prost_reflect::{
    DescriptorPool, DeserializeOptions, DynamicMessage, MessageDescriptor, MethodDescriptor,
    prost::Message as _,
};
use serde_json::{Map, Number, Value};
use std::sync::LazyLock;

/// Descriptors of `proto/`. An invalid file yields an empty pool, so that no method is found; a
/// test detects that.
static KNOWN: LazyLock<DescriptorPool> = LazyLock::new(|| {
    let compiled = include_bytes!("../../proto/a2a.descriptors");
    DescriptorPool::decode(compiled.as_slice()).unwrap_or_default()
});

/// Full name of the message for errors.
const STATUS: &str = "google.rpc.Status";

/// Full name of the 1.0 card's message.
const CARD: &str = "lf.a2a.v1.AgentCard";

/// Method of a gRPC service, by its descriptor.
#[derive(Clone, Debug)]
pub(crate) struct Rpc(MethodDescriptor);

impl Rpc {
    /// Finds a method by the full name of its service and its own name.
    pub(crate) fn named(service: &str, method: &str) -> Option<Self> {
        KNOWN.get_service_by_name(service)?.methods().find(|it| it.name() == method).map(Self)
    }

    /// Names of a service's methods; empty for an unknown service.
    pub(crate) fn names(service: &str) -> Vec<String> {
        let service = KNOWN.get_service_by_name(service);
        let methods = service.iter().flat_map(prost_reflect::ServiceDescriptor::methods);
        methods.map(|method| method.name().to_owned()).collect()
    }

    /// Path of the method, relative to the URL of the service.
    pub(crate) fn path(&self) -> String {
        format!("/{}/{}", self.0.parent_service().full_name(), self.0.name())
    }

    /// True if the response is a stream.
    pub(crate) fn streams(&self) -> bool {
        self.0.is_server_streaming()
    }

    /// Decodes a client's request to ProtoJSON.
    pub(crate) fn read_request(&self, sent: &[u8]) -> Result<Map<String, Value>, A2aError> {
        decode(self.0.input(), sent)
    }

    /// Encodes a client's request from ProtoJSON.
    pub(crate) fn write_request(&self, params: Value) -> Result<Vec<u8>, A2aError> {
        encode(self.0.input(), params)
    }

    /// Decodes a server's response to ProtoJSON.
    pub(crate) fn read_answer(&self, sent: &[u8]) -> Result<Map<String, Value>, A2aError> {
        decode(self.0.output(), sent)
    }

    /// Encodes a server's response from ProtoJSON.
    pub(crate) fn write_answer(&self, answer: Value) -> Result<Vec<u8>, A2aError> {
        encode(self.0.output(), answer)
    }
}

/// Encodes a `google.rpc.Status`; `None` if the value does not fit.
pub(crate) fn write_status(status: Value) -> Option<Vec<u8>> {
    encode(KNOWN.get_message_by_name(STATUS)?, status).ok()
}

/// Decodes a `google.rpc.Status` to ProtoJSON; `None` if the bytes are invalid.
pub(crate) fn read_status(bytes: &[u8]) -> Option<Map<String, Value>> {
    decode(KNOWN.get_message_by_name(STATUS)?, bytes).ok()
}

/// Normalizes a 1.0 card: drops unknown members and default values (ProtoJSON); `None` if the card
/// is invalid.
pub fn normal_card(card: &Value) -> Option<Value> {
    let of = KNOWN.get_message_by_name(CARD)?;
    let lenient = DeserializeOptions::new().deny_unknown_fields(false);
    let message = DynamicMessage::deserialize_with_options(of, card, &lenient).ok()?;
    serde_json::to_value(&message).ok()
}

fn decode(of: MessageDescriptor, sent: &[u8]) -> Result<Map<String, Value>, A2aError> {
    let wrong = |why: String| A2aError::new(ErrorKind::Parse, why);
    let name = of.full_name().to_owned();
    let message = DynamicMessage::decode(of, sent);
    let message = message.map_err(|why| wrong(format!("this is no `{name}`: {why}")))?;
    let value = serde_json::to_value(&message);
    let mut value = value.map_err(|why| wrong(format!("`{name}` has no JSON: {why}")))?;
    restore_integers(&mut value);
    let Value::Object(members) = value else {
        return Err(wrong(format!("`{name}` is no object but {value}")));
    };
    Ok(members)
}

fn encode(of: MessageDescriptor, value: Value) -> Result<Vec<u8>, A2aError> {
    let name = of.full_name().to_owned();
    let lenient = DeserializeOptions::new().deny_unknown_fields(false);
    let message = DynamicMessage::deserialize_with_options(of, value, &lenient);
    let wrong = |why| A2aError::new(ErrorKind::Internal, format!("this is no `{name}`: {why}"));
    Ok(message.map_err(wrong)?.encode_to_vec())
}

/// Converts integral floats to integers. Protocol Buffers transport every number of custom JSON as
/// a float, so an integer loses its type.
fn restore_integers(value: &mut Value) {
    /// Largest magnitude up to which a float represents every integer exactly.
    const EXACT: f64 = 9_007_199_254_740_992.0;
    match value {
        Value::Number(number) => {
            let integer = number.as_f64().filter(|it| it.fract() == 0.0 && it.abs() <= EXACT);
            if let (true, Some(integer)) = (number.is_f64(), integer) {
                #[expect(clippy::cast_possible_truncation, reason = "it is whole, and no larger")]
                let integer = integer as i64;
                *number = Number::from(integer);
            }
        }
        Value::Array(items) => items.iter_mut().for_each(restore_integers),
        Value::Object(members) => members.values_mut().for_each(restore_integers),
        Value::Null | Value::Bool(_) | Value::String(_) => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::message::base64_bytes;

    /// One message of each kind, filled by an official SDK: its name, its bytes, and the SDK's JSON
    /// of it.
    const OFFICIAL: &str = include_str!("../../proto/official.jsonl");

    /// The descriptors are committed, because building their compiler takes longer than building
    /// this crate.
    #[test]
    fn committed_descriptors_match_proto_files() {
        let proto = concat!(env!("CARGO_MANIFEST_DIR"), "/proto");
        let mut compiler = protox::Compiler::new([proto]).unwrap();
        compiler.include_imports(true);
        compiler.open_files(["a2a_v1.proto", "a2a_v03.proto", "google_rpc.proto"]).unwrap();
        let made = compiler.encode_file_descriptor_set();
        let kept = format!("{proto}/a2a.descriptors");
        if std::fs::read(&kept).unwrap() != made {
            std::fs::write(&kept, made).unwrap();
            panic!("{kept} was not made from the proto files as they are: it is now, commit it");
        }
    }

    #[test]
    fn official_sdk_messages_round_trip() {
        let mut kinds = std::collections::BTreeSet::new();
        for line in OFFICIAL.lines() {
            let (name, bytes, mut json): (String, String, Value) =
                serde_json::from_str(line).unwrap();
            restore_integers(&mut json);
            let bytes = base64_bytes::decode(&bytes).unwrap();
            let of = KNOWN.get_message_by_name(&name).unwrap_or_else(|| panic!("no {name}"));
            let read = decode(of.clone(), &bytes).unwrap();
            assert_eq!(Value::Object(read), json, "{name}");
            // The order of a map's entries is arbitrary, so only the length is compared.
            let written = encode(of.clone(), json.clone()).unwrap();
            assert_eq!(written.len(), bytes.len(), "{name}");
            assert_eq!(Value::Object(decode(of, &written).unwrap()), json, "{name}");
            kinds.insert(name);
        }
        let ours = KNOWN.all_messages().filter(|of| of.package_name().contains("a2a"));
        let ours = ours.filter(|of| !of.is_map_entry()).map(|of| of.full_name().to_owned());
        assert_eq!(kinds, ours.collect(), "all that there are");
    }
}
