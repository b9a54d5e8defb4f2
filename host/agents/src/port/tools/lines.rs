//! Lines of an MCP server's program, mended for the protocol's library, which ignores a line that
//! it cannot read: its caller would then wait until the deadline.

use a2a_hub_protocol::foreign::{self, NotJson};
use serde_json::{Value, json};

/// Longest line from the server, in bytes: a result with its frame.
pub(super) const MAX_LINE: usize = 4 << 20;

/// Error: a line is longer than [`MAX_LINE`].
#[derive(Debug, PartialEq)]
pub(super) struct LineTooLong;

/// Splits the program's output into lines.
#[derive(Default)]
pub(super) struct ServerLines {
    partial: Vec<u8>,
}

/// Lines to pass on.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Relayed {
    /// Mended lines of the server, and an error in place of each response that is not JSON.
    pub(super) to_hub: Vec<u8>,
    /// Error responses to requests that are not JSON.
    pub(super) to_server: Vec<u8>,
}

impl ServerLines {
    /// Adds output, and returns the lines that are complete by now.
    pub(super) fn feed(&mut self, bytes: &[u8]) -> Result<Relayed, LineTooLong> {
        let mut relayed = Relayed::default();
        for piece in bytes.split_inclusive(|byte| *byte == b'\n') {
            self.partial.extend_from_slice(piece);
            if self.partial.len() > MAX_LINE {
                return Err(LineTooLong);
            }
            if piece.ends_with(b"\n") {
                relayed.add(&std::mem::take(&mut self.partial));
            }
        }
        Ok(relayed)
    }

    /// Returns the last line of a program that exited.
    pub(super) fn end(&mut self) -> Relayed {
        let mut relayed = Relayed::default();
        relayed.add(&std::mem::take(&mut self.partial));
        relayed
    }
}

impl Relayed {
    fn add(&mut self, line: &[u8]) {
        let line = line.trim_ascii();
        if line.is_empty() {
            return;
        }
        let Err(NotJson { why, mut members }) = foreign::read(line) else {
            return push(&mut self.to_hub, &foreign::mended(line));
        };
        let id = members.remove("id").filter(|id| id.is_string() || id.is_number());
        tracing::warn!(%why, ?id, "a line of an MCP server is not JSON");
        let Some(id) = id else { return };
        let error = error(&id, &format!("the line is not JSON: {why}"));
        let is_request = members.contains_key("method");
        push(if is_request { &mut self.to_server } else { &mut self.to_hub }, &error);
    }
}

fn push(to: &mut Vec<u8>, line: &[u8]) {
    to.extend_from_slice(line);
    to.push(b'\n');
}

fn error(id: &Value, why: &str) -> Vec<u8> {
    let error = json!({ "code": -32700, "message": why });
    json!({ "jsonrpc": "2.0", "id": id, "error": error }).to_string().into_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(bytes: &[u8]) -> String {
        String::from_utf8(bytes.to_vec()).unwrap()
    }

    #[test]
    fn lines_are_mended_across_chunks() {
        let output = b"\xef\xbb\xbf{\"id\":1,\"result\":\"\\ud83d\"}\r\n\nstarting \xff\n{\"a\":2}";
        for size in 1..=output.len() {
            let mut lines = ServerLines::default();
            let mut to_hub = Vec::new();
            for chunk in output.chunks(size) {
                to_hub.extend(lines.feed(chunk).unwrap().to_hub);
            }
            assert_eq!(text(&to_hub), "{\"id\":1,\"result\":\"\\ufffd\"}\n");
            assert_eq!(text(&lines.end().to_hub), "{\"a\":2}\n");
        }
    }

    #[test]
    fn cut_line_is_answered_by_kind() {
        let taken =
            |line: &str| ServerLines::default().feed(format!("{line}\n").as_bytes()).unwrap();
        let response = taken(r#"{"jsonrpc":"2.0","id":1,"result":{"content":["#);
        let error: Value = serde_json::from_slice(&response.to_hub).unwrap();
        assert_eq!((&error["id"], &error["error"]["code"]), (&json!(1), &json!(-32700)));
        assert!(response.to_server.is_empty());
        let request = taken(r#"{"jsonrpc":"2.0","id":"a","method":"roots/list","params":"#);
        let error: Value = serde_json::from_slice(&request.to_server).unwrap();
        assert_eq!(error["id"], "a");
        assert!(request.to_hub.is_empty());
        assert_eq!(taken(r#"{"method":"notifications/message","params":"#), Relayed::default());
    }

    #[test]
    fn long_line_is_refused() {
        let mut lines = ServerLines::default();
        assert!(lines.feed(&vec![b'x'; MAX_LINE - 1]).is_ok());
        assert!(lines.feed(b"\n").is_ok());
        assert!(lines.feed(&vec![b'x'; MAX_LINE]).is_ok());
        assert_eq!(lines.feed(b"x\n"), Err(LineTooLong));
    }
}
