//! Codecs shared by all wire forms: request limits, JSON members, JSON of the model, ProtoJSON and
//! Protocol Buffers.

pub(crate) mod foreign;
pub(crate) mod json_path;
pub mod limits;
pub(crate) mod members;
pub(crate) mod protobuf;
pub(crate) mod protojson;
pub(crate) mod spelled;
