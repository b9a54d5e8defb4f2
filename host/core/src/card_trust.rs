//! Trust in the card of a remote agent. The card determines the agent's URL and protocol, so that
//! an attacker who replaces it would receive the clients' messages and the operator's token. Unless
//! the operator pins a card, the first one is trusted (trust on first use), and a changed one needs
//! approval.

/// Card that was fetched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OfferedCard<'a> {
    /// Digest of the card, in hex.
    pub digest: &'a str,
    /// True if it is signed with one of the operator's keys; `None` if the operator names no keys.
    pub signed: Option<bool>,
}

/// Trusted cards, by their digests in hex.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TrustAnchors<'a> {
    /// Card that the configuration pins.
    pub pinned: Option<&'a str>,
    /// Card that the operator approves now.
    pub accepted: Option<&'a str>,
    /// Card that is in use.
    pub used: Option<&'a str>,
}

/// Decision about a card.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TrustVerdict {
    /// It is used from now on.
    Use,
    /// It is not signed with a key that the operator names.
    NotSigned,
    /// It is not the card that the configuration pins.
    NotPinned,
    /// It is not the card that the operator approves: it changed once more.
    NotAccepted,
    /// It is not the card in use, and has no approval.
    Changed,
}

impl TrustAnchors<'_> {
    /// Decides about the card that is `offered`. The order of precedence is: the configuration, the
    /// operator's approval, a valid signature, and, without any of these, the first card.
    pub fn verdict(&self, offered: OfferedCard<'_>) -> TrustVerdict {
        let is = |digest: &str| digest.eq_ignore_ascii_case(offered.digest);
        match (offered.signed, self) {
            (Some(false), _) => TrustVerdict::NotSigned,
            (_, TrustAnchors { pinned: Some(pinned), .. }) if !is(pinned) => {
                TrustVerdict::NotPinned
            }
            (_, TrustAnchors { accepted: Some(accepted), .. }) if !is(accepted) => {
                TrustVerdict::NotAccepted
            }
            (_, TrustAnchors { pinned: Some(_), .. } | TrustAnchors { accepted: Some(_), .. })
            | (Some(true), _)
            | (None, TrustAnchors { used: None, .. }) => TrustVerdict::Use,
            (None, TrustAnchors { used: Some(used), .. }) => {
                if is(used) {
                    TrustVerdict::Use
                } else {
                    TrustVerdict::Changed
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fmt::Write as _;

    /// `new` is offered while `old` is in use.
    #[test]
    fn trust_table() {
        let known = |pinned, accepted, used| TrustAnchors { pinned, accepted, used };
        let (old, new) = (Some("old"), Some("NEW"));
        let mut table = String::new();
        for (what, known) in [
            ("first seen", known(None, None, None)),
            ("the one in use", known(None, None, new)),
            ("another than is in use", known(None, None, old)),
            ("approved", known(None, new, old)),
            ("another than is approved", known(None, old, old)),
            ("pinned", known(new, None, old)),
            ("another than is pinned", known(old, None, new)),
            ("approved, and another than is pinned", known(old, new, old)),
        ] {
            let verdicts = [None, Some(true), Some(false)].map(|signed| {
                format!("{:?}", known.verdict(OfferedCard { digest: "new", signed }))
            });
            writeln!(table, "{what}: {}", verdicts.join(" | ")).unwrap();
        }
        insta::assert_snapshot!(table, @r"
        first seen: Use | Use | NotSigned
        the one in use: Use | Use | NotSigned
        another than is in use: Changed | Use | NotSigned
        approved: Use | Use | NotSigned
        another than is approved: NotAccepted | NotAccepted | NotSigned
        pinned: Use | Use | NotSigned
        another than is pinned: NotPinned | NotPinned | NotSigned
        approved, and another than is pinned: NotPinned | NotPinned | NotSigned
        ");
    }
}
