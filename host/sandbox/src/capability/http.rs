//! Hosts the operator allowed: none can be granted yet, so every request is denied.

use crate::{
    bindings::a2a::hub::{
        http::{Host, Request, Response},
        types,
    },
    state::State,
};

impl Host for State {
    async fn fetch(
        &mut self,
        request: Request,
    ) -> wasmtime::Result<Result<Response, types::Failure>> {
        let why = format!("fetch `{}`: this hub grants no agent the network", request.url);
        Ok(Err(types::Failure::Denied(why)))
    }
}
