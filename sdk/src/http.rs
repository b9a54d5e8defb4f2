//! HTTP requests to hosts that the operator allowed.

use std::borrow::Cow;

use crate::host::Host;
use crate::{Context, Failure, Request, Response};

impl Context {
    /// Sends a request and waits for the whole response.
    pub fn fetch(&self, request: &Request) -> Result<Response, Failure> {
        self.hub.fetch(request)
    }
}

impl Request {
    /// Creates a request without a body.
    pub fn new(method: impl Into<String>, url: impl Into<String>) -> Self {
        Self {
            method: method.into(),
            url: url.into(),
            headers: Vec::new(),
            body: Vec::new(),
            timeout_ms: None,
        }
    }

    /// Creates a GET request.
    pub fn get(url: impl Into<String>) -> Self {
        Self::new("GET", url)
    }

    /// Adds a header.
    #[must_use]
    pub fn header(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.headers.push((name.into(), value.into()));
        self
    }

    /// Sets the body.
    #[must_use]
    pub fn body(mut self, body: impl Into<Vec<u8>>) -> Self {
        self.body = body.into();
        self
    }
}

impl Response {
    /// Body as text.
    pub fn text(&self) -> Cow<'_, str> {
        String::from_utf8_lossy(&self.body)
    }

    /// First header of that name, case-insensitive.
    pub fn header(&self, name: &str) -> Option<&str> {
        let header = self.headers.iter().find(|(key, _)| key.eq_ignore_ascii_case(name));
        header.map(|(_, value)| value.as_str())
    }
}
