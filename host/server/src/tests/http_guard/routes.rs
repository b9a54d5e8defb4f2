//! Each route with keys of each kind.

use super::*;

impl TestServer {
    /// Status of the response, with the code of an error in its body or head.
    async fn outcome(&self, binding: BoundRequest, headers: &str) -> String {
        let (method, path, body) = binding;
        if body == "grpc" || body == "websocket" {
            let head = self.head(binding, headers).await;
            let status = head.split(' ').nth(1).unwrap_or("none").to_owned();
            let of_grpc = head.lines().find_map(|line| line.strip_prefix("grpc-status: "));
            return of_grpc.map_or(status, |code| format!("grpc {code}"));
        }
        let headers = headers.replace("HERE", &self.address.to_string()).replace('|', "\r\n");
        let text = format!(
            "{method} {path} HTTP/1.1\r\nconnection: close\r\naccept: application/json, text/event-stream\r\n\
             content-type: application/json\r\ncontent-length: {}\r\n{headers}\r\n\r\n{body}",
            body.len()
        );
        let mut stream = TcpStream::connect(self.address).await.unwrap();
        stream.write_all(text.as_bytes()).await.unwrap();
        let mut answer = Vec::new();
        stream.take(1 << 20).read_to_end(&mut answer).await.unwrap();
        let answer = String::from_utf8_lossy(&answer);
        let status = answer.split(' ').nth(1).unwrap_or("none").to_owned();
        let code = answer.split_once("\"code\":").map(|(_, code)| {
            code.chars().take_while(|it| it.is_ascii_digit() || *it == '-').collect::<String>()
        });
        match code {
            Some(code) if code != status => format!("{status} {code}"),
            Some(_) | None => status,
        }
    }
}

/// A route that is no operation stands in the table, too.
#[tokio::test(flavor = "multi_thread")]
async fn routes_need_scopes_of_the_table() {
    let tokens = TestTokens::new();
    let server = TestServer::new(Own, &tokens).await;
    let perform = async |request: PeopleRequest| {
        let operation = Operation::People(request);
        let hub = server.hub.dispatcher.hub();
        hub.handle(&Principal::Operator, None, operation).await.unwrap()
    };
    let mut keys = vec![("nobody", String::new())];
    for (label, role, scopes) in [
        ("viewer", "viewer", &[][..]),
        ("sends", "member", &["send"]),
        ("reads", "owner", &["read:own"]),
        ("owner", "owner", &[]),
        ("admin", "owner", &["admin", "admin:grant", "apply"]),
    ] {
        let (name, role) = (label.to_owned(), role.to_owned());
        perform(PeopleRequest::Add { name: name.clone(), role }).await;
        let scopes = scopes.iter().map(|scope| (*scope).to_owned()).collect();
        let terms = KeyTerms { person: name, label: String::new(), scopes, for_ms: 0 };
        match perform(PeopleRequest::NewKey(terms)).await {
            Reply::One(Answer::People(PeopleReport::NewKey(made))) => {
                keys.push((label, format!("|authorization: Bearer {}", made.secret)));
            }
            Reply::One(_) | Reply::Stream(_) => panic!("no key"),
        }
    }
    let more: [BoundRequest; 6] = [
        ("POST", "/", r#"{"jsonrpc":"2.0","id":1,"method":"hub/status"}"#),
        ("POST", "/", r#"{"jsonrpc":"2.0","id":1,"method":"hub/people/list"}"#),
        ("POST", "/", r#"{"jsonrpc":"2.0","id":1,"method":"hub/plugins/list"}"#),
        ("POST", "/hub/people/list", "{}"),
        ("GET", "/ui", ""),
        ("GET", "/ready", ""),
    ];
    let mut rows = vec![
        format!("{:<38}", "")
            + &keys.iter().map(|(label, _)| format!("{label:>12}")).collect::<String>(),
    ];
    for (method, path, body) in BINDINGS.into_iter().map(|(_, binding)| binding).chain(more) {
        let of = body.split("\"method\":\"").nth(1).and_then(|rest| rest.split('"').next());
        let mut row = format!("{:<38}", format!("{method} {path} {}", of.unwrap_or_default()));
        for (_, key) in &keys {
            let outcome = server.outcome((method, path, body), &format!("host: HERE{key}")).await;
            write!(row, "{outcome:>12}").unwrap();
        }
        rows.push(row.trim_end().to_owned());
    }
    insta::assert_snapshot!(rows.join("\n"));
}
