//! Paths of official A2A's endpoints: `/a2a` for the hub, `/agents/{id}` for each agent; the prefix
//! of webhooks, and of the hub's methods over REST; and those of the web page.

use a2a_hub_protocol::{
    error::{A2aError, ErrorKind},
    hub::answer::AGENTS,
    id::AgentId,
};
use a2a_hub_rpc::dispatcher::HUB;
use percent_encoding::percent_decode_str;

/// Prefix of the paths that take webhooks for triggers.
pub(crate) const HOOKS: &str = "/hooks/";

/// Path at which a person exchanges an invitation for a key.
pub(crate) const JOIN: &str = "/join";

/// Prefix of the paths of the hub's methods, which is that of their names.
pub(crate) const HUB_METHODS: &str = "/hub/";

/// Path of the web page's first view, and prefix of its files and other views.
pub(crate) const PAGE: &str = "/ui/";

/// Path at which a browser presents its key.
pub(crate) const PAIR: &str = "/ui/pair";

/// True for the path of a file or a view of the web page.
pub(super) fn is_of_page(path: &str) -> bool {
    path == "/ui" || path.starts_with(PAGE)
}

/// Parsed path of an official A2A endpoint.
#[derive(Debug, PartialEq)]
pub(crate) struct EndpointPath<'a> {
    /// Agent of the endpoint; `None` for the hub.
    pub(crate) agent: Option<AgentId>,
    /// Rest of the path, without a leading slash.
    pub(crate) subpath: &'a str,
}

impl<'a> EndpointPath<'a> {
    /// Parses a `path` that begins with the prefix of a hub or agent endpoint.
    pub(crate) fn parse(path: &'a str) -> Result<Self, A2aError> {
        let subpath_from = |endpoint: usize| {
            let subpath = &path[endpoint..];
            subpath.strip_prefix('/').unwrap_or(subpath)
        };
        if let Some(rest) = path.strip_prefix(AGENTS) {
            let id = rest.split('/').next().unwrap_or_default();
            let subpath = subpath_from(AGENTS.len() + id.len());
            // A percent-encoded letter is the same letter (RFC 3986, section 6.2.2.2).
            let name = percent_decode_str(id).decode_utf8_lossy();
            let agent = AgentId::parse(name.into_owned())
                .map_err(|why| A2aError::new(ErrorKind::AgentNotFound, why.to_string()))?;
            return Ok(Self { agent: Some(agent), subpath });
        }
        Ok(Self { agent: None, subpath: subpath_from(HUB.len()) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn path_resolves_to_endpoint_and_rest() {
        let echo = AgentId::parse("echo").unwrap();
        for (path, agent, subpath) in [
            ("/a2a", None, ""),
            ("/a2a/", None, ""),
            ("/a2a/rest/v1/card", None, "rest/v1/card"),
            ("/agents/echo", Some(echo.clone()), ""),
            ("/agents/echo/", Some(echo.clone()), ""),
            ("/agents/%65ch%6F/rest/a%2Fb", Some(echo.clone()), "rest/a%2Fb"),
            ("/agents/echo/rest/tasks", Some(echo), "rest/tasks"),
        ] {
            assert_eq!(
                EndpointPath::parse(path).unwrap(),
                EndpointPath { agent, subpath },
                "{path}"
            );
        }
        for path in ["/agents/..%2Fx", "/agents/%ff", "/agents/echo%2Frest", "/agents/%"] {
            assert_eq!(
                EndpointPath::parse(path).unwrap_err().kind,
                ErrorKind::AgentNotFound,
                "{path}"
            );
        }
    }
}
