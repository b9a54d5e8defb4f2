//! Pairing of a browser: the operator offers it in a terminal, the browser presents its key with
//! the offered token, and the operator confirms that key by its code.
//!
//! A token belongs to the first key that presents it. A second key ends the pairing, because one of
//! the two is not the operator's.

use crate::devices::{code_of, id_of};

/// Time for which an offered token can be presented, in milliseconds.
pub const OFFER_MS: u64 = 60_000;

/// Time in which the operator confirms a presented key, and in which the browser gets its access
/// token afterwards, in milliseconds.
pub const CONFIRM_MS: u64 = 120_000;

/// Largest number of pairings at the same time. A further one ends the oldest.
const MAX_PAIRINGS: usize = 8;

/// The pairings that are going on. Times are milliseconds since 1970.
#[derive(Debug, Default)]
pub struct Pairings(Vec<Pairing>);

#[derive(Debug)]
struct Pairing {
    token_digest: String,
    expires_at: u64,
    state: PairingState,
}

/// Key that a browser presents.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PresentedKey {
    /// SHA-256 thumbprint of the public key, in hexadecimal digits.
    pub thumbprint: String,
    /// Name of the browser: a plain line.
    pub name: String,
}

/// Reason why a pairing ended without a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RefusedPairing {
    /// The operator said no.
    #[error("the pairing was refused in the terminal")]
    Operator,
    /// Two keys presented one token.
    #[error(
        "two browsers opened the address of this pairing, so neither was paired; run `a2a-hub web` again"
    )]
    TwoKeys,
    /// Unknown token, or one that was used or is too old.
    #[error("this pairing has ended; run `a2a-hub web` again")]
    Over,
}

/// State of a pairing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PairingState {
    /// No browser has presented the token yet.
    Offered,
    /// A browser presented it, and the operator has to confirm its key.
    Presented(PresentedKey),
    /// The browser is paired.
    Paired {
        /// Its key.
        key: PresentedKey,
        /// Access token for it.
        access_token: String,
    },
    /// The browser was paired before, as the device with this id.
    PairedBefore(String),
    /// The pairing ended without a device.
    Refused(RefusedPairing),
}

impl PresentedKey {
    /// Id of the device with this key.
    pub fn id(&self) -> String {
        id_of(&self.thumbprint)
    }

    /// Code of this key, which people compare.
    pub fn code(&self) -> String {
        code_of(&self.id())
    }
}

impl Pairings {
    /// Offers a pairing by the token with this digest. Returns the time until which it can be
    /// presented.
    pub fn offer(&mut self, token_digest: String, now: u64) -> u64 {
        self.0.retain(|one| one.expires_at > now);
        if self.0.len() >= MAX_PAIRINGS {
            self.0.remove(0);
        }
        let expires_at = now + OFFER_MS;
        self.0.push(Pairing { token_digest, expires_at, state: PairingState::Offered });
        expires_at
    }

    /// Presents a key. The state is that of the pairing afterwards.
    pub fn present(&mut self, token_digest: &str, key: PresentedKey, now: u64) -> PairingState {
        let Some(pairing) = self.find(token_digest, now) else {
            return PairingState::Refused(RefusedPairing::Over);
        };
        let presented = match &pairing.state {
            PairingState::Presented(presented) | PairingState::Paired { key: presented, .. } => {
                Some(presented)
            }
            PairingState::Offered | PairingState::PairedBefore(_) | PairingState::Refused(_) => {
                None
            }
        };
        if presented.is_some_and(|presented| presented.thumbprint != key.thumbprint) {
            // Whoever was accepted stays so; the other gets nothing.
            if matches!(pairing.state, PairingState::Paired { .. }) {
                return PairingState::Refused(RefusedPairing::TwoKeys);
            }
            pairing.state = PairingState::Refused(RefusedPairing::TwoKeys);
        } else if matches!(pairing.state, PairingState::Offered) {
            pairing.state = PairingState::Presented(key);
            pairing.expires_at = now + CONFIRM_MS;
        }
        pairing.state.clone()
    }

    /// Ends a pairing because its browser is paired already, as the device with this id. If another
    /// key has presented the token, neither is paired. The state is that of the pairing afterwards.
    pub fn end_for(&mut self, token_digest: &str, device: &str, now: u64) -> PairingState {
        let Some(pairing) = self.find(token_digest, now) else {
            return PairingState::Refused(RefusedPairing::Over);
        };
        match pairing.state {
            PairingState::Offered => {
                pairing.state = PairingState::PairedBefore(device.to_owned());
            }
            PairingState::Presented(_) => {
                pairing.state = PairingState::Refused(RefusedPairing::TwoKeys);
            }
            PairingState::Paired { .. }
            | PairingState::PairedBefore(_)
            | PairingState::Refused(_) => {}
        }
        pairing.state.clone()
    }

    /// State of a pairing.
    pub fn state(&mut self, token_digest: &str, now: u64) -> PairingState {
        let over = PairingState::Refused(RefusedPairing::Over);
        self.find(token_digest, now).map_or(over, |pairing| pairing.state.clone())
    }

    /// Key of a pairing that waits for a decision, by the code that the operator saw.
    ///
    /// # Errors
    ///
    /// If no key with this code waits for a decision.
    pub fn presented_key(
        &mut self,
        token_digest: &str,
        code: &str,
        now: u64,
    ) -> Result<PresentedKey, RefusedPairing> {
        match self.state(token_digest, now) {
            PairingState::Presented(key) if key.code() == code => Ok(key),
            PairingState::Refused(why) => Err(why),
            PairingState::Offered
            | PairingState::Presented(_)
            | PairingState::Paired { .. }
            | PairingState::PairedBefore(_) => Err(RefusedPairing::Over),
        }
    }

    /// Decides a pairing whose key the operator saw, by its code: `access_token` accepts it.
    /// Returns the key if the decision counts.
    ///
    /// # Errors
    ///
    /// If no key with this code waits for a decision.
    pub fn decide(
        &mut self,
        token_digest: &str,
        code: &str,
        access_token: Option<String>,
        now: u64,
    ) -> Result<PresentedKey, RefusedPairing> {
        let key = self.presented_key(token_digest, code, now)?;
        let pairing = self.find(token_digest, now).ok_or(RefusedPairing::Over)?;
        pairing.expires_at = now + CONFIRM_MS;
        pairing.state = match access_token {
            Some(access_token) => PairingState::Paired { key: key.clone(), access_token },
            None => PairingState::Refused(RefusedPairing::Operator),
        };
        Ok(key)
    }

    fn find(&mut self, token_digest: &str, now: u64) -> Option<&mut Pairing> {
        self.0.retain(|one| one.expires_at > now);
        self.0.iter_mut().find(|one| one.token_digest == token_digest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(thumbprint: &str) -> PresentedKey {
        PresentedKey { thumbprint: thumbprint.to_owned(), name: "Chromium".to_owned() }
    }

    fn over() -> PairingState {
        PairingState::Refused(RefusedPairing::Over)
    }

    #[test]
    fn confirmed_key_gets_access_token() {
        let mut all = Pairings::default();
        assert_eq!(all.offer("t".to_owned(), 0), OFFER_MS);
        assert_eq!(all.state("t", 1), PairingState::Offered);
        assert_eq!(all.decide("t", "", None, 1), Err(RefusedPairing::Over), "nobody is there");
        let waits = PairingState::Presented(key("ab12cd34ff"));
        assert_eq!(all.present("t", key("ab12cd34ff"), 2), waits);
        assert_eq!(all.present("t", key("ab12cd34ff"), 3), waits, "it asks again");
        let yes = || Some("secret".to_owned());
        assert_eq!(all.decide("t", "FFFF-FFFF", yes(), 4), Err(RefusedPairing::Over));
        assert_eq!(all.state("t", 4), waits, "a wrong code decides nothing");
        assert_eq!(all.decide("t", "AB12-CD34", yes(), 4), Ok(key("ab12cd34ff")));
        let paired = all.present("t", key("ab12cd34ff"), 5);
        assert!(
            matches!(&paired, PairingState::Paired { access_token, .. } if access_token == "secret")
        );
        assert_eq!(all.decide("t", "AB12-CD34", yes(), 6), Err(RefusedPairing::Over), "once");
        assert_eq!(all.present("t", key("ab12cd34ff"), 5 + CONFIRM_MS), over());
    }

    #[test]
    fn second_key_ends_pairing() {
        let two = PairingState::Refused(RefusedPairing::TwoKeys);
        let mut all = Pairings::default();
        all.offer("t".to_owned(), 0);
        all.present("t", key("aaaaaaaa1"), 1);
        assert_eq!(all.present("t", key("aaaaaaaa2"), 2), two, "the code is the same");
        assert_eq!(all.present("t", key("aaaaaaaa1"), 3), two);
        assert_eq!(
            all.decide("t", "AAAA-AAAA", Some("s".to_owned()), 4),
            Err(RefusedPairing::TwoKeys)
        );
        // A key that comes after the yes gets nothing, and takes nothing away.
        all.offer("u".to_owned(), 5);
        all.present("u", key("aaaaaaaa1"), 6);
        all.decide("u", "AAAA-AAAA", Some("s".to_owned()), 7).unwrap();
        assert_eq!(all.present("u", key("bbbbbbbb"), 8), two);
        assert!(matches!(all.present("u", key("aaaaaaaa1"), 9), PairingState::Paired { .. }));
    }

    #[test]
    fn offer_expires_and_is_one_of_eight() {
        let mut all = Pairings::default();
        all.offer("t".to_owned(), 0);
        assert_eq!(all.present("t", key("a"), OFFER_MS), over());
        assert_eq!(all.present("unknown", key("a"), 0), over());
        for number in 0..=MAX_PAIRINGS {
            all.offer(format!("t{number}"), 1);
        }
        assert_eq!(all.state("t0", 2), over(), "the oldest makes room");
        assert_eq!(all.state("t8", 2), PairingState::Offered);
    }

    #[test]
    fn refused_or_paired_browser_gets_nothing() {
        let mut all = Pairings::default();
        all.offer("t".to_owned(), 0);
        all.present("t", key("ab12cd34"), 1);
        all.decide("t", "AB12-CD34", None, 2).unwrap();
        let no = PairingState::Refused(RefusedPairing::Operator);
        assert_eq!(all.present("t", key("ab12cd34"), 3), no);
        all.offer("u".to_owned(), 4);
        let before = PairingState::PairedBefore("ab12cd34".to_owned());
        assert_eq!(all.end_for("u", "ab12cd34", 5), before);
        assert_eq!(all.end_for("unknown", "ab12cd34", 5), over());
        all.offer("v".to_owned(), 5);
        all.present("v", key("ffffffff"), 5);
        let two = PairingState::Refused(RefusedPairing::TwoKeys);
        assert_eq!(all.end_for("v", "ab12cd34", 5), two, "somebody else has the address");
        assert_eq!(
            all.present("u", key("ffffffff"), 6),
            PairingState::PairedBefore("ab12cd34".to_owned())
        );
    }
}
