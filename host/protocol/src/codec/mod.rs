//! What all wire forms share: how much of a request is read, members of a JSON object, nouns as JSON, ProtoJSON, and Protocol Buffers.

pub(crate) mod limits;
pub(crate) mod members;
pub(crate) mod protobuf;
pub(crate) mod protojson;
pub(crate) mod spelled;
