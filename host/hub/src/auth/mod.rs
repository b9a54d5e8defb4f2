//! Who may talk to this hub over TCP: programs of its own user, and whoever holds its token.

mod peer;
mod token;

pub use peer::is_own_user;
pub use token::{TOKEN_FILE, Token, TokenError, find_secret, open_secret};
