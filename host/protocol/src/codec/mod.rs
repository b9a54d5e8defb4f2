//! What all wire forms share: how much of a request is read, members of a JSON object, ProtoJSON.

pub(crate) mod limits;
pub(crate) mod members;
pub(crate) mod protojson;
