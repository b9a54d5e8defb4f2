//! A2A's messages in Protocol Buffers, by way of ProtoJSON: bytes are read and written as the descriptors of `proto/` have
//! them, so that no type is generated, and what holds for ProtoJSON holds for gRPC.

use crate::model::error::{A2aError, ErrorKind};
use prost_reflect::{
    DescriptorPool, DeserializeOptions, DynamicMessage, MessageDescriptor, MethodDescriptor,
    prost::Message as _,
};
use serde_json::{Map, Number, Value};
use std::sync::LazyLock;

/// What is in `proto/`. Nothing of it, if that were broken: then no call is found, and the tests say so.
static KNOWN: LazyLock<DescriptorPool> = LazyLock::new(|| {
    let compiled = include_bytes!("../../proto/a2a.descriptors");
    DescriptorPool::decode(compiled.as_slice()).unwrap_or_default()
});

/// The full name of a refusal's message.
const STATUS: &str = "google.rpc.Status";

/// The full name of a card's message in 1.0.
const CARD: &str = "lf.a2a.v1.AgentCard";

/// A method of a gRPC service, as its descriptor has it.
#[derive(Clone, Debug)]
pub(crate) struct Rpc(MethodDescriptor);

impl Rpc {
    /// The method called `method` of the service with this full name.
    pub(crate) fn named(service: &str, method: &str) -> Option<Self> {
        KNOWN.get_service_by_name(service)?.methods().find(|it| it.name() == method).map(Self)
    }

    /// The names of a service's methods; none if there is no such service.
    pub(crate) fn names(service: &str) -> Vec<String> {
        let service = KNOWN.get_service_by_name(service);
        let methods = service.iter().flat_map(prost_reflect::ServiceDescriptor::methods);
        methods.map(|method| method.name().to_owned()).collect()
    }

    /// The path at which the method is called, below the place of the service.
    pub(crate) fn path(&self) -> String {
        format!("/{}/{}", self.0.parent_service().full_name(), self.0.name())
    }

    /// Whether the method is answered by a stream.
    pub(crate) fn streams(&self) -> bool {
        self.0.is_server_streaming()
    }

    /// What a client sent, as ProtoJSON.
    pub(crate) fn read_request(&self, sent: &[u8]) -> Result<Map<String, Value>, A2aError> {
        decode(self.0.input(), sent)
    }

    /// What a client sends, given as ProtoJSON.
    pub(crate) fn write_request(&self, params: Value) -> Result<Vec<u8>, A2aError> {
        encode(self.0.input(), params)
    }

    /// What a server answered, as ProtoJSON.
    pub(crate) fn read_answer(&self, sent: &[u8]) -> Result<Map<String, Value>, A2aError> {
        decode(self.0.output(), sent)
    }

    /// What a server answers, given as ProtoJSON.
    pub(crate) fn write_answer(&self, answer: Value) -> Result<Vec<u8>, A2aError> {
        encode(self.0.output(), answer)
    }
}

/// A `google.rpc.Status` as bytes; none if it cannot be written.
pub(crate) fn write_status(status: Value) -> Option<Vec<u8>> {
    encode(KNOWN.get_message_by_name(STATUS)?, status).ok()
}

/// A `google.rpc.Status` as ProtoJSON; none if these bytes are no such thing.
pub(crate) fn read_status(bytes: &[u8]) -> Option<Map<String, Value>> {
    decode(KNOWN.get_message_by_name(STATUS)?, bytes).ok()
}

/// A card of 1.0 without what its messages do not know, and without what is as good as left out (ProtoJSON); none if it is
/// no such card.
pub(crate) fn normal_card(card: &Value) -> Option<Value> {
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
    make_whole(&mut value);
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

/// Open-ended data has no whole numbers on gRPC; those that are whole were meant so.
fn make_whole(value: &mut Value) {
    /// Up to here a float tells one whole number from the next.
    const EXACT: f64 = 9_007_199_254_740_992.0;
    match value {
        Value::Number(number) => {
            let whole = number.as_f64().filter(|it| it.fract() == 0.0 && it.abs() <= EXACT);
            if let (true, Some(whole)) = (number.is_f64(), whole) {
                #[expect(clippy::cast_possible_truncation, reason = "it is whole, and no larger")]
                let whole = whole as i64;
                *number = Number::from(whole);
            }
        }
        Value::Array(items) => items.iter_mut().for_each(make_whole),
        Value::Object(members) => members.values_mut().for_each(make_whole),
        Value::Null | Value::Bool(_) | Value::String(_) => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::message::base64_bytes;

    /// A message of each kind, filled by an official SDK: its name, its bytes, and the SDK's own JSON of it.
    const OFFICIAL: &str = include_str!("../../proto/official.jsonl");

    /// They are made once and kept, for the compiler that makes them takes longer to build than this crate.
    #[test]
    fn the_descriptors_are_those_of_the_proto_files() {
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
    fn messages_are_those_of_the_official_clients() {
        let mut kinds = std::collections::BTreeSet::new();
        for line in OFFICIAL.lines() {
            let (name, bytes, mut json): (String, String, Value) =
                serde_json::from_str(line).unwrap();
            make_whole(&mut json);
            let bytes = base64_bytes::decode(&bytes).unwrap();
            let of = KNOWN.get_message_by_name(&name).unwrap_or_else(|| panic!("no {name}"));
            let read = decode(of.clone(), &bytes).unwrap();
            assert_eq!(Value::Object(read), json, "{name}");
            // In which order a map is written is nobody's business.
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
