//! The other end of an HTTP connection.

use super::peers::Peers;
use a2a_hub_core::access::Principal;
use std::{net::SocketAddr, sync::Arc};
use tokio::sync::OnceCell;

/// The other end of a connection.
#[derive(Clone)]
pub(super) struct Caller(Arc<Ends>);

struct Ends {
    local: Option<SocketAddr>,
    remote: SocketAddr,
    peers: Peers,
    /// Found out once: who connected is who asks.
    principal: OnceCell<Option<Principal>>,
}

impl Caller {
    /// That of a connection with these ends.
    pub(super) fn new(local: Option<SocketAddr>, remote: SocketAddr, peers: Peers) -> Self {
        Self(Arc::new(Ends { local, remote, peers, principal: OnceCell::new() }))
    }

    /// Who is at the other end, if it is a program of the hub's own user.
    pub(super) async fn own_user(&self) -> Option<&Principal> {
        let Ends { local, remote, peers, principal } = &*self.0;
        let ends = ((*local)?, *remote);
        let look = || peers.who(ends);
        principal.get_or_init(look).await.as_ref()
    }
}
