//! Behaviours that send requests over HTTP.

use crate::input::{argument, tell};
use a2a_hub_sdk::{Request, Response, Source, prelude::*};
use std::time::Duration;

/// `fetch URL`: sends a GET request.
pub(crate) fn fetch(ctx: &Context, task: &Task) -> Run {
    let response = ctx.fetch(&Request::get(argument(task)));
    tell(ctx, response.map(|response| format!("{}: {}", response.status, response.text())))
}

/// `request METHOD URL [NAME=VALUE ...] [-- BODY]`: reports the whole response with its headers.
pub(crate) fn request(ctx: &Context, task: &Task) -> Run {
    let argument = argument(task);
    let (head, body) = argument.split_once(" -- ").unwrap_or((&argument, ""));
    let mut words = head.split(' ');
    let (method, url) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    let headers = words.filter_map(|word| word.split_once('='));
    let request = headers
        .fold(Request::new(method, url), |request, (name, value)| request.header(name, value));
    tell(ctx, ctx.fetch(&request.body(body)).map(|response| whole(&response)))
}

fn whole(response: &Response) -> String {
    let headers = response.headers.iter().map(|(name, value)| format!("{name}: {value}\n"));
    format!("{}\n{}\n{}", response.status, headers.collect::<String>(), response.text())
}

/// `smuggle URL`: sends requests whose headers contain another header or another host; reports how
/// many were sent.
pub(crate) fn smuggle(ctx: &Context, task: &Task) -> Run {
    let url = argument(task);
    let headers = [
        ("x", "y\r\nHost: evil"),
        ("x\r\nhost", "evil"),
        ("x", "y\nz"),
        ("x", "y\0"),
        ("Host", "evil"),
        ("host", "evil"),
        ("Content-Length", "0"),
        ("Transfer-Encoding", "chunked"),
        ("Connection", "x-key"),
        ("Proxy-Authorization", "x"),
        ("X-Forwarded-For", "127.0.0.1"),
        ("Cookie", "session=1"),
        (":authority", "evil"),
        ("", "x"),
    ];
    let mut sent = 0;
    for (name, value) in headers {
        match ctx.fetch(&Request::get(&url).header(name, value)) {
            Ok(_) => sent += 1,
            Err(Failure::Invalid(_)) => {}
            Err(other) => return tell(ctx, Err(other)),
        }
    }
    ctx.done(format!("{sent} of {} were sent", headers.len()))
}

/// `pieces URL`: emits each chunk of a response as a chunk of an artifact.
pub(crate) fn pieces(ctx: &Context, task: &Task) -> Run {
    let told = ctx.exchange(&Request::get(argument(task))).and_then(|mut answer| {
        let mut bytes = 0;
        while let Some(piece) = answer.next_piece(None)? {
            bytes += piece.len();
            ctx.append(Artifact::text("pieces", String::from_utf8_lossy(&piece)), false)?;
        }
        Ok(format!("{}: {bytes} bytes", answer.status()))
    });
    tell(ctx, told)
}

/// `events URL`: emits the data of each server-sent event as it arrives.
pub(crate) fn events(ctx: &Context, task: &Task) -> Run {
    let told = ctx.exchange(&Request::get(argument(task))).and_then(|mut answer| {
        let mut count = 0;
        while let Some(event) = answer.next_event(None)? {
            count += 1;
            ctx.append(Artifact::text("events", event.data), false)?;
        }
        Ok(format!("{count} events"))
    });
    tell(ctx, told)
}

/// `exchanges URL`: opens responses without ending any, and reports their number at the first
/// refusal.
pub(crate) fn exchanges(ctx: &Context, task: &Task) -> Run {
    let mut open = Vec::new();
    let refusal = loop {
        match ctx.exchange(&Request::get(argument(task))) {
            Ok(answer) => open.push(answer),
            Err(failure) => break failure,
        }
    };
    ctx.say(format!("{} are open", open.len()))?;
    tell(ctx, Err(refusal))
}

/// `requests N URL`: sends N requests one after the other.
pub(crate) fn requests(ctx: &Context, task: &Task) -> Run {
    let argument = argument(task);
    let (count, url) = argument.split_once(' ').unwrap_or((&argument, ""));
    let count: usize = count.parse().unwrap_or(0);
    for n in 0..count {
        if let Err(failure) = ctx.fetch(&Request::get(url)) {
            ctx.say(format!("{n} were sent"))?;
            return tell(ctx, Err(failure));
        }
    }
    ctx.done(format!("{count} were sent"))
}

/// `any-of MILLISECONDS URL`: waits for a response, a program that sleeps a second, and a timeout;
/// reports the ready sources of each wait until the response has ended.
pub(crate) fn any_of(ctx: &Context, task: &Task) -> Run {
    let argument = argument(task);
    let (millis, url) = argument.split_once(' ').unwrap_or((&argument, ""));
    let patience = millis.parse().map(Duration::from_millis).ok();
    let child = ctx.spawn(Command::new("sleep").arg("1"))?;
    let mut answer = ctx.exchange(&Request::get(url))?;
    let mut told = Vec::new();
    loop {
        // The same source twice is ready twice.
        let sources = [Source::Exchange(&answer), Source::Child(&child), Source::Exchange(&answer)];
        let ready = ctx.wait(&sources, patience)?;
        told.push(format!("{ready:?}"));
        if ready.contains(&0) && answer.next_piece(None)?.is_none() {
            return ctx.done(told.join(" "));
        }
        if ready.contains(&1) || told.len() > 50 {
            return ctx.done(told.join(" "));
        }
    }
}
