//! Agent Cards as documents (A2A 1.0, section 8): parsed from components and remote agents, and
//! written for each kind of client.

pub mod extended;
mod foreign;
mod input_schema;
mod interfaces;
mod local_hub;
mod parse;
mod signed;
mod v1_and_v03;

pub use crate::codec::protobuf::normal_card;
pub use crate::model::card::{AgentCard, Skill, is_in_range};
pub use foreign::ForeignCard;
pub use input_schema::{INPUT_SCHEMA, InputSchema, InvalidInputSchema, Violation};
pub use interfaces::read_interfaces;
pub use local_hub::OF_THE_HUB;
pub use parse::InvalidCard;
pub use signed::{SignedCard, signed_cards, without_signatures};
pub use v1_and_v03::{Endpoints, NDJSON};
