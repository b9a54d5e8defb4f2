//! Step of a flow file before the checks of the whole flow.

use super::repetition::{EachLimits, Join};
use crate::flow::{
    definition::Step,
    position::Table,
    scope::{SourceRange, Texts},
};

/// A step with the positions that later checks need.
pub(super) struct Draft<'a, 't> {
    pub(super) step: Step,
    pub(super) at: SourceRange,
    pub(super) table: Table<'a, 't>,
    pub(super) needs: Vec<(String, SourceRange)>,
    pub(super) join: Join,
    pub(super) texts: Texts,
    pub(super) each_limits: EachLimits,
}
