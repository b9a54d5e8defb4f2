//! Peer of an HTTP connection.

use crate::peer::batch::Peers;
use a2a_hub_core::access_control::Principal;
use std::{net::SocketAddr, sync::Arc};
use tokio::sync::OnceCell;

/// Peer of a connection.
#[derive(Clone)]
pub(crate) struct Caller(Arc<Ends>);

struct Ends {
    local: Option<SocketAddr>,
    remote: SocketAddr,
    peers: Peers,
    /// Cached on first use, because the peer of a connection does not change.
    principal: OnceCell<Option<Principal>>,
}

impl Caller {
    /// Creates the peer of a connection between these addresses.
    pub(crate) fn new(local: Option<SocketAddr>, remote: SocketAddr, peers: Peers) -> Self {
        Self(Arc::new(Ends { local, remote, peers, principal: OnceCell::new() }))
    }

    /// Principal of the peer, if it is a program of the hub's own user.
    pub(crate) async fn own_user(&self) -> Option<&Principal> {
        let Ends { local, remote, peers, principal } = &*self.0;
        let ends = ((*local)?, *remote);
        let look = || peers.who(ends);
        principal.get_or_init(look).await.as_ref()
    }
}
