//! Proof of possession of a device's key for one HTTP request: the claims of a DPoP proof (RFC
//! 9449, section 4.3). The engine checks its signature.

use serde::Deserialize;
use std::collections::HashMap;

/// Largest difference between the time of a proof and that of the hub, in seconds. A browser on
/// another machine follows the hub's `Date`.
const MAX_SKEW: u64 = 60;

/// Difference that a proof from before the start of the hub may have, in seconds: `Date` has whole
/// seconds.
const START_SKEW: u64 = 2;

/// Longest id of a proof, in bytes.
const MAX_JTI: usize = 128;

/// Largest number of remembered proofs of one device: some 160 requests a second.
const MAX_PROOFS: usize = 20_000;

/// Claims of a proof.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct ProofClaims {
    /// Unique id of the proof.
    pub jti: String,
    /// HTTP method.
    pub htm: String,
    /// URL of the request, without query and fragment.
    pub htu: String,
    /// Time of the proof, in seconds since 1970.
    pub iat: u64,
    /// SHA-256 digest of the access token, in base64url; none for a pairing.
    #[serde(default)]
    pub ath: Option<String>,
}

/// Request that a proof has to be about.
#[derive(Clone, Copy, Debug)]
pub struct ProvenRequest<'a> {
    /// HTTP method.
    pub method: &'a str,
    /// Path, without the query.
    pub path: &'a str,
    /// Digest of the access token, as in `ath`; none for a pairing.
    pub ath: Option<&'a str>,
    /// Time, in seconds since 1970.
    pub now: u64,
    /// Start of the hub, in seconds since 1970.
    pub started: u64,
}

/// Reason why a proof does not count.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidProof {
    /// Not one proof, or no proof of a known form.
    #[error(
        "a request of a device has one `DPoP` header: a JWT of type `dpop+jwt`, signed with ES256 by the key in it"
    )]
    Form,
    /// Wrong signature.
    #[error("the signature of the proof in `DPoP` is not that of the key in it")]
    Signature,
    /// Proof for another request.
    #[error(
        "the proof in `DPoP` is for another request: `htm` is the method, `htu` the address without its query"
    )]
    Request,
    /// Proof for another access token.
    #[error("the proof in `DPoP` is for another access token: `ath` is its SHA-256 digest")]
    AccessToken,
    /// Proof of another time.
    #[error(
        "the proof in `DPoP` is not of this minute: `iat` follows the clock of this answer's `Date`"
    )]
    Time,
    /// Repeated proof.
    #[error("the proof in `DPoP` was used before: each request has a new one, with another `jti`")]
    Repeated,
    /// More proofs than are remembered.
    #[error("this device sends more requests than the hub follows; wait a minute")]
    TooMany,
}

impl ProofClaims {
    /// Checks the claims. `is_hub` tells whether the origin of an address is the hub's, as the
    /// request names it.
    ///
    /// # Errors
    ///
    /// If the proof is not about this request.
    pub fn check(
        &self,
        request: ProvenRequest<'_>,
        is_hub: impl Fn(&url::Url) -> bool,
    ) -> Result<(), InvalidProof> {
        if self.jti.is_empty() || self.jti.len() > MAX_JTI {
            return Err(InvalidProof::Form);
        }
        let url = url::Url::parse(&self.htu).map_err(|_| InvalidProof::Request)?;
        if self.htm != request.method || url.path() != request.path || !is_hub(&url) {
            return Err(InvalidProof::Request);
        }
        if self.ath.as_deref() != request.ath {
            return Err(InvalidProof::AccessToken);
        }
        // Proofs from before the start are not remembered.
        let is_older = self.iat.saturating_add(START_SKEW) < request.started;
        if self.iat.abs_diff(request.now) > MAX_SKEW || is_older {
            return Err(InvalidProof::Time);
        }
        Ok(())
    }
}

/// Ids of the proofs that a device has used, as long as they could be used again.
#[derive(Debug, Default)]
pub struct UsedProofs {
    /// Time from which an id may be forgotten, in seconds since 1970.
    ids: HashMap<String, u64>,
    /// Time at which old ids are removed next.
    next_removal: u64,
}

impl UsedProofs {
    /// Remembers a proof that was checked.
    ///
    /// # Errors
    ///
    /// If it was used before, or too many are remembered.
    pub fn remember(&mut self, claims: &ProofClaims, now: u64) -> Result<(), InvalidProof> {
        if now >= self.next_removal || self.ids.len() >= MAX_PROOFS {
            self.ids.retain(|_, until| *until >= now);
            self.next_removal = now + MAX_SKEW / 4;
        }
        if self.ids.contains_key(&claims.jti) {
            return Err(InvalidProof::Repeated);
        }
        if self.ids.len() >= MAX_PROOFS {
            return Err(InvalidProof::TooMany);
        }
        self.ids.insert(claims.jti.clone(), claims.iat + MAX_SKEW);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn claims() -> ProofClaims {
        ProofClaims {
            jti: "j".to_owned(),
            htm: "POST".to_owned(),
            htu: "http://127.0.0.1:8080/stream".to_owned(),
            iat: 1_000,
            ath: Some("digest".to_owned()),
        }
    }

    fn check(claims: &ProofClaims) -> Result<(), InvalidProof> {
        let request = ProvenRequest {
            method: "POST",
            path: "/stream",
            ath: Some("digest"),
            now: 1_000,
            started: 900,
        };
        claims.check(request, |url| url.port() == Some(8080) && url.host_str() == Some("127.0.0.1"))
    }

    #[test]
    fn proof_is_about_one_request() {
        assert_eq!(check(&claims()), Ok(()));
        let with = |change: fn(&mut ProofClaims)| {
            let mut claims = claims();
            change(&mut claims);
            check(&claims)
        };
        assert_eq!(with(|it| it.htu += "?x=1#y"), Ok(()), "query and fragment do not count");
        for other in [
            with(|it| it.htm = "GET".to_owned()),
            with(|it| it.htm = "post".to_owned()),
            with(|it| it.htu = "http://127.0.0.1:8080/".to_owned()),
            with(|it| it.htu = "http://127.0.0.1:8081/stream".to_owned()),
            with(|it| it.htu = "http://evil.example/stream".to_owned()),
            with(|it| it.htu = "/stream".to_owned()),
            with(|it| it.htu = String::new()),
        ] {
            assert_eq!(other, Err(InvalidProof::Request));
        }
        assert_eq!(with(|it| it.ath = None), Err(InvalidProof::AccessToken));
        assert_eq!(with(|it| it.ath = Some("other".to_owned())), Err(InvalidProof::AccessToken));
        assert_eq!(with(|it| it.jti.clear()), Err(InvalidProof::Form));
        assert_eq!(with(|it| it.jti = "x".repeat(129)), Err(InvalidProof::Form));
        for iat in [0, 897, 939, 1_061, u64::MAX] {
            let claims = ProofClaims { iat, ..claims() };
            assert_eq!(check(&claims), Err(InvalidProof::Time), "{iat}");
        }
        for iat in [940, 1_000, 1_060] {
            assert_eq!(check(&ProofClaims { iat, ..claims() }), Ok(()), "{iat}");
        }
    }

    #[test]
    fn proof_from_before_start_is_refused() {
        let request =
            ProvenRequest { method: "POST", path: "/", ath: None, now: 1_000, started: 1_000 };
        let of = |iat| ProofClaims {
            iat,
            ath: None,
            htu: "http://127.0.0.1:8080/".to_owned(),
            ..claims()
        };
        assert_eq!(of(997).check(request, |_| true), Err(InvalidProof::Time));
        assert_eq!(of(998).check(request, |_| true), Ok(()));
    }

    #[test]
    fn proof_counts_once() {
        let mut used = UsedProofs::default();
        assert_eq!(used.remember(&claims(), 1_000), Ok(()));
        for now in [1_000, 1_060] {
            assert_eq!(used.remember(&claims(), now), Err(InvalidProof::Repeated));
        }
        for number in 1..MAX_PROOFS {
            let next = ProofClaims { jti: number.to_string(), ..claims() };
            assert_eq!(used.remember(&next, 1_000), Ok(()));
        }
        let more = ProofClaims { jti: "more".to_owned(), ..claims() };
        assert_eq!(used.remember(&more, 1_000), Err(InvalidProof::TooMany));
        let later = ProofClaims { iat: 1_061, ..more };
        assert_eq!(used.remember(&later, 1_061), Ok(()), "the old ones are too old to be used");
    }
}
