//! Behaviours that use WASI directly: its supported interfaces, and its refusals.

use crate::input::{argument, number};
use a2a_hub_sdk::prelude::*;
use std::{
    collections::HashSet,
    env,
    hash::{BuildHasher as _, RandomState},
    io::{self, Read as _},
    thread,
    time::{Duration, Instant, SystemTime},
};

/// Opens a socket by TCP and by UDP, and reports the results.
pub(crate) fn connect(ctx: &Context, _: &Task) -> Run {
    ctx.done(system::connect())
}

/// `resolve NAME`: reports the addresses of a name.
pub(crate) fn resolve(ctx: &Context, task: &Task) -> Run {
    ctx.done(system::resolve(&argument(task)))
}

/// `wasi-fetch METHOD URL`: sends a request by WASI, as HTTP libraries of languages do.
pub(crate) fn fetch(ctx: &Context, task: &Task) -> Run {
    let argument = argument(task);
    let (method, url) = argument.split_once(' ').unwrap_or(("GET", &argument));
    ctx.done(system::fetch(method, url).unwrap_or_else(|why| format!("refused: {why}")))
}

/// Reports the numbers of arguments and environment variables.
pub(crate) fn arguments(ctx: &Context, _: &Task) -> Run {
    ctx.done(format!("{} arguments, {} variables", env::args().count(), env::vars().count()))
}

/// Reports the size of standard input.
pub(crate) fn stdin(ctx: &Context, _: &Task) -> Run {
    let mut text = String::new();
    match io::stdin().read_to_string(&mut text) {
        Ok(_) => ctx.done(format!("{} bytes", text.len())),
        Err(why) => ctx.done(format!("refused: {}", why.kind())),
    }
}

/// `nap MILLISECONDS`: sleeps by WASI, and reports whether it slept to the end.
#[expect(clippy::disallowed_methods, reason = "the clock of WASI is what is tried")]
pub(crate) fn nap(ctx: &Context, task: &Task) -> Run {
    let (begun, long) = (Instant::now(), Duration::from_millis(number(task)? as u64));
    ctx.say("good night")?;
    thread::sleep(long);
    ctx.done(if begun.elapsed() >= long { "slept" } else { "woken" })
}

/// Reports the approximate year.
#[expect(clippy::disallowed_methods, reason = "the clock of WASI is what is tried")]
pub(crate) fn clock(ctx: &Context, _: &Task) -> Run {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    ctx.done(format!("{}", 1970 + since.as_secs() / 31_556_952))
}

/// Reports the number of different values among ten random numbers.
pub(crate) fn dice(ctx: &Context, _: &Task) -> Run {
    let throws: HashSet<_> = (0..10).map(|n| RandomState::new().hash_one(n)).collect();
    ctx.done(throws.len().to_string())
}

/// Imported WASI functions.
#[cfg(target_arch = "wasm32")]
mod system {
    use wasip2::{
        http::{
            outgoing_handler,
            types::{Fields, IncomingBody, Method, OutgoingBody, OutgoingRequest, Scheme},
        },
        io::streams::StreamError,
        sockets::{
            instance_network::instance_network,
            ip_name_lookup::resolve_addresses,
            network::{IpAddressFamily, IpSocketAddress, Ipv4SocketAddress},
            tcp_create_socket::create_tcp_socket,
            udp_create_socket::create_udp_socket,
        },
    };

    pub(super) fn connect() -> String {
        let address = (127, 0, 0, 1);
        let address = IpSocketAddress::Ipv4(Ipv4SocketAddress { port: 22, address });
        let network = instance_network();
        let tcp = create_tcp_socket(IpAddressFamily::Ipv4)
            .and_then(|socket| socket.start_connect(&network, address));
        let udp = create_udp_socket(IpAddressFamily::Ipv4)
            .and_then(|socket| socket.start_bind(&network, address));
        format!("{tcp:?} {udp:?}")
    }

    pub(super) fn resolve(name: &str) -> String {
        let found = resolve_addresses(&instance_network(), name);
        format!("{:?}", found.map(|_| "found"))
    }

    pub(super) fn fetch(method: &str, url: &str) -> Result<String, String> {
        let wrong = |()| "the request cannot be made".to_owned();
        let (scheme, rest) = url.split_once("://").ok_or("say a whole URL")?;
        let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
        let scheme = if scheme == "http" { Scheme::Http } else { Scheme::Https };
        let headers = Fields::from_list(&[("x-own".to_owned(), b"1".to_vec())]);
        let request = OutgoingRequest::new(headers.map_err(|why| format!("{why:?}"))?);
        request.set_method(&Method::Other(method.to_owned())).map_err(wrong)?;
        request.set_scheme(Some(&scheme)).map_err(wrong)?;
        request.set_authority(Some(authority)).map_err(wrong)?;
        request.set_path_with_query(Some(path)).map_err(wrong)?;
        let body = request.body().map_err(wrong)?;
        let answer = outgoing_handler::handle(request, None).map_err(|why| format!("{why:?}"))?;
        if method == "POST" {
            let stream = body.write().map_err(wrong)?;
            stream.blocking_write_and_flush(b"hello").map_err(|why| format!("{why:?}"))?;
        }
        OutgoingBody::finish(body, None).map_err(|why| format!("{why:?}"))?;
        answer.subscribe().block();
        let answer = answer.get().ok_or("nothing came")?.map_err(wrong)?;
        let answer = answer.map_err(|why| format!("{why:?}"))?;
        let mut text = format!("{}\n", answer.status());
        for (name, value) in answer.headers().entries() {
            text += &format!("{name}: {}\n", String::from_utf8_lossy(&value));
        }
        let body: IncomingBody = answer.consume().map_err(wrong)?;
        let stream = body.stream().map_err(wrong)?;
        let mut bytes = Vec::new();
        loop {
            match stream.blocking_read(1 << 16) {
                Ok(piece) => bytes.extend(piece),
                Err(StreamError::Closed) => break,
                Err(why) => return Err(format!("{} bytes, and {why:?}", bytes.len())),
            }
        }
        Ok(text + &String::from_utf8_lossy(&bytes))
    }
}

/// WASI does not exist natively.
#[cfg(not(target_arch = "wasm32"))]
mod system {
    pub(super) fn connect() -> String {
        "only as a component".to_owned()
    }

    pub(super) fn resolve(name: &str) -> String {
        format!("{name}: only as a component")
    }

    pub(super) fn fetch(method: &str, url: &str) -> Result<String, String> {
        Err(format!("{method} {url}: only as a component"))
    }
}
