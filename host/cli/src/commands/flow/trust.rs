//! `flow trust`: shows a flow file, or its difference to the trusted one, and trusts it.

use super::joined::{joined_running_hub, refusal};
use crate::{
    Exit, Format, Global, block_on,
    client::{hub_client::Client, owner::Owner},
    ui::{
        difference::difference,
        failure::CommandError,
        interactive,
        text::{PLAIN, Text},
    },
};
use a2a_hub_config::{
    MAX_FLOW_BYTES, TrustedFlows,
    private_file::{self, NotPrivate},
};
use a2a_hub_protocol::id::AgentId;
use a2a_hub_sandbox::digest_of;
use anyhow::{Context as _, bail};
use serde_json::json;
use std::{io::Read as _, path::Path};

/// Reason of a refusal: nobody was asked whether to trust the flow.
const NOT_CONFIRMED: &str = "NOT_CONFIRMED";

/// Trusts the file of a flow as it is shown, or no longer.
pub(super) fn trust(
    global: &Global,
    id: &AgentId,
    file: &Path,
    yes: bool,
    revoke: bool,
) -> anyhow::Result<Exit> {
    let dir = global.data_dir()?;
    block_on(require_operator(global, "trust a flow"))?;
    let trusted = TrustedFlows::new(&dir);
    if revoke {
        trusted.revoke(id).with_context(|| format!("trust the flow {id} no longer"))?;
        let message = format!("the flow {id} is not trusted any more\n");
        global.show(&json!({ "name": id, "trusted": false }), || Ok(message.into()))?;
        return Ok(Exit::Done);
    }
    let text = text_of(file).with_context(|| format!("trust {}", file.display()))?;
    let before =
        trusted.text(id).with_context(|| format!("read {}", trusted.path(id).display()))?;
    let answer = json!({ "name": id, "trusted": true, "sha256": digest_of(text.as_bytes()) });
    if before.as_deref() == Some(&text) {
        let message = format!("the flow {id} is trusted already\n");
        global.show(&answer, || Ok(message.into()))?;
        return Ok(Exit::Done);
    }
    let needs = block_on(async { anyhow::Ok(needs_of(global, id).await) })?;
    let asks = Confirmation {
        summary: needs.as_deref(),
        subject: &format!("the flow {id}"),
        command: &format!("a2a-hub flow trust {id}"),
        effect: "Its programs run, and its agents work, with these rights whenever it is called.",
    };
    if !yes && !asks.is_confirmed(global, before.as_deref(), &text)? {
        let message = format!("the flow {id} is not trusted\n");
        global.show(&json!({ "name": id, "trusted": false }), || Ok(message.into()))?;
        return Ok(Exit::Done);
    }
    // The text that was shown, whatever the file holds by now.
    trusted.trust(id, &text).with_context(|| format!("trust the flow {id}"))?;
    let why = joined_running_hub(global, id, false)?;
    let why = why.map(|why| format!(", and not used yet: {why}")).unwrap_or_default();
    global.show(&answer, || Ok(format!("the flow {id} is trusted{why}\n").into()))?;
    Ok(Exit::Done)
}

/// Refuses programs of agents: the hub does or, without one, the ancestors of this command are
/// looked at.
pub(crate) async fn require_operator(global: &Global, action: &'static str) -> anyhow::Result<()> {
    if let Owner::Hub(mut hub) = Owner::for_data_dir(global, &global.data_dir()?, action).await? {
        hub.call("hub/status", json!({})).await.context(action)?;
    }
    Ok(())
}

/// Rights that a flow file needs, as the hub that refuses it states them; none without such a hub.
async fn needs_of(global: &Global, id: &AgentId) -> Option<String> {
    let mut client = Client::connect(global).await.ok()?;
    refusal(&mut client, id).await.ok()?
}

/// Text of a flow file that nobody else can have written.
fn text_of(file: &Path) -> anyhow::Result<String> {
    let open = private_file::open(file, 0o022).map_err(|why| match why {
        NotPrivate::Io(why) => anyhow::Error::from(why),
        NotPrivate::Link | NotPrivate::NotPlain | NotPrivate::Foreign | NotPrivate::Shared => anyhow::anyhow!(
            "it is a link, or others can have written it; make it a plain file of your own, and run `chmod go-w` on it"
        ),
    })?;
    let mut text = String::new();
    open.take(MAX_FLOW_BYTES + 1).read_to_string(&mut text)?;
    if text.len() as u64 > MAX_FLOW_BYTES {
        bail!("it is larger than {} KiB", MAX_FLOW_BYTES >> 10);
    }
    Ok(text)
}

/// Question whether to trust a file.
pub(crate) struct Confirmation<'c> {
    /// Rights that the file needs, which are repeated above the question; none if unknown.
    pub(crate) summary: Option<&'c str>,
    pub(crate) subject: &'c str,
    /// Command that asks it.
    pub(crate) command: &'c str,
    pub(crate) effect: &'c str,
}

impl Confirmation<'_> {
    /// Shows the file or its changes, and asks whether to trust it.
    pub(crate) fn is_confirmed(
        &self,
        global: &Global,
        before: Option<&str>,
        text: &str,
    ) -> anyhow::Result<bool> {
        let console = global.console();
        let mut shown = Text::new();
        shown.append(match before {
            Some(before) => difference(before, text),
            None => Text::from(text.to_owned()),
        });
        if !console.is_attended() || global.format == Format::Json {
            console.note(shown);
            let why = format!(
                "trust {}: nobody can be asked here; read the file above, then give `--yes`",
                self.subject
            );
            let mend = format!("{} --yes", self.command);
            return Err(CommandError::new(NOT_CONFIRMED, why).mended_by(mend).into());
        }
        if let Some(summary) = self.summary {
            shown.push(PLAIN, &format!("\n{summary}\n"));
        }
        shown.push(PLAIN, &format!("\n{} Trust it? [y/N]", self.effect));
        console.note(shown);
        let answer = block_on(interactive::ask(console, "y trusts it; an empty answer does not"))?;
        Ok(answer.is_one_of(&["y", "yes"]))
    }
}
