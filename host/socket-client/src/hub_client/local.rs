//! Connection to the hub of this machine, over its unix socket.

use super::{Client, hangs};
use crate::{
    failure::{CommandError, HUB_NOT_RUNNING},
    global::Global,
    running_hub,
};
use a2a_hub_process::daemon;
use a2a_hub_store::sqlite::LOCK_FILE;
use a2a_hub_terminal::render::shell_word;
use anyhow::anyhow;
use std::{
    io,
    path::{Path, PathBuf},
    time::Duration,
};
use tokio::net::UnixStream;

/// Process id and socket of the hub that owns this data directory.
fn owner(global: &Global) -> Option<(i32, PathBuf)> {
    let dir = global.data_dir().ok()?;
    let run = running_hub::read_if_running(&dir)?;
    let socket = running_hub::socket(&run)?;
    // A hub that is starting or stopping is no problem.
    let holder = daemon::holder(&dir.join(LOCK_FILE)).ok()??;
    (run["pid"] == holder.pid).then_some((holder.pid, socket))
}

/// Error for a socket on which nothing listens. A running hub either lost this socket, or listens
/// on another one.
fn not_reached(path: &Path, is_option: bool, owner: Option<(i32, PathBuf)>) -> CommandError {
    let is_same = |socket: &Path| std::path::absolute(path).is_ok_and(|path| path == socket);
    let socket_path = path.display();
    let (why, mend) = match owner {
        Some((pid, socket)) if is_same(&socket) => (
            format!(
                "it runs (process {pid}), but its socket {socket_path} was removed; `a2a-hub stop \
                 --force` stops it"
            ),
            "a2a-hub stop --force".to_owned(),
        ),
        Some((pid, socket)) => {
            let listens = socket.display();
            let way = if is_option { "leave `--socket` out" } else { "give `--socket` with it" };
            let mend = format!("a2a-hub --socket {} status", shell_word(&listens.to_string()));
            let why = format!(
                "nothing listens on {socket_path}; the hub of this data directory (process {pid}) \
                 listens on {listens}; {way}"
            );
            (why, mend)
        }
        None => {
            let why = format!("nothing listens on {socket_path}; start it with `a2a-hub start`");
            (why, "a2a-hub start".to_owned())
        }
    };
    CommandError::new(HUB_NOT_RUNNING, format!("connect to the hub: {why}")).mended_by(mend)
}

impl Client {
    /// Connects to the hub that the other options name, without waiting for an answer.
    pub(super) async fn reach_unnamed(global: &Global, timeout: Duration) -> anyhow::Result<Self> {
        let path = global.socket_path()?;
        let absent = [io::ErrorKind::NotFound, io::ErrorKind::ConnectionRefused];
        let mut client = Self::to(&path).await.map_err(|why| {
            if absent.contains(&why.kind()) {
                not_reached(&path, global.socket.is_some(), owner(global)).into()
            } else if why.kind() == io::ErrorKind::WouldBlock {
                // The listen backlog is full.
                hangs(None, timeout).into()
            } else {
                anyhow!("connect to the hub on {}: {why}", path.display())
            }
        })?;
        client.tenant.clone_from(&global.tenant);
        Ok(client)
    }

    /// Connects to the socket at `path`, which must belong to this user.
    pub async fn to(path: &Path) -> io::Result<Self> {
        let stream = UnixStream::connect(path).await?;
        let peer = stream.peer_cred()?;
        if peer.uid() != rustix::process::geteuid().as_raw() {
            let why = "the socket belongs to another user";
            return Err(io::Error::new(io::ErrorKind::PermissionDenied, why));
        }
        let (read, write) = stream.into_split();
        Ok(Self::of_halves(read, write, peer.pid()))
    }
}

#[cfg(test)]
mod tests {
    use super::{super::LOOKUP_METHODS, *};
    use crate::failure::{CONNECTION_LOST, HUB_HANGS, to_text};
    use serde_json::json;
    use tokio::{
        io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader},
        net::UnixListener,
        time::{Instant, timeout},
    };

    #[test]
    fn mistyped_socket_names_right_one() {
        let told = |is_option, owner| {
            to_text(&not_reached(Path::new("/run/a.sock"), is_option, owner).into())
        };
        let at = |socket: &str| Some((7, PathBuf::from(socket)));
        let removed = told(true, at("/run/a.sock"));
        assert!(removed.contains("was removed") && removed.contains("stop --force"), "{removed}");
        for is_option in [true, false] {
            let other = told(is_option, at("/run/b.sock"));
            assert!(other.contains("(process 7) listens on /run/b.sock"), "{other}");
            assert!(other.contains("a2a-hub --socket /run/b.sock status"), "{other}");
            assert!(!other.contains("stop"), "{other}");
        }
        assert!(told(true, None).contains("a2a-hub start"));
    }

    /// The response to an unreadable request has no id (JSON-RPC 2.0, section 5) and still counts.
    #[tokio::test]
    async fn response_without_id_answers_last_request() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("hub.sock");
        let hub = UnixListener::bind(&path).unwrap();
        let refusing = async {
            let (stream, _) = hub.accept().await.unwrap();
            let mut stream = BufReader::new(stream);
            stream.read_line(&mut String::new()).await.unwrap();
            let refusal = json!({ "jsonrpc": "2.0", "id": null, "error": { "code": -32600, "message": "too long" } });
            stream.write_all(format!("{refusal}\n").as_bytes()).await.unwrap();
            stream
        };
        let calling = async {
            let mut client = Client::to(&path).await.unwrap();
            client.call("message/send", json!({})).await.unwrap_err().to_string()
        };
        let (_stream, why) = tokio::join!(refusing, calling);
        assert_eq!(why, "too long");
    }

    #[tokio::test]
    async fn refused_connection_reports_reason() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("hub.sock");
        let hub = UnixListener::bind(&path).unwrap();
        let mut client = Client::to(&path).await.unwrap();
        let (mut stream, _) = hub.accept().await.unwrap();
        let refusal = json!({ "jsonrpc": "2.0", "id": null, "error": { "code": -32004, "message": "no room" } });
        stream.write_all(format!("{refusal}\n").as_bytes()).await.unwrap();
        drop(stream);
        let why = client.call("hub/status", json!({})).await.unwrap_err();
        assert_eq!(why.to_string(), "no room");
        let why = client.call("hub/status", json!({})).await.unwrap_err();
        assert!(CommandError::from_error(&why).is(CONNECTION_LOST), "{why}");
    }

    /// The hub in this test accepts requests and never answers.
    #[tokio::test(start_paused = true)]
    async fn unanswered_lookup_reports_hanging_hub() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("hub.sock");
        let _hub = UnixListener::bind(&path).unwrap();
        let mut client = Client::to(&path).await.unwrap();
        let begun = Instant::now();
        for method in LOOKUP_METHODS {
            let why = client.call(method, json!({})).await.unwrap_err();
            assert!(CommandError::from_error(&why).is(HUB_HANGS), "{method}: {why}");
        }
        assert_eq!(begun.elapsed().as_secs(), 5 * LOOKUP_METHODS.len() as u64);
        let sent = client.call("message/send", json!({}));
        assert!(timeout(Duration::from_secs(3600), sent).await.is_err(), "agents take their time");
    }
}
