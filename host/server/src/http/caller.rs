//! Peer of an HTTP connection.

use a2a_hub_core::access_control::Principal;
use a2a_hub_rpc::peer::batch::PeerLookup;
use a2a_hub_tls::ClientCertificate;
use std::{net::SocketAddr, sync::Arc};
use tokio::sync::OnceCell;

/// Peer of a connection.
#[derive(Clone)]
pub(crate) struct HttpPeer {
    inner: Arc<PeerInner>,
    certificate: Option<Arc<ClientCertificate>>,
}

struct PeerInner {
    local: Option<SocketAddr>,
    remote: SocketAddr,
    peers: PeerLookup,
    /// Cached on first use, because the peer of a connection does not change.
    principal: OnceCell<Option<Principal>>,
}

impl HttpPeer {
    /// Creates the peer of a connection between these addresses.
    pub(crate) fn new(local: Option<SocketAddr>, remote: SocketAddr, peers: PeerLookup) -> Self {
        let inner = Arc::new(PeerInner { local, remote, peers, principal: OnceCell::new() });
        Self { inner, certificate: None }
    }

    /// Sets the certificate that the peer proved to have in the handshake.
    pub(crate) fn with_certificate(self, certificate: Option<Arc<ClientCertificate>>) -> Self {
        Self { certificate, ..self }
    }

    /// Certificate of the peer, which its CA vouches for.
    pub(crate) fn certificate(&self) -> Option<&ClientCertificate> {
        self.certificate.as_deref()
    }

    /// Address of the peer.
    pub(crate) fn address(&self) -> SocketAddr {
        self.inner.remote
    }

    /// Principal of the peer, if it is a program of the hub's own user.
    pub(crate) async fn same_user(&self) -> Option<&Principal> {
        let PeerInner { local, remote, peers, principal } = &*self.inner;
        let ends = ((*local)?, *remote);
        let identify = || peers.identify(ends);
        principal.get_or_init(identify).await.as_ref()
    }
}
