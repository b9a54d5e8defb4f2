//! HTTP requests to granted hosts, answered whole or streamed.

use super::timeout::deadline;
use crate::store::{
    bindings::a2a::hub::{
        http::{Host, HostExchange, Request, Response},
        types,
    },
    convert::failure_to_guest,
    http_egress::{DEFAULT_TIMEOUT, HttpEgress, MAX_TIMEOUT, OpenResponse},
    resources::Exchange,
    state::GuestState,
};
use a2a_hub_runtime::{
    Failure,
    port::http::{BodyPort, HttpResponse},
};
use std::time::Duration;
use tokio::time::timeout;
use wasmtime::component::Resource;

/// Longest response returned whole, in bytes: it takes that much memory of the hub, and of the
/// guest.
const MAX_BODY_BYTES: usize = 4 << 20;

/// Sends a request and waits for the head of the response.
async fn open(egress: &HttpEgress, request: Request) -> Result<OpenResponse, Failure> {
    let response_timeout = request_timeout(&request);
    let Request { method, url, headers, body, timeout_ms: _ } = request;
    let begun = egress.begin(&method, &url)?;
    egress.count(&body)?;
    egress.send(begun, headers, body, response_timeout).await
}

fn request_timeout(request: &Request) -> Duration {
    let requested = request.timeout_ms.map(|ms| Duration::from_millis(ms.into()));
    requested.unwrap_or(DEFAULT_TIMEOUT).min(MAX_TIMEOUT)
}

async fn fetch(egress: &HttpEgress, request: Request) -> Result<Response, Failure> {
    let response_timeout = request_timeout(&request);
    let fetched = async {
        let OpenResponse { answer, permit: _permit } = open(egress, request).await?;
        let HttpResponse { status, headers, mut body } = answer;
        let body = read_body(egress, body.as_mut()).await?;
        Ok(Response { status, headers: headers_to_guest(headers), body })
    };
    timeout(response_timeout, fetched).await.unwrap_or(Err(Failure::Timeout))
}

async fn read_body(egress: &HttpEgress, body: &mut dyn BodyPort) -> Result<Vec<u8>, Failure> {
    let mut bytes = Vec::new();
    while let Some(piece) = body.next().await? {
        egress.count(&piece)?;
        if bytes.len() + piece.len() > MAX_BODY_BYTES {
            return Err(Failure::Exhausted(format!(
                "read an answer whole: it is longer than {} MiB; read it as an exchange, piece by piece",
                MAX_BODY_BYTES >> 20
            )));
        }
        bytes.extend(piece);
    }
    Ok(bytes)
}

impl GuestState {
    async fn open_exchange(&mut self, request: Request) -> Result<Resource<Exchange>, Failure> {
        let opened = open(&self.http, request).await?;
        self.table.push(Exchange::new(opened.answer, opened.permit)).map_err(|_| {
            Failure::Exhausted("send a request: too many handles are open; drop some".to_owned())
        })
    }

    async fn fetch_response(&mut self, request: Request) -> Result<Response, Failure> {
        let cancel = self.cancel.clone();
        tokio::select! {
            biased;
            () = cancel.cancelled() => Err(Failure::Cancelled),
            fetched = fetch(&self.http, request) => fetched,
        }
    }
}

fn headers_to_guest(headers: Vec<(String, Vec<u8>)>) -> Vec<(String, String)> {
    let text = |value: Vec<u8>| String::from_utf8_lossy(&value).into_owned();
    headers.into_iter().map(|(name, value)| (name, text(value))).collect()
}

impl Host for GuestState {
    async fn fetch(
        &mut self,
        request: Request,
    ) -> wasmtime::Result<Result<Response, types::Failure>> {
        Ok(self.fetch_response(request).await.map_err(failure_to_guest))
    }
}

impl HostExchange for GuestState {
    async fn send(
        &mut self,
        request: Request,
    ) -> wasmtime::Result<Result<Resource<Exchange>, types::Failure>> {
        Ok(self.open_exchange(request).await.map_err(failure_to_guest))
    }

    async fn status(&mut self, exchange: Resource<Exchange>) -> wasmtime::Result<u16> {
        Ok(self.table.get(&exchange)?.status)
    }

    async fn headers(
        &mut self,
        exchange: Resource<Exchange>,
    ) -> wasmtime::Result<Vec<(String, String)>> {
        Ok(headers_to_guest(self.table.get(&exchange)?.headers.clone()))
    }

    async fn next(
        &mut self,
        exchange: Resource<Exchange>,
        timeout_ms: Option<u32>,
    ) -> wasmtime::Result<Result<Option<Vec<u8>>, types::Failure>> {
        if let Err(why) = self.require_in_step("read an answer") {
            return Ok(Err(failure_to_guest(why)));
        }
        let cancel = self.cancel.clone();
        let exchange = self.table.get_mut(&exchange)?;
        let received = tokio::select! {
            biased;
            () = cancel.cancelled() => Err(Failure::Cancelled),
            said = exchange.next() => said,
            () = deadline(timeout_ms) => Err(Failure::Timeout),
        };
        let counted = received.and_then(|piece| {
            let counted = piece.as_ref().map_or(Ok(()), |piece| self.http.count(piece));
            if counted.is_err() {
                exchange.hang_up();
            }
            counted.map(|()| piece)
        });
        Ok(counted.map_err(failure_to_guest))
    }

    async fn drop(&mut self, exchange: Resource<Exchange>) -> wasmtime::Result<()> {
        self.table.delete(exchange)?;
        Ok(())
    }
}
